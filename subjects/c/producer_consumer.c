/*
 * Producers put items into a bounded ring and consumers count those they take.
 * A producer reports when it has finished; a consumer leaves when the ring is
 * empty and halted.
 *
 * Two bugs. First, the ring halts when one producer has finished: a consumer
 * that finds it empty then leaves, and what the other producers put later is
 * never counted. Second, with two consumers or more, each counts under a lock
 * of its own, so an increment of the total can be lost. The fix halts after
 * the last producer and gives all consumers one lock. The buggy program joins
 * the consumers only, since a late producer may wait for room for ever.
 *
 * Published: RankChecker, 7 threads, 1 schedule at (0,0,2,1).
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_THREADS = 32, MAX_ITEMS = 10000, MAX_SLOTS = 64 };

static int producers;
static int items_each;
static int slots;

static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ring_changed = PTHREAD_COND_INITIALIZER;
static int ring[MAX_SLOTS];
static int oldest;
static int used;
static int finished_producers;

static pthread_mutex_t total_locks[MAX_THREADS];
static int total;

/* The caller holds the ring lock. */
static bool halted(void) {
#ifdef FIXED
    return finished_producers == producers;
#else
    return finished_producers > 0;
#endif
}

static pthread_mutex_t *total_lock_of(int consumer_id) {
#ifdef FIXED
    consumer_id = 0;
#endif
    return &total_locks[consumer_id];
}

static void put(int item) {
    pthread_mutex_lock(&ring_lock);
    while (used == slots) {
        pthread_cond_wait(&ring_changed, &ring_lock);
    }
    ring[(oldest + used) % slots] = item;
    if (used == 0) {
        pthread_cond_broadcast(&ring_changed);
    }
    used += 1;
    pthread_mutex_unlock(&ring_lock);
}

/* False when there is nothing left to take. */
static bool get(int *item) {
    pthread_mutex_lock(&ring_lock);
    while (used == 0 && !halted()) {
        pthread_cond_wait(&ring_changed, &ring_lock);
    }
    bool available = used > 0;
    if (available) {
        *item = ring[oldest];
        oldest = (oldest + 1) % slots;
        if (used == slots) {
            pthread_cond_broadcast(&ring_changed);
        }
        used -= 1;
    }
    pthread_mutex_unlock(&ring_lock);
    return available;
}

static void finish(void) {
    pthread_mutex_lock(&ring_lock);
    finished_producers += 1;
    pthread_cond_broadcast(&ring_changed);
    pthread_mutex_unlock(&ring_lock);
}

static void *producer(void *unused) {
    for (int i = 0; i < items_each; i++) {
        put(i);
    }
    finish();
    return unused;
}

static void *consumer(void *argument) {
    pthread_mutex_t *total_lock = total_lock_of((int)(intptr_t)argument);
    int item;
    while (get(&item)) {
        pthread_mutex_lock(total_lock);
        total += 1;
        pthread_mutex_unlock(total_lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"producers", 2, 1, MAX_THREADS},
                           {"items", 1, 1, MAX_ITEMS},
                           {"consumers", 1, 1, MAX_THREADS},
                           {"slots", 2, 1, MAX_SLOTS}};
    read_sizes(argc, argv, sizes, 4);
    producers = sizes[0].value;
    items_each = sizes[1].value;
    int consumers = sizes[2].value;
    slots = sizes[3].value;

    pthread_t producer_threads[MAX_THREADS];
    pthread_t consumer_threads[MAX_THREADS];
    for (int i = 0; i < consumers; i++) {
        pthread_mutex_init(&total_locks[i], NULL);
    }
    for (int i = 0; i < producers; i++) {
        pthread_create(&producer_threads[i], NULL, producer, NULL);
    }
    for (int i = 0; i < consumers; i++) {
        pthread_create(&consumer_threads[i], NULL, consumer, (void *)(intptr_t)i);
    }
    for (int i = 0; i < consumers; i++) {
        pthread_join(consumer_threads[i], NULL);
    }
#ifdef FIXED
    for (int i = 0; i < producers; i++) {
        pthread_join(producer_threads[i], NULL);
    }
#endif
    assert(total == producers * items_each);
    return 0;
}
