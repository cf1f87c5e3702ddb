/*
 * The cleaner thread of an object cache, which cleans, sleeps for an interval
 * and cleans again. Who changes the interval interrupts the cleaner if it
 * sleeps. An interrupt that meets no sleeper stays pending, as in Java, and
 * the cleaner expects it during its sleep only.
 *
 * The bug: the cleaner notes that it sleeps without the lock under which the
 * note is read. The setter sees the note, the cleaner wakes up by itself and
 * goes on to clean, and the interrupt reaches it there. In the fix the cleaner
 * holds the lock when it changes the note, and drops a pending interrupt in
 * the same critical section. A sleep is modelled as a number of yields.
 */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "sizes.h"

enum { MAX_CLEANINGS = 1000, MAX_SETTINGS = 1000 };

/* What the system keeps for a thread that can be interrupted. */
static pthread_mutex_t interrupt_lock = PTHREAD_MUTEX_INITIALIZER;
static bool interrupt_pending;

static pthread_mutex_t cleaner_lock = PTHREAD_MUTEX_INITIALIZER;
static bool sleeping;
static int interval = 1;
static int cleanings;
static int settings;

static void interrupt(void) {
    pthread_mutex_lock(&interrupt_lock);
    interrupt_pending = true;
    pthread_mutex_unlock(&interrupt_lock);
}

static bool take_interrupt(void) {
    pthread_mutex_lock(&interrupt_lock);
    bool taken = interrupt_pending;
    interrupt_pending = false;
    pthread_mutex_unlock(&interrupt_lock);
    return taken;
}

#ifdef FIXED
static int begin_sleep(void) {
    pthread_mutex_lock(&cleaner_lock);
    sleeping = true;
    int duration = interval;
    pthread_mutex_unlock(&cleaner_lock);
    return duration;
}

static void end_sleep(void) {
    pthread_mutex_lock(&cleaner_lock);
    sleeping = false;
    take_interrupt();
    pthread_mutex_unlock(&cleaner_lock);
}

static void set_interval(int duration) {
    pthread_mutex_lock(&cleaner_lock);
    interval = duration;
    if (sleeping) {
        interrupt();
    }
    pthread_mutex_unlock(&cleaner_lock);
}
#else
static int begin_sleep(void) {
    sleeping = true;
    return interval;
}

static void end_sleep(void) {
    sleeping = false;
}

static void set_interval(int duration) {
    interval = duration;
    pthread_mutex_lock(&cleaner_lock);
    if (sleeping) {
        interrupt();
    }
    pthread_mutex_unlock(&cleaner_lock);
}
#endif

static void sleep_for(int duration) {
    bool interrupted = false;
    for (int i = 0; i < duration && !interrupted; i++) {
        sched_yield();
        interrupted = take_interrupt();
    }
}

static void clean(void) {
    bool interrupted = take_interrupt();
    assert(!interrupted);
}

static void *cleaner(void *unused) {
    clean();
    for (int i = 0; i < cleanings; i++) {
        sleep_for(begin_sleep());
        end_sleep();
        clean();
    }
    return unused;
}

static void *setter(void *unused) {
    for (int i = 0; i < settings; i++) {
        set_interval(2);
    }
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"cleanings", 1, 1, MAX_CLEANINGS}, {"settings", 1, 1, MAX_SETTINGS}};
    read_sizes(argc, argv, sizes, 2);
    cleanings = sizes[0].value;
    settings = sizes[1].value;

    pthread_t threads[2];
    pthread_create(&threads[0], NULL, cleaner, NULL);
    pthread_create(&threads[1], NULL, setter, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
