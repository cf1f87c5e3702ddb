/*
 * Writers that fill a buffer, and a checker that empties it from time to time
 * and adds up how much it found. Another counter says how much was written.
 *
 * The bug: every second writer stores its item and moves the position on
 * without the lock, and takes it for the counter alone. If such a writer has
 * loaded the position and somebody else changes it, the writer stores a stale
 * one back. The flag that stops the checker is set without the lock, too. In
 * the fix everybody holds the lock.
 *
 * Published: RankChecker, 5 threads, 12 schedules at (0,0,2,1).
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_WRITERS = 32, MAX_ITEMS = 1000, MAX_SLOTS = 1000 };

static pthread_mutex_t buffer_lock = PTHREAD_MUTEX_INITIALIZER;
/* Larger than it is said to be: every careless writer may store one item too many. */
static int buffer[MAX_SLOTS + MAX_WRITERS];
static int position;
static int slots;
static int written;
static int emptied;
static bool stop;
static int items_each;

/* The lock as taken by those who forget it in the buggy program. */
#ifdef FIXED
static void lock_carelessly(void) {
    pthread_mutex_lock(&buffer_lock);
}

static void unlock_carelessly(void) {
    pthread_mutex_unlock(&buffer_lock);
}
#else
static void lock_carelessly(void) {
}

static void unlock_carelessly(void) {
}
#endif

static bool store(int item) {
    if (position >= slots) {
        return false;
    }
    buffer[position] = item;
    position += 1;
    return true;
}

static void *careful_writer(void *argument) {
    int id = (int)(intptr_t)argument;
    for (int i = 0; i < items_each; i++) {
        pthread_mutex_lock(&buffer_lock);
        if (store(id)) {
            written += 1;
        }
        pthread_mutex_unlock(&buffer_lock);
    }
    return NULL;
}

static void *careless_writer(void *argument) {
    int id = (int)(intptr_t)argument;
    for (int i = 0; i < items_each; i++) {
        lock_carelessly();
        bool stored = store(id);
        unlock_carelessly();
        if (stored) {
            pthread_mutex_lock(&buffer_lock);
            written += 1;
            pthread_mutex_unlock(&buffer_lock);
        }
    }
    return NULL;
}

static void *checker(void *unused) {
    bool stopped = false;
    while (!stopped) {
        pthread_mutex_lock(&buffer_lock);
        emptied += position;
        position = 0;
        stopped = stop;
        pthread_mutex_unlock(&buffer_lock);
        sched_yield();
    }
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"writers", 2, 2, MAX_WRITERS}, {"items", 1, 1, MAX_ITEMS}, {"slots", 10, 1, MAX_SLOTS}};
    read_sizes(argc, argv, sizes, 3);
    int writers = sizes[0].value;
    items_each = sizes[1].value;
    slots = sizes[2].value;

    pthread_t checker_thread;
    pthread_t threads[MAX_WRITERS];
    pthread_create(&checker_thread, NULL, checker, NULL);
    for (int i = 0; i < writers; i++) {
        pthread_create(&threads[i], NULL, i % 2 == 0 ? careful_writer : careless_writer, (void *)(intptr_t)i);
    }
    for (int i = 0; i < writers; i++) {
        pthread_join(threads[i], NULL);
    }
    lock_carelessly();
    stop = true;
    unlock_carelessly();
    pthread_join(checker_thread, NULL);
    assert(written == emptied + position);
    return 0;
}
