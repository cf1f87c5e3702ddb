/*
 * The example of figure 5 of the PECAN paper, for schedules that have to
 * respect a lock: the accesses v3 and v8 to x race, though the first is made
 * under the lock that the second thread has just released. To show it, a
 * schedule has to move the lock v1 together with v3: v5,v6,v7,v1,v2,v3,v8.
 *
 * The bug: the second thread relies on the value of x without waiting for it.
 * The fix is the order between v2 and v5 that the figure has: v2 starts the
 * second thread, inside the critical section, so that v5 waits for v4 and v3
 * comes before v8. A predictor that does not connect the two still reports the
 * race of the fixed program, and must find that no schedule shows it.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_SECONDS = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x;
static int y;
static pthread_t seconds[MAX_SECONDS];
static int count;

static void *second(void *unused) {
    /* v5 */ pthread_mutex_lock(&lock);
    /* v6 */ y += 1;
    /* v7 */ pthread_mutex_unlock(&lock);
    /* v8 */ int seen = x;
    assert(seen == 1);
    return unused;
}

static void start_seconds(void) {
    for (int i = 0; i < count; i++) {
        pthread_create(&seconds[i], NULL, second, NULL);
    }
}

static void *first(void *unused) {
    /* v1 */ pthread_mutex_lock(&lock);
#ifdef FIXED
    /* v2 */ start_seconds();
#else
    /* v2 */ y += 1;
#endif
    /* v3 */ x = 1;
    /* v4 */ pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"seconds", 1, 1, MAX_SECONDS}};
    read_sizes(argc, argv, sizes, 1);
    count = sizes[0].value;

    pthread_t first_thread;
    pthread_create(&first_thread, NULL, first, NULL);
#ifndef FIXED
    start_seconds();
#endif
    pthread_join(first_thread, NULL);
    for (int i = 0; i < count; i++) {
        pthread_join(seconds[i], NULL);
    }
    return 0;
}
