/*
 * An object pool after Apache Commons Pool. One thread borrows an object that
 * the factory makes, returns it and removes it, one sets another factory if no
 * object is active, and one counts objects as active.
 *
 * It exemplifies a race that a branch hides: the user reads the factory without
 * the lock, but the setter writes it, under the lock, only if it comes before
 * the counter. Whether there is anything to race with thus depends on the order
 * of two other threads, and on one order out of many: all three take the lock
 * several times and change what the others change, without any effect on a
 * branch. The race causes no failure. In the fix the user holds the lock, too.
 *
 * Published test cases: reachability testing 147, TPAIR 23, race-equivalent 2.
 */
#include <pthread.h>

#include "sizes.h"

enum { MAX_USERS = 32, OLD_FACTORY = 1, NEW_FACTORY = 2 };

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static int factory = OLD_FACTORY;
static int num_active;
static int idle_objects = 1;
static int changes;

#ifdef FIXED
static int read_factory(void) {
    pthread_mutex_lock(&pool_lock);
    int seen = factory;
    pthread_mutex_unlock(&pool_lock);
    return seen;
}
#else
static int read_factory(void) {
    return factory;
}
#endif

static void change_idle_objects(int by) {
    pthread_mutex_lock(&pool_lock);
    idle_objects += by;
    changes += 1;
    pthread_mutex_unlock(&pool_lock);
}

struct use {
    int made_by;
    int passivated_by;
};

static void *user(void *use) {
    change_idle_objects(-1);
    ((struct use *)use)->made_by = read_factory();
    change_idle_objects(1);
    ((struct use *)use)->passivated_by = read_factory();
    change_idle_objects(-1);
    return NULL;
}

static void *setter(void *unused) {
    pthread_mutex_lock(&pool_lock);
    if (num_active == 0) {
        factory = NEW_FACTORY;
    }
    pthread_mutex_unlock(&pool_lock);
    change_idle_objects(1);
    return unused;
}

static void *counter(void *unused) {
    pthread_mutex_lock(&pool_lock);
    num_active += 1;
    pthread_mutex_unlock(&pool_lock);
    change_idle_objects(-1);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"users", 1, 1, MAX_USERS}};
    read_sizes(argc, argv, sizes, 1);
    int users = sizes[0].value;

    struct use uses[MAX_USERS];
    pthread_t threads[MAX_USERS];
    pthread_t setter_thread;
    pthread_t counter_thread;
    for (int i = 0; i < users; i++) {
        pthread_create(&threads[i], NULL, user, &uses[i]);
    }
    pthread_create(&setter_thread, NULL, setter, NULL);
    pthread_create(&counter_thread, NULL, counter, NULL);
    for (int i = 0; i < users; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_join(setter_thread, NULL);
    pthread_join(counter_thread, NULL);
    return 0;
}
