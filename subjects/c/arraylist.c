/*
 * Two array lists, each behind its lock. One thread asks whether the first
 * contains all elements of the second, while others remove elements from the
 * second.
 *
 * The bug: the bulk method locks its receiver only and iterates over the other
 * collection without a lock. If that one changes between two steps, the
 * fail-fast iterator fails. The fix, in synchronised.h, iterates over a copy
 * that was made under the lock of the other collection.
 *
 * Published: PECAN, 294 events, 6 races, 1 AV and 4 ASV predicted, 11 real, 2
 * with an exception.
 */
#include <pthread.h>
#include <stdint.h>

#include "array_elements.h"
#include "sizes.h"
#include "synchronised.h"

enum { MAX_CHANGERS = 200, MAX_FILL = 50 };

static struct collection receiver = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct collection argument = {.lock = PTHREAD_MUTEX_INITIALIZER};
static int fill;

static void *bulk_caller(void *unused) {
    collection_contains_all(&receiver, &argument);
    return unused;
}

static void *changer(void *id) {
    collection_remove(&argument, (int)(intptr_t)id % fill);
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"elements", 1, 1, MAX_FILL}, {"changers", 1, 1, MAX_CHANGERS}};
    read_sizes(argc, argv, sizes, 2);
    fill = sizes[0].value;
    int changers = sizes[1].value;

    pthread_t caller_thread;
    pthread_t threads[MAX_CHANGERS];
    collection_fill(&receiver, fill);
    collection_fill(&argument, fill);
    pthread_create(&caller_thread, NULL, bulk_caller, NULL);
    for (int i = 0; i < changers; i++) {
        pthread_create(&threads[i], NULL, changer, (void *)(intptr_t)i);
    }
    pthread_join(caller_thread, NULL);
    for (int i = 0; i < changers; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
