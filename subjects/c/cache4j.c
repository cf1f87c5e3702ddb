/*
 * An object cache with a method that cleans out what has expired. Put, get and
 * remove hold the lock of the cache.
 *
 * The bug is in clean: it copies the list of entries under the lock, but then
 * tests each entry, and removes it, in steps of its own. Between the test and
 * the removal somebody may put a new object under the same id; clean removes
 * the new one, and a reader misses what was just put. The test also reads the
 * entry without the lock. The fix tests and removes under one hold of the lock.
 *
 * Published: RankChecker, 12 threads, no bug up to (2,all,2,1); PECAN, 5
 * threads, 1077 events, 5 races and 2 AV predicted, 5 real, 2 false.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "sizes.h"

enum { MAX_ENTRIES = 100, EXPIRED_AT = 10, NOW = 20, ABSENT = 0, OLD_OBJECT = 1, NEW_OBJECT = 2 };

struct entry {
    int object;
    int create_time;
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry entries[MAX_ENTRIES];
static int objects_held;
static int ids;

/* The caller holds the lock. */
static void set_object(int id, int object) {
    objects_held += (object != ABSENT) - (entries[id].object != ABSENT);
    entries[id].object = object;
}

static void put(int id, int object, int create_time) {
    pthread_mutex_lock(&cache_lock);
    set_object(id, object);
    entries[id].create_time = create_time;
    pthread_mutex_unlock(&cache_lock);
}

static int get(int id) {
    pthread_mutex_lock(&cache_lock);
    int object = entries[id].object;
    pthread_mutex_unlock(&cache_lock);
    return object;
}

static bool expired(const struct entry *entry) {
    return entry->object != ABSENT && entry->create_time < EXPIRED_AT;
}

#ifdef FIXED
static void clean(void) {
    for (int id = 0; id < ids; id++) {
        pthread_mutex_lock(&cache_lock);
        if (expired(&entries[id])) {
            set_object(id, ABSENT);
        }
        pthread_mutex_unlock(&cache_lock);
    }
}
#else
static void remove_object(int id) {
    pthread_mutex_lock(&cache_lock);
    set_object(id, ABSENT);
    pthread_mutex_unlock(&cache_lock);
}

static int list_held(int *held) {
    int count = 0;
    pthread_mutex_lock(&cache_lock);
    for (int id = 0; id < ids; id++) {
        if (entries[id].object != ABSENT) {
            held[count++] = id;
        }
    }
    pthread_mutex_unlock(&cache_lock);
    return count;
}

static void clean(void) {
    int held[MAX_ENTRIES];
    int count = list_held(held);
    for (int i = 0; i < count; i++) {
        if (expired(&entries[held[i]])) {
            remove_object(held[i]);
        }
    }
}
#endif

static void *cleaner(void *unused) {
    clean();
    return unused;
}

static void *user(void *unused) {
    for (int id = 0; id < ids; id++) {
        put(id, NEW_OBJECT, NOW);
    }
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"entries", 1, 1, MAX_ENTRIES}};
    read_sizes(argc, argv, sizes, 1);
    ids = sizes[0].value;

    for (int id = 0; id < ids; id++) {
        put(id, OLD_OBJECT, 0);
    }
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, cleaner, NULL);
    pthread_create(&threads[1], NULL, user, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    for (int id = 0; id < ids; id++) {
        assert(get(id) == NEW_OBJECT);
    }
    return 0;
}
