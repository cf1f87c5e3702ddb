/*
 * Passengers board a small plane through a ring of seats. Producers fill seats
 * and consumers empty them; one seat of the ring stays free, to tell a full
 * ring from an empty one.
 *
 * The bug: a producer that finds the ring full waits once, and does not look
 * again when it is woken. Two producers wait, one seat is freed, both are
 * woken, and the second one fills the seat that must stay free: the ring looks
 * empty and its passengers are lost. The last producer to fill a seat finds
 * more of them still to be taken than the ring can hold; but for this check, a
 * consumer would wait for ever. There is no data race. The fix waits in a loop.
 *
 * Published: RankChecker, 5 threads, 425 schedules at (2,1,2,1).
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_THREADS = 32, MAX_FILLS = 1000, MAX_SEATS = 64 };

static pthread_mutex_t plane_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t plane_changed = PTHREAD_COND_INITIALIZER;
static int ring[MAX_SEATS];
static int seats;
static int first;
static int last;
static int fills_left;
static int takes_left;
static int fills_each;

static bool full(void) {
    return (last + 1) % seats == first;
}

static void wait_while_full(void) {
#ifdef FIXED
    while (full()) {
        pthread_cond_wait(&plane_changed, &plane_lock);
    }
#else
    if (full()) {
        pthread_cond_wait(&plane_changed, &plane_lock);
    }
#endif
}

static void fill(int passenger) {
    pthread_mutex_lock(&plane_lock);
    wait_while_full();
    ring[last] = passenger;
    fills_left -= 1;
    if (fills_left == 0) {
        assert(takes_left < seats);
    }
    last = (last + 1) % seats;
    pthread_cond_broadcast(&plane_changed);
    pthread_mutex_unlock(&plane_lock);
}

static int empty(void) {
    pthread_mutex_lock(&plane_lock);
    while (first == last) {
        pthread_cond_wait(&plane_changed, &plane_lock);
    }
    int passenger = ring[first];
    takes_left -= 1;
    first = (first + 1) % seats;
    pthread_cond_broadcast(&plane_changed);
    pthread_mutex_unlock(&plane_lock);
    return passenger;
}

static void *producer(void *argument) {
    for (int i = 0; i < fills_each; i++) {
        fill((int)(intptr_t)argument);
    }
    return NULL;
}

static void *consumer(void *argument) {
    intptr_t share = (intptr_t)argument;
    for (int i = 0; i < share; i++) {
        empty();
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"producers", 3, 1, MAX_THREADS},
                           {"consumers", 1, 1, MAX_THREADS},
                           {"fills", 1, 1, MAX_FILLS},
                           {"seats", 2, 2, MAX_SEATS}};
    read_sizes(argc, argv, sizes, 4);
    int producers = sizes[0].value;
    int consumers = sizes[1].value;
    fills_each = sizes[2].value;
    seats = sizes[3].value;
    fills_left = producers * fills_each;
    takes_left = fills_left;

    pthread_t producer_threads[MAX_THREADS];
    pthread_t consumer_threads[MAX_THREADS];
    int passengers = fills_left;
    for (int i = 0; i < producers; i++) {
        pthread_create(&producer_threads[i], NULL, producer, (void *)(intptr_t)i);
    }
    for (int i = 0; i < consumers; i++) {
        int share = passengers / consumers + (i < passengers % consumers);
        pthread_create(&consumer_threads[i], NULL, consumer, (void *)(intptr_t)share);
    }
    for (int i = 0; i < producers; i++) {
        pthread_join(producer_threads[i], NULL);
    }
    for (int i = 0; i < consumers; i++) {
        pthread_join(consumer_threads[i], NULL);
    }
    return 0;
}
