/*
 * Bubble sort with one thread for each sweep. A sweep goes once from left to
 * right over the whole array and swaps neighbours in the wrong order; one sweep
 * fewer than there are elements sorts any array.
 *
 * The bug: the sweeps take no lock. Two that swap overlapping neighbours at the
 * same time duplicate one element and lose another, and a sweep that overtakes
 * another leaves the array unsorted. So a lock for each swap would not do: the
 * fix makes a whole sweep one critical section.
 *
 * Published: RankChecker, 9 threads, 1 schedule at (0,0,2,1).
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_ELEMENTS = 100 };

static int elements[MAX_ELEMENTS];
static int count;

static void sort_pair(int left) {
    if (elements[left] > elements[left + 1]) {
        int larger = elements[left];
        elements[left] = elements[left + 1];
        elements[left + 1] = larger;
    }
}

#ifdef FIXED
static pthread_mutex_t sweep_lock = PTHREAD_MUTEX_INITIALIZER;

static void begin_sweep(void) {
    pthread_mutex_lock(&sweep_lock);
}

static void end_sweep(void) {
    pthread_mutex_unlock(&sweep_lock);
}
#else
static void begin_sweep(void) {
}

static void end_sweep(void) {
}
#endif

static void *sweep(void *unused) {
    begin_sweep();
    for (int i = 0; i < count - 1; i++) {
        sort_pair(i);
    }
    end_sweep();
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"elements", 3, 3, MAX_ELEMENTS}};
    read_sizes(argc, argv, sizes, 1);
    count = sizes[0].value;

    pthread_t threads[MAX_ELEMENTS];
    for (int i = 0; i < count; i++) {
        elements[i] = count - i;
    }
    for (int i = 0; i < count - 1; i++) {
        pthread_create(&threads[i], NULL, sweep, NULL);
    }
    for (int i = 0; i < count - 1; i++) {
        pthread_join(threads[i], NULL);
    }
    /* The elements are 1 to count: this holds if they are sorted and all still there. */
    for (int i = 0; i < count; i++) {
        assert(elements[i] == i + 1);
    }
    return 0;
}
