/*
 * A value that every thread increments under a lock, though not all under the
 * same one. The observers expect to find their own increment and no other.
 *
 * The bug: the plain incrementers hold a lock of their own, which does not
 * exclude an observer. An increment that falls between the observer's first
 * read and its check makes the value too large (or, overwritten, is lost). In
 * the fix both kinds of thread hold the same lock.
 *
 * Published, schedules to the bug for 1 observer and 7 incrementers: RFF 1,
 * POS 1, SURW 7, PERIOD 4-10, PCT3 40-88. Guided test, states: (1,10) 3526,
 * (1,20) 21391.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"
#include "steps.h"

enum { MAX_THREADS = 100 };

static pthread_mutex_t observer_lock = PTHREAD_MUTEX_INITIALIZER;
#ifdef FIXED
static pthread_mutex_t *const incrementer_lock = &observer_lock;
#else
static pthread_mutex_t other_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *const incrementer_lock = &other_lock;
#endif
/* Volatile so that an optimising compiler, too, loads it again for the check. */
static volatile int value;

static void *observer(void *unused) {
    pthread_mutex_lock(&observer_lock);
    int before = value;
    value += 1;
    assert(value == before + 1);
    pthread_mutex_unlock(&observer_lock);
    return unused;
}

static void *incrementer(void *unused) {
    pthread_mutex_lock(incrementer_lock);
    value += 1;
    pthread_mutex_unlock(incrementer_lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"observers", 1, 1, MAX_THREADS}, {"incrementers", 1, 1, MAX_THREADS}, STEPS};
    read_sizes(argc, argv, sizes, 3);
    int observers = sizes[0].value;
    int steps = sizes[2].value;
    int total = observers + sizes[1].value;

    pthread_t threads[2 * MAX_THREADS];
    for (int i = 0; i < total; i++) {
        pthread_create(&threads[i], NULL, i < observers ? observer : incrementer, NULL);
        take_steps(steps);
    }
    for (int i = 0; i < total; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
