/* Threads that a guided run is to lead through given lines. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int shared;

static void *steps(void *own) {
    int *private = own;
    pthread_mutex_lock(&lock); /* locks */
    shared += 1;               /* shared */
    pthread_mutex_unlock(&lock);
    *private += 1; /* private */
    pthread_mutex_lock(&lock);
    shared += 10; /* later */
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    static int own[3];
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, steps, &own[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d\n", shared);
    return 0;
}
