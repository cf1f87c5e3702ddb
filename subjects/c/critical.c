/*
 * Two threads that pass a turn instead of taking a lock. Each takes the turn,
 * is in its critical section as long as the turn is its own, and hands it over.
 *
 * The bug: taking the turn excludes nobody, since neither thread looks at it
 * first. If the other thread takes it, too, the first finds the turn changed
 * while it is still inside. The fix holds a lock while inside.
 *
 * Published: PECAN, 19 events, 16 races and 14 AV predicted, 28 real, 2 with
 * an exception.
 */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_ROUNDS = 1000 };

/* Volatile so that an optimising compiler, too, loads it again for the check. */
static volatile int turn;
static int rounds;

#ifdef FIXED
static pthread_mutex_t section_lock = PTHREAD_MUTEX_INITIALIZER;

static void enter(void) {
    pthread_mutex_lock(&section_lock);
}

static void leave(void) {
    pthread_mutex_unlock(&section_lock);
}
#else
static void enter(void) {
}

static void leave(void) {
}
#endif

static void *take_turns(void *argument) {
    int self = (int)(intptr_t)argument;
    for (int i = 0; i < rounds; i++) {
        enter();
        turn = self;
        assert(turn == self);
        turn = 1 - self;
        leave();
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"rounds", 1, 1, MAX_ROUNDS}};
    read_sizes(argc, argv, sizes, 1);
    rounds = sizes[0].value;

    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, take_turns, (void *)(intptr_t)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
