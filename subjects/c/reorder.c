/*
 * Setters that store a pair of values one after the other, and checkers that
 * accept the pair only before or after both stores.
 *
 * The bug: nothing makes the two stores one step. A checker that runs between
 * those of the first setter sees half of the pair. Once any setter has
 * finished, the values no longer change, so every further setter makes the
 * failing moment rarer. The fix holds a lock around the stores and the check.
 *
 * Published, schedules to the bug: reorder_5, RFF 6, PERIOD 12, SURW 10, PCT3
 * 1126, POS 4377; reorder_100, RFF 6, PERIOD 297, SURW 194, PCT3 7447 (in 1 of
 * 20 trials), POS and Q-learning never. Guided test, states: (5,1) 109,
 * (8,1) 197, (10,1) 271.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"
#include "steps.h"

enum { MAX_THREADS = 100 };

static int a;
static int b;

#ifdef FIXED
static pthread_mutex_t pair_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_pair(void) {
    pthread_mutex_lock(&pair_lock);
}

static void unlock_pair(void) {
    pthread_mutex_unlock(&pair_lock);
}
#else
static void lock_pair(void) {
}

static void unlock_pair(void) {
}
#endif

static void *setter(void *unused) {
    lock_pair();
    a = 1;
    b = -1;
    unlock_pair();
    return unused;
}

static void *checker(void *unused) {
    lock_pair();
    assert((a == 0 && b == 0) || (a == 1 && b == -1));
    unlock_pair();
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"setters", 1, 1, MAX_THREADS}, {"checkers", 1, 1, MAX_THREADS}, STEPS};
    read_sizes(argc, argv, sizes, 3);
    int setters = sizes[0].value;
    int steps = sizes[2].value;
    int total = setters + sizes[1].value;

    pthread_t threads[2 * MAX_THREADS];
    for (int i = 0; i < total; i++) {
        pthread_create(&threads[i], NULL, i < setters ? setter : checker, NULL);
        take_steps(steps);
    }
    for (int i = 0; i < total; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
