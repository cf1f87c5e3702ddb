/*
 * The example of figure 7 of the paper on execution-variants: a lock that is
 * taken before a loop and released inside it. The numbers are the figure's
 * lines.
 *
 * It exemplifies access-manners. Only the first iteration writes x under the
 * lock; the others write without it and release what they do not hold, so that
 * runs with two iterations and with three are race-equivalent, while a run with
 * one is not. The lock is an error-checking one, which refuses such a release.
 * The race causes no failure. The fix releases the lock after the loop.
 */
#include <pthread.h>

#include "sizes.h"

enum { MAX_ITERATIONS = 1000, MAX_READERS = 32 };

static pthread_mutex_t a;
static int x;
static int iterations;

#ifdef FIXED
static void *thread_1(void *unused) {
    pthread_mutex_lock(&a);
    for (int i = 0; i < iterations; i++) {
        x = i;
    }
    pthread_mutex_unlock(&a);
    return unused;
}
#else
static void *thread_1(void *unused) {
    /* 1 */ pthread_mutex_lock(&a);
    /* 2 */ for (int i = 0; i < iterations; i++) {
        /* 3 */ x = i;
        /* 4 */ pthread_mutex_unlock(&a);
    }
    return unused;
}
#endif

static void *thread_2(void *seen) {
    /* 20 */ pthread_mutex_lock(&a);
    /* 21 */ *(int *)seen = x;
    /* 22 */ pthread_mutex_unlock(&a);
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"iterations", 2, 1, MAX_ITERATIONS}, {"readers", 1, 1, MAX_READERS}};
    read_sizes(argc, argv, sizes, 2);
    iterations = sizes[0].value;
    int readers = sizes[1].value;

    pthread_mutexattr_t checking;
    pthread_mutexattr_init(&checking);
    pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&a, &checking);

    pthread_t writer;
    pthread_t threads[MAX_READERS];
    int seen[MAX_READERS];
    pthread_create(&writer, NULL, thread_1, NULL);
    for (int i = 0; i < readers; i++) {
        pthread_create(&threads[i], NULL, thread_2, &seen[i]);
    }
    pthread_join(writer, NULL);
    for (int i = 0; i < readers; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
