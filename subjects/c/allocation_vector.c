/*
 * A vector of cells that are free or allocated. Each thread looks for a free
 * cell, marks it as allocated, and in the end frees every cell it got.
 *
 * The bug: looking and marking are each atomic, but not the two together. Two
 * threads that find the same free cell both mark it, and the second mark is an
 * error. There is no data race in it. The fix finds and marks under one hold
 * of the lock.
 *
 * Published: RankChecker, 3 threads, 113 schedules at (2,1,2,1).
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "sizes.h"

enum { MAX_CELLS = 1000, MAX_ROUNDS = 1000, MAX_THREADS = 32, NONE = -1 };

static pthread_mutex_t vector_lock = PTHREAD_MUTEX_INITIALIZER;
static bool allocated[MAX_CELLS];
static int cells;
static int rounds;

/* The caller holds the lock, here and in set_allocated. */
static int first_free(int start) {
    for (int i = 0; i < cells; i++) {
        int cell = (start + i) % cells;
        if (!allocated[cell]) {
            return cell;
        }
    }
    return NONE;
}

static void set_allocated(int cell) {
    assert(!allocated[cell]);
    allocated[cell] = true;
}

#ifdef FIXED
static int allocate(int start) {
    pthread_mutex_lock(&vector_lock);
    int cell = first_free(start);
    if (cell != NONE) {
        set_allocated(cell);
    }
    pthread_mutex_unlock(&vector_lock);
    return cell;
}
#else
static int find_free(int start) {
    pthread_mutex_lock(&vector_lock);
    int cell = first_free(start);
    pthread_mutex_unlock(&vector_lock);
    return cell;
}

static void mark_allocated(int cell) {
    pthread_mutex_lock(&vector_lock);
    set_allocated(cell);
    pthread_mutex_unlock(&vector_lock);
}

static int allocate(int start) {
    int cell = find_free(start);
    if (cell != NONE) {
        mark_allocated(cell);
    }
    return cell;
}
#endif

static void mark_free(int cell) {
    pthread_mutex_lock(&vector_lock);
    assert(allocated[cell]);
    allocated[cell] = false;
    pthread_mutex_unlock(&vector_lock);
}

static void *user(void *unused) {
    int got[MAX_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        got[i] = allocate(i % cells);
    }
    for (int i = 0; i < rounds; i++) {
        if (got[i] != NONE) {
            mark_free(got[i]);
        }
    }
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"cells", 1, 1, MAX_CELLS}, {"rounds", 1, 1, MAX_ROUNDS}, {"threads", 2, 1, MAX_THREADS}};
    read_sizes(argc, argv, sizes, 3);
    cells = sizes[0].value;
    rounds = sizes[1].value;
    int count = sizes[2].value;

    pthread_t threads[MAX_THREADS];
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, user, NULL);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
