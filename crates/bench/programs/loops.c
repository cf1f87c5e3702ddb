/* One operation many times, in a thread of its own beside an idle one:
   `loops private N`, `loops shared N` and `loops yield N`. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static long count;
static volatile int shared;
static const char *what;

static void touch_private(void) {
    volatile int *cells = calloc(1024, sizeof *cells);
    for (long i = 0; i < count; i++)
        cells[i & 1023] = (int)i;
    free((void *)cells);
}

static void touch_shared(void) {
    for (long i = 0; i < count; i++)
        shared = (int)i;
}

static void yield(void) {
    for (long i = 0; i < count; i++)
        sched_yield();
}

static void *work(void *unused) {
    if (strcmp(what, "private") == 0)
        touch_private();
    else if (strcmp(what, "shared") == 0)
        touch_shared();
    else
        yield();
    return unused;
}

static void *other(void *unused) {
    shared = -1;
    if (strcmp(what, "yield") == 0)
        yield();
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    what = argv[1];
    count = atol(argv[2]);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, work, NULL);
    pthread_create(&threads[1], NULL, other, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
