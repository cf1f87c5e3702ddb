/*
 * The example of figure 1 of the PECAN paper: two shared variables and three
 * races, by the labels below (2,5), (2,6) and (3,7). Statement 7 runs only if
 * statement 6 sees what 2 has written.
 *
 * The bug is race (3,7): from the run 1,5,2,3,6,7, in which nothing fails,
 * PECAN predicts 1,5,2,6,7,3, in which statement 3 finds y set and 4 is
 * reached. The fix runs the whole of each thread under one lock.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_PAIRS = 32 };

/* Volatile so that an optimising compiler, too, does every access of the figure. */
static volatile int x;
static volatile int y;

#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void begin(void) {
    pthread_mutex_lock(&lock);
}

static void end(void) {
    pthread_mutex_unlock(&lock);
}
#else
static void begin(void) {
}

static void end(void) {
}
#endif

static void *thread_1(void *unused) {
    begin();
    /* 1 */ y = 0;
    /* 2 */ x = 1;
    /* 3 */ if (y != 0) {
        /* 4 */ assert(!"the error of figure 1");
    }
    end();
    return unused;
}

static void *thread_2(void *unused) {
    begin();
    /* 5 */ x = 0;
    /* 6 */ if (x != 0) {
        /* 7 */ y = 1;
    }
    end();
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"pairs", 1, 1, MAX_PAIRS}};
    read_sizes(argc, argv, sizes, 1);
    int count = 2 * sizes[0].value;

    pthread_t threads[2 * MAX_PAIRS];
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, i % 2 == 0 ? thread_1 : thread_2, NULL);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
