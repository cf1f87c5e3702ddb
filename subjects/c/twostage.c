/*
 * Two values that belong together, each with a lock of its own. A writer sets
 * the first in one stage and derives the second from it in the next; a reader
 * that sees the first expects the matching second.
 *
 * The bug is the gap between the stages: a reader that runs there finds the
 * new first value beside the old second one. The writer's second stage also
 * reads the first value without its lock. The fix keeps the first lock until
 * the second stage is over; readers never nest the locks, so nothing can block.
 *
 * Published, to the bug: SCTBench, 1+1 threads, 3-15 schedules; twostage_20,
 * RFF 22, POS 185, SURW 6; twostage_100, RFF 56, SURW 454, PERIOD 690, PCT3
 * 3888 (in 6 of 20 trials), POS never. Guided test, states: (7,1) 213,
 * (8,1) 250, (10,1) 333.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"
#include "steps.h"

enum { MAX_THREADS = 100 };

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second_lock = PTHREAD_MUTEX_INITIALIZER;
static int first;
static int second;

static void derive_second(void) {
    pthread_mutex_lock(&second_lock);
    second = first + 1;
    pthread_mutex_unlock(&second_lock);
}

static void *writer(void *unused) {
    pthread_mutex_lock(&first_lock);
    first = 1;
#ifdef FIXED
    derive_second();
    pthread_mutex_unlock(&first_lock);
#else
    pthread_mutex_unlock(&first_lock);
    derive_second();
#endif
    return unused;
}

static void *reader(void *unused) {
    pthread_mutex_lock(&first_lock);
    int seen_first = first;
    pthread_mutex_unlock(&first_lock);
    if (seen_first == 0) {
        return unused;
    }
    pthread_mutex_lock(&second_lock);
    int seen_second = second;
    pthread_mutex_unlock(&second_lock);
    assert(seen_second == seen_first + 1);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"writers", 1, 1, MAX_THREADS}, {"readers", 1, 1, MAX_THREADS}, STEPS};
    read_sizes(argc, argv, sizes, 3);
    int writers = sizes[0].value;
    int steps = sizes[2].value;
    int total = writers + sizes[1].value;

    pthread_t threads[2 * MAX_THREADS];
    for (int i = 0; i < total; i++) {
        pthread_create(&threads[i], NULL, i < writers ? writer : reader, NULL);
        take_steps(steps);
    }
    for (int i = 0; i < total; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
