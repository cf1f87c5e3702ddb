/*
 * The pinger of a network monitor, after jNetMap. In every round it waits, for
 * ever if the interval is zero and for the interval otherwise, and then reads
 * the interval from the settings again. A window writes a new interval and
 * notifies the pinger.
 *
 * It exemplifies a loop with infinitely many interleavings of which few differ:
 * only the order of the first test and the window's write decides a branch.
 * The bug is that testing the interval and waiting are not atomic. If the
 * window notifies in between, nobody waits yet, and the pinger then waits for
 * ever. The fix tests and waits under the lock under which the interval is
 * written. A sleep is modelled as a yield. With 0 rounds the loop is endless,
 * as in the original.
 *
 * Published test cases: TPAIR infinitely many, race-equivalent 5.
 */
#include <pthread.h>
#include <sched.h>

#include "sizes.h"

enum { MAX_ROUNDS = 10000, SETTING = 5 };

static pthread_mutex_t pinger_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t setting_changed = PTHREAD_COND_INITIALIZER;
static int ping_interval;
static int rounds;

#ifdef FIXED
static void wait_for_round(void) {
    pthread_mutex_lock(&pinger_lock);
    while (ping_interval <= 0) {
        pthread_cond_wait(&setting_changed, &pinger_lock);
    }
    pthread_mutex_unlock(&pinger_lock);
    sched_yield();
}

static void set_interval(int interval) {
    pthread_mutex_lock(&pinger_lock);
    ping_interval = interval;
    pthread_mutex_unlock(&pinger_lock);
}
#else
static void wait_for_round(void) {
    if (ping_interval <= 0) {
        pthread_mutex_lock(&pinger_lock);
        pthread_cond_wait(&setting_changed, &pinger_lock);
        pthread_mutex_unlock(&pinger_lock);
    } else {
        sched_yield();
    }
}

static void set_interval(int interval) {
    ping_interval = interval;
}
#endif

static void *pinger(void *unused) {
    for (int i = 0; rounds == 0 || i < rounds; i++) {
        wait_for_round();
        set_interval(SETTING);
    }
    return unused;
}

static void *window(void *unused) {
    set_interval(SETTING);
    pthread_mutex_lock(&pinger_lock);
    pthread_cond_broadcast(&setting_changed);
    pthread_mutex_unlock(&pinger_lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"rounds", 2, 0, MAX_ROUNDS}};
    read_sizes(argc, argv, sizes, 1);
    rounds = sizes[0].value;

    pthread_t threads[2];
    pthread_create(&threads[0], NULL, pinger, NULL);
    pthread_create(&threads[1], NULL, window, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
