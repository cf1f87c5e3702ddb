/*
 * Bubble sort as a chain of sweeps. Each sweep starts the next one, which has
 * one element less to go over, as soon as its own first step is done.
 *
 * The bug: a sweep compares two neighbours without the lock and takes it for
 * the swap alone. If another sweep swaps the same two in between, they are
 * swapped back. And nothing keeps a sweep behind the one that started it, which
 * it needs in order to find the largest element moved on. In the fix a sweep
 * holds the lock from its first step to its last; the sweep it has started
 * waits for that.
 *
 * Published: RankChecker, 101 threads, 2 schedules at (0,0,2,1).
 */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_ELEMENTS = 200 };

static pthread_mutex_t swap_lock = PTHREAD_MUTEX_INITIALIZER;
static int elements[MAX_ELEMENTS];

static void swap(int left) {
    int moved = elements[left];
    elements[left] = elements[left + 1];
    elements[left + 1] = moved;
}

#ifdef FIXED
static void begin_sweep(void) {
    pthread_mutex_lock(&swap_lock);
}

static void end_sweep(void) {
    pthread_mutex_unlock(&swap_lock);
}

static void sort_pair(int left) {
    if (elements[left] > elements[left + 1]) {
        swap(left);
    }
}
#else
static void begin_sweep(void) {
}

static void end_sweep(void) {
}

static void sort_pair(int left) {
    if (elements[left] > elements[left + 1]) {
        pthread_mutex_lock(&swap_lock);
        swap(left);
        pthread_mutex_unlock(&swap_lock);
    }
}
#endif

static void *sweep(void *argument) {
    intptr_t steps = (intptr_t)argument;
    pthread_t next;
    begin_sweep();
    sort_pair(0);
    if (steps > 1) {
        pthread_create(&next, NULL, sweep, (void *)(steps - 1));
    }
    for (int i = 1; i < steps; i++) {
        sort_pair(i);
    }
    end_sweep();
    if (steps > 1) {
        pthread_join(next, NULL);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"elements", 3, 3, MAX_ELEMENTS}};
    read_sizes(argc, argv, sizes, 1);
    int count = sizes[0].value;

    for (int i = 0; i < count; i++) {
        elements[i] = count - i;
    }
    pthread_t first;
    pthread_create(&first, NULL, sweep, (void *)(intptr_t)(count - 1));
    pthread_join(first, NULL);
    for (int i = 0; i < count; i++) {
        assert(elements[i] == i + 1);
    }
    return 0;
}
