/*
 * Dekker's algorithm, by which two threads exclude each other from a critical
 * section without a lock. The flags are sequentially consistent atomics.
 *
 * The bug: a thread looks at the other's flag before it raises its own. If both
 * look first, both enter. The fix is the algorithm: a thread raises its flag
 * first, and if the other's is up, too, the turn decides who steps back.
 *
 * Published: CorrRT, 3 threads, 2 high-level races, both found.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_ROUNDS = 1000 };

static atomic_bool wants[2];
static int rounds;
/* Volatile so that an optimising compiler, too, loads it again for the check. */
static volatile int inside;

#ifdef FIXED
static atomic_int turn;

static void enter(int self) {
    int other = 1 - self;
    wants[self] = true;
    while (wants[other]) {
        if (turn != self) {
            wants[self] = false;
            while (turn != self) {
                sched_yield();
            }
            wants[self] = true;
        }
        sched_yield();
    }
}

static void leave(int self) {
    turn = 1 - self;
    wants[self] = false;
}
#else
static void enter(int self) {
    while (wants[1 - self]) {
        sched_yield();
    }
    wants[self] = true;
}

static void leave(int self) {
    wants[self] = false;
}
#endif

static void *compete(void *argument) {
    int self = (int)(intptr_t)argument;
    for (int i = 0; i < rounds; i++) {
        enter(self);
        inside += 1;
        assert(inside == 1);
        inside -= 1;
        leave(self);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"rounds", 1, 1, MAX_ROUNDS}};
    read_sizes(argc, argv, sizes, 1);
    rounds = sizes[0].value;

    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, compete, (void *)(intptr_t)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
