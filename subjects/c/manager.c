/*
 * A manager of memory blocks. Releasers announce a block to be freed by raising
 * a flag; a handler lowers the flag and takes one off the blocks still wanted.
 * A releaser that finds itself alone also counts the block as released.
 *
 * The bug: the flag, the number of announcements and the two counters are
 * tested and set in separate critical sections, or in none. Two releasers that
 * announce at the same time both find that they are not alone, and a block is
 * freed without being counted; two that announce one after the other before
 * the handler has seen the first both count, but it is one block. In the fix
 * one lock covers all of it, and only a lowered flag may be raised.
 *
 * Published: RankChecker, 6 threads, 33 schedules at (1,all,2,1); PECAN, 5
 * threads, 158 events, 15 races predicted, 14 real, 1 with an exception.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "sizes.h"

enum { MAX_BLOCKS = 1000, MAX_RELEASERS = 32 };

#ifdef FIXED
static pthread_mutex_t manager_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t manager_changed = PTHREAD_COND_INITIALIZER;
static bool flag;
static int wanted;
static int released;

static void *handler(void *unused) {
    pthread_mutex_lock(&manager_lock);
    while (wanted > 0) {
        while (!flag) {
            pthread_cond_wait(&manager_changed, &manager_lock);
        }
        wanted -= 1;
        flag = false;
        pthread_cond_broadcast(&manager_changed);
    }
    pthread_mutex_unlock(&manager_lock);
    return unused;
}

static void *releaser(void *unused) {
    pthread_mutex_lock(&manager_lock);
    while (wanted > 0) {
        if (flag) {
            pthread_cond_wait(&manager_changed, &manager_lock);
        } else {
            flag = true;
            released += 1;
            pthread_cond_broadcast(&manager_changed);
        }
    }
    pthread_mutex_unlock(&manager_lock);
    return unused;
}
#else
static pthread_mutex_t released_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
/* Volatile so that an optimising compiler, too, loads them in every pass of a loop. */
static volatile bool flag;
static volatile int wanted;
static int released;
static int notes;

static void *handler(void *unused) {
    while (wanted > 0) {
        while (!flag) {
            sched_yield();
        }
        wanted -= 1;
        flag = false;
    }
    return unused;
}

static int change_notes(int difference) {
    pthread_mutex_lock(&notes_lock);
    notes += difference;
    int left = notes;
    pthread_mutex_unlock(&notes_lock);
    return left;
}

static void release(void) {
    change_notes(1);
    flag = true;
    if (change_notes(0) == 1) {
        pthread_mutex_lock(&released_lock);
        released += 1;
        pthread_mutex_unlock(&released_lock);
    }
    change_notes(-1);
}

static int read_wanted(void) {
    pthread_mutex_lock(&released_lock);
    int seen = wanted;
    pthread_mutex_unlock(&released_lock);
    return seen;
}

static void *releaser(void *unused) {
    for (;;) {
        while (flag && wanted > 0) {
            sched_yield();
        }
        int seen = read_wanted();
        if (seen <= 0) {
            return unused;
        }
        release();
        while (flag && wanted == seen) {
            sched_yield();
        }
    }
}
#endif

int main(int argc, char **argv) {
    struct size sizes[] = {{"blocks", 1, 1, MAX_BLOCKS}, {"releasers", 2, 1, MAX_RELEASERS}};
    read_sizes(argc, argv, sizes, 2);
    int blocks = sizes[0].value;
    int releasers = sizes[1].value;
    wanted = blocks;

    pthread_t handler_thread;
    pthread_t threads[MAX_RELEASERS];
    pthread_create(&handler_thread, NULL, handler, NULL);
    for (int i = 0; i < releasers; i++) {
        pthread_create(&threads[i], NULL, releaser, NULL);
    }
    for (int i = 0; i < releasers; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_join(handler_thread, NULL);
    assert(released == blocks);
    return 0;
}
