/* Two threads that take one lock, each so many times; who had it last is printed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int last;
static int times;

static void *take_lock(void *number) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&lock);
        last = last * 3 + *(int *)number;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    times = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[2];
    static int numbers[2] = {1, 2};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, take_lock, &numbers[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d\n", last);
    return 0;
}
