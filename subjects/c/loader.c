/*
 * A main program that lets a chain of sweeps sort an array, and waits for a
 * flag instead of for the threads. Each sweep starts a shorter one after its
 * first step; the flag is raised for the last of them.
 *
 * The bug: the flag says that the last sweep has been made, not that the
 * earlier ones are over. Main sees it and finds the array half sorted while a
 * sweep in the middle of the chain still has steps to go. The sweeps also
 * compare without the lock, as in bubblesort2. The fix joins the chain, in
 * which each sweep joins the one it started, and holds the lock for a sweep.
 *
 * Published: PECAN, 4 threads, 48 events, 2 races and 4 AV predicted, 5 real,
 * 1 with an exception.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_ELEMENTS = 100 };

static pthread_mutex_t swap_lock = PTHREAD_MUTEX_INITIALIZER;
static int elements[MAX_ELEMENTS];

static void swap(int left) {
    int moved = elements[left];
    elements[left] = elements[left + 1];
    elements[left + 1] = moved;
}

static void *sweep(void *argument);

#ifdef FIXED
static void sort_pair(int left) {
    if (elements[left] > elements[left + 1]) {
        swap(left);
    }
}

static pthread_t start_sweep(intptr_t steps) {
    pthread_t thread;
    pthread_create(&thread, NULL, sweep, (void *)steps);
    return thread;
}

static void *sweep(void *argument) {
    intptr_t steps = (intptr_t)argument;
    if (steps == 0) {
        return NULL;
    }
    pthread_mutex_lock(&swap_lock);
    sort_pair(0);
    pthread_t next = start_sweep(steps - 1);
    for (int i = 1; i < steps; i++) {
        sort_pair(i);
    }
    pthread_mutex_unlock(&swap_lock);
    pthread_join(next, NULL);
    return NULL;
}

static void sort(int count) {
    pthread_join(start_sweep(count - 1), NULL);
}
#else
static volatile bool done;

static void start_sweep(intptr_t steps) {
    pthread_t thread;
    done = steps <= 0;
    pthread_create(&thread, NULL, sweep, (void *)steps);
    pthread_detach(thread);
}

static void sort_pair(int left) {
    if (elements[left] > elements[left + 1]) {
        pthread_mutex_lock(&swap_lock);
        swap(left);
        pthread_mutex_unlock(&swap_lock);
    }
}

static void *sweep(void *argument) {
    intptr_t steps = (intptr_t)argument;
    for (int i = 0; i < steps; i++) {
        sort_pair(i);
        if (i == 0) {
            start_sweep(steps - 1);
        }
    }
    return NULL;
}

static void sort(int count) {
    start_sweep(count - 1);
    while (!done) {
        sched_yield();
    }
}
#endif

static int count_inversions(int count) {
    int inversions = 0;
    for (int i = 0; i < count - 1; i++) {
        inversions += elements[i] > elements[i + 1];
    }
    return inversions;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"elements", 3, 3, MAX_ELEMENTS}};
    read_sizes(argc, argv, sizes, 1);
    int count = sizes[0].value;

    for (int i = 0; i < count; i++) {
        elements[i] = count - i;
    }
    sort(count);
    assert(count_inversions(count) == 0);
    return 0;
}
