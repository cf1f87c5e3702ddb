/* A given number of events, and the most memory that the program itself had of them. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter, turns;

/* Four events a turn: lock, read, write, unlock. */
static void *count(void *nobody) {
    for (long i = 0; i < turns; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return nobody;
}

int main(int argc, char **argv) {
    long events = atol(argv[1]);
    pthread_t threads[2];
    turns = events / 8;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("program %ld\n", usage.ru_maxrss);
    fflush(stdout);
    assert(argc == 2 || counter != 2 * turns);
    return 0;
}
