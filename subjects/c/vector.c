/*
 * A vector whose two components are doubled by one thread and normalised, so
 * that the longer one becomes 1, by another.
 *
 * The bug: doubling takes the lock anew for each component. If the vector is
 * normalised in between, one half of the doubling is undone and the other is
 * not, and the result has neither the length 1 nor the length 2. Every access
 * is locked, so this is a race on the two variables together, not on either.
 * The fix doubles both in one critical section.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_THREADS = 10 };

static pthread_mutex_t vector_lock = PTHREAD_MUTEX_INITIALIZER;
static double x = 3;
static double y = 4;

static void *doubler(void *unused) {
    pthread_mutex_lock(&vector_lock);
    x *= 2;
#ifndef FIXED
    pthread_mutex_unlock(&vector_lock);
    pthread_mutex_lock(&vector_lock);
#endif
    y *= 2;
    pthread_mutex_unlock(&vector_lock);
    return unused;
}

static void *normaliser(void *unused) {
    pthread_mutex_lock(&vector_lock);
    double length = x > y ? x : y;
    x /= length;
    y /= length;
    pthread_mutex_unlock(&vector_lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"normalisers", 1, 1, MAX_THREADS}};
    read_sizes(argc, argv, sizes, 1);
    int normalisers = sizes[0].value;

    pthread_t doubler_thread;
    pthread_t threads[MAX_THREADS];
    pthread_create(&doubler_thread, NULL, doubler, NULL);
    for (int i = 0; i < normalisers; i++) {
        pthread_create(&threads[i], NULL, normaliser, NULL);
    }
    pthread_join(doubler_thread, NULL);
    for (int i = 0; i < normalisers; i++) {
        pthread_join(threads[i], NULL);
    }
    assert(y == 1 || y == 2);
    return 0;
}
