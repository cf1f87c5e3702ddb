/*
 * A bounded queue with one item in it, to which threads add, and from which
 * threads take, if there is room and something to take.
 *
 * Two bugs of one kind: the look at the queue and the change of it are separate
 * critical sections. Two threads that see the last free slot both add; two that
 * see the last item both take it. There is no data race. The fix looks and
 * changes under one hold of the lock.
 *
 * Published: CorrRT, 3 threads, 2 high-level races, both found.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_THREADS = 32, SLOTS = 2 };

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static int items[SLOTS];
static int head;
static int tail = 1;

static int length(void) {
    return tail - head;
}

/* Between the look at the queue and the change. */
static void relock(void) {
#ifndef FIXED
    pthread_mutex_unlock(&queue_lock);
    pthread_mutex_lock(&queue_lock);
#endif
}

static void *adder(void *unused) {
    pthread_mutex_lock(&queue_lock);
    if (length() < SLOTS) {
        relock();
        items[tail % SLOTS] = tail;
        tail += 1;
    }
    pthread_mutex_unlock(&queue_lock);
    return unused;
}

static void *taker(void *unused) {
    pthread_mutex_lock(&queue_lock);
    if (length() > 0) {
        relock();
        head += 1;
    }
    pthread_mutex_unlock(&queue_lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"adders", 2, 0, MAX_THREADS}, {"takers", 0, 0, MAX_THREADS}};
    read_sizes(argc, argv, sizes, 2);
    int adders = sizes[0].value;
    int total = adders + sizes[1].value;

    pthread_t threads[2 * MAX_THREADS];
    for (int i = 0; i < total; i++) {
        pthread_create(&threads[i], NULL, i < adders ? adder : taker, NULL);
    }
    for (int i = 0; i < total; i++) {
        pthread_join(threads[i], NULL);
    }
    assert(length() >= 0 && length() <= SLOTS);
    return 0;
}
