/*
 * The example of figure 3 of the paper on execution-variants: a thread that
 * branches on the sum of two variables which another thread sets. The numbers
 * are the figure's lines.
 *
 * It exemplifies the grouping of interleavings. From the run T1:1 (x), T2:10,
 * T1:1 (y), T1:2, T2:11, T1:7, T2:12 there are seven execution-variants, V1 to
 * V7, and five branch-affect groups: {V1}, {V2}, {V3,V4}, {V5}, {V6,V7}. The
 * accesses race, but nothing fails. The fix has a lock for the variables.
 */
#include <pthread.h>
#include <stdio.h>

#include "sizes.h"

enum { MAX_SETTERS = 32 };

static int x;
static int y;
static int n;

#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void begin_access(void) {
    pthread_mutex_lock(&lock);
}

static void end_access(void) {
    pthread_mutex_unlock(&lock);
}
#else
static void begin_access(void) {
}

static void end_access(void) {
}
#endif

static void *thread_1(void *unused) {
    begin_access();
    /* 1 */ n = x + y;
    end_access();
    /* 2 */ if (n < 0) {
        /* 3 */ puts("negative");
    } else {
        /* 5 */ puts("not negative");
    }
    begin_access();
    /* 7 */ printf("y is %d\n", y);
    end_access();
    return unused;
}

static void *thread_2(void *unused) {
    begin_access();
    /* 10 */ x = -10;
    end_access();
    begin_access();
    /* 11 */ y = 2;
    end_access();
    begin_access();
    /* 12 */ printf("x is %d\n", x);
    end_access();
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"setters", 1, 1, MAX_SETTERS}};
    read_sizes(argc, argv, sizes, 1);
    int setters = sizes[0].value;

    pthread_t reader;
    pthread_t threads[MAX_SETTERS];
    pthread_create(&reader, NULL, thread_1, NULL);
    for (int i = 0; i < setters; i++) {
        pthread_create(&threads[i], NULL, thread_2, NULL);
    }
    pthread_join(reader, NULL);
    for (int i = 0; i < setters; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
