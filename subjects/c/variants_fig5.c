/*
 * The example of figure 5 of the paper on execution-variants: a branch that
 * decides whether a thread locks before it writes x. The numbers are the
 * figure's lines.
 *
 * It exemplifies race-equivalence. The order of T1:10 and T2:23 decides the
 * branch: if T1 comes first it writes under lock a, as T2 does; if it comes
 * second it writes without a lock, and the locking is inconsistent. One run of
 * each of the two groups is enough to see that. The race causes no failure.
 * The fix takes the lock for the test and for either write.
 */
#include <pthread.h>

#include "sizes.h"

enum { MAX_WRITERS = 32 };

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static int x;
static int y = 1;

#ifdef FIXED
static void *thread_1(void *unused) {
    pthread_mutex_lock(&a);
    x = x == 0 ? 2 : 3;
    pthread_mutex_unlock(&a);
    return unused;
}
#else
static void *thread_1(void *unused) {
    /* 10 */ if (x == 0) {
        /* 11 */ pthread_mutex_lock(&a);
        /* 12 */ x = 2;
        /* 13 */ pthread_mutex_unlock(&a);
    } else {
        /* 15 */ x = 3;
    }
    return unused;
}
#endif

static void *thread_2(void *unused) {
    /* 20 */ pthread_mutex_lock(&a);
    /* 21 */ pthread_mutex_lock(&b);
    /* 22 */ int read = y;
    /* 23 */ x = read;
    /* 24 */ pthread_mutex_unlock(&b);
    /* 25 */ pthread_mutex_unlock(&a);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"writers", 1, 1, MAX_WRITERS}};
    read_sizes(argc, argv, sizes, 1);
    int writers = sizes[0].value;

    pthread_t brancher;
    pthread_t threads[MAX_WRITERS];
    pthread_create(&brancher, NULL, thread_1, NULL);
    for (int i = 0; i < writers; i++) {
        pthread_create(&threads[i], NULL, thread_2, NULL);
    }
    pthread_join(brancher, NULL);
    for (int i = 0; i < writers; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
