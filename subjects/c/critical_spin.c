/*
 * Two threads that take a turn instead of a lock, and wait in a loop until it
 * is theirs. The turn is not handed over: each thread takes it for itself.
 *
 * The bug: a thread that has taken the turn may lose it before it has looked.
 * If the other has then gone through and will not take a turn again, nobody
 * gives it back, and the first thread waits in its loop for ever: a livelock.
 * The fix holds a lock from taking the turn to the end of the section.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_ROUNDS = 1000 };

/* Volatile so that an optimising compiler, too, loads it in every pass of the loop. */
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
        while (turn != self) {
            sched_yield();
        }
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
