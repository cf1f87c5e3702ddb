/*
 * A pool of workers with a queue. Main puts all items in the queue, waits until
 * the pool is idle, which is to say that nothing is queued and nothing runs,
 * and relies on all items being done.
 *
 * The bug: a worker takes an item off the queue in one critical section and
 * counts it as running in another. In between the item is in neither, and the
 * pool looks idle. There is no data race. The fix does both in one critical
 * section.
 *
 * Published: CorrRT, 4 threads, 4 high-level races in the whole program, 3
 * found.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "sizes.h"

enum { MAX_WORKERS = 32, MAX_ITEMS = 1000 };

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static int queued;
static int running;
static int done;

static bool take_item(void) {
    pthread_mutex_lock(&pool_lock);
    bool taken = queued > 0;
    if (taken) {
        queued -= 1;
#ifndef FIXED
        pthread_mutex_unlock(&pool_lock);
        pthread_mutex_lock(&pool_lock);
#endif
        running += 1;
    }
    pthread_mutex_unlock(&pool_lock);
    return taken;
}

static void finish_item(void) {
    pthread_mutex_lock(&pool_lock);
    running -= 1;
    done += 1;
    pthread_mutex_unlock(&pool_lock);
}

static void *worker(void *unused) {
    while (take_item()) {
        finish_item();
    }
    return unused;
}

/* Returns how many items are done when the pool is idle. */
static int wait_until_idle(void) {
    for (;;) {
        pthread_mutex_lock(&pool_lock);
        bool idle = queued == 0 && running == 0;
        int done_by_then = done;
        pthread_mutex_unlock(&pool_lock);
        if (idle) {
            return done_by_then;
        }
        sched_yield();
    }
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"workers", 1, 1, MAX_WORKERS}, {"items", 1, 1, MAX_ITEMS}};
    read_sizes(argc, argv, sizes, 2);
    int workers = sizes[0].value;
    int items = sizes[1].value;
    queued = items;

    pthread_t threads[MAX_WORKERS];
    for (int i = 0; i < workers; i++) {
        pthread_create(&threads[i], NULL, worker, NULL);
    }
    assert(wait_until_idle() == items);
    for (int i = 0; i < workers; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
