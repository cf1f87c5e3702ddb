/*
 * A clock with the time in hours, minutes, seconds and milliseconds, all since
 * the start. One thread refreshes the seconds from the system's time; another
 * brings the minutes and the hours up to date.
 *
 * The bug: minutes and hours are each derived from the seconds in a critical
 * section of their own. If the seconds are refreshed in between, the hours are
 * ahead of the minutes. Each of the methods is correct alone, so of the pairs
 * to be run at the same time only set_time with refresh_secs is of interest.
 * The fix derives both in one critical section.
 *
 * Published: CorrRT ranks this pair at 25 % and the others at 0 %.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_REFRESHES = 500, HOUR_IN_MILLIS = 3600000 };

static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static int hours;
static int mins;
static int secs;
static int millis;
static int refreshes;

/* In place of the system's time: an hour more at every look. */
static int system_time(void) {
    return millis + HOUR_IN_MILLIS;
}

/* The caller holds the lock, here and in derive_hours. */
static void derive_mins(void) {
    mins = secs / 60;
}

static void derive_hours(void) {
    hours = secs / 3600;
}

#ifdef FIXED
static void set_time(void) {
    pthread_mutex_lock(&clock_lock);
    derive_mins();
    derive_hours();
    pthread_mutex_unlock(&clock_lock);
}
#else
static void set_mins(void) {
    pthread_mutex_lock(&clock_lock);
    derive_mins();
    pthread_mutex_unlock(&clock_lock);
}

static void set_hours(void) {
    pthread_mutex_lock(&clock_lock);
    derive_hours();
    pthread_mutex_unlock(&clock_lock);
}

static void set_time(void) {
    set_mins();
    set_hours();
}
#endif

static void *refresh_secs(void *unused) {
    for (int i = 0; i < refreshes; i++) {
        pthread_mutex_lock(&clock_lock);
        millis = system_time();
        secs = millis / 1000;
        pthread_mutex_unlock(&clock_lock);
    }
    return unused;
}

static void *setter(void *unused) {
    set_time();
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"refreshes", 1, 1, MAX_REFRESHES}};
    read_sizes(argc, argv, sizes, 1);
    refreshes = sizes[0].value;

    pthread_t threads[2];
    pthread_create(&threads[0], NULL, setter, NULL);
    pthread_create(&threads[1], NULL, refresh_secs, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(hours == mins / 60);
    return 0;
}
