/*
 * The example of figure 13 of the paper on execution-variants: that of figure 3
 * with a lock, and with a wait that the other thread ends. The numbers are the
 * figure's lines.
 *
 * It exemplifies infeasible interleavings: nodes of the variant graph in which
 * a thread goes on while it waits, or takes a lock that is taken, are removed.
 * As it stands in the figure the wait has a bug: it has no condition, so a
 * notification that comes first is lost, and thread 1 waits for ever. The fix
 * notes that the notification has come.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "sizes.h"

enum { MAX_WAITERS = 32 };

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t monitor = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t notified = PTHREAD_COND_INITIALIZER;
static int x;
static int y;

#ifdef FIXED
static bool notification_came;

static void wait_for_notification(void) {
    pthread_mutex_lock(&monitor);
    while (!notification_came) {
        pthread_cond_wait(&notified, &monitor);
    }
    pthread_mutex_unlock(&monitor);
}

static void notify_all(void) {
    pthread_mutex_lock(&monitor);
    notification_came = true;
    pthread_cond_broadcast(&notified);
    pthread_mutex_unlock(&monitor);
}
#else
static void wait_for_notification(void) {
    pthread_mutex_lock(&monitor);
    pthread_cond_wait(&notified, &monitor);
    pthread_mutex_unlock(&monitor);
}

static void notify_all(void) {
    pthread_mutex_lock(&monitor);
    pthread_cond_broadcast(&notified);
    pthread_mutex_unlock(&monitor);
}
#endif

static void *thread_1(void *unused) {
    /* 1 */ pthread_mutex_lock(&a);
    /* 2 */ int n = x + y;
    /* 3 */ pthread_mutex_unlock(&a);
    /* 4 */ wait_for_notification();
    /* 5 */ if (n < 0) {
        /* 6 */ puts("negative");
    } else {
        /* 8 */ puts("not negative");
    }
    /* 10 */ printf("y is %d\n", y);
    return unused;
}

static void *thread_2(void *unused) {
    /* 20 */ pthread_mutex_lock(&a);
    /* 21 */ x = -10;
    /* 22 */ y = 2;
    /* 23 */ pthread_mutex_unlock(&a);
    /* 24 */ notify_all();
    /* 25 */ printf("x is %d\n", x);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"waiters", 1, 1, MAX_WAITERS}};
    read_sizes(argc, argv, sizes, 1);
    int waiters = sizes[0].value;

    pthread_t notifier;
    pthread_t threads[MAX_WAITERS];
    for (int i = 0; i < waiters; i++) {
        pthread_create(&threads[i], NULL, thread_1, NULL);
    }
    pthread_create(&notifier, NULL, thread_2, NULL);
    pthread_join(notifier, NULL);
    for (int i = 0; i < waiters; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
