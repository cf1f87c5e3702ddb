/*
 * The program around two synchronised collections whose threads add each to
 * the other. The including file says with which elements.
 *
 * The bug: add_all locks its receiver and then the argument, to copy it. The
 * two threads do so in opposite order, and when each holds its receiver, both
 * wait for ever. The fix, in synchronised.h, copies the argument before it
 * locks the receiver.
 */
#ifndef SUBJECTS_EXCHANGE_DRIVER_H
#define SUBJECTS_EXCHANGE_DRIVER_H

#include <pthread.h>

#include "sizes.h"
#include "synchronised.h"

enum { MAX_FILL = 50 };

static struct collection first = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct collection second = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *add_second_to_first(void *unused) {
    collection_add_all(&first, &second);
    return unused;
}

static void *add_first_to_second(void *unused) {
    collection_add_all(&second, &first);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"elements", 1, 1, MAX_FILL}};
    read_sizes(argc, argv, sizes, 1);

    pthread_t threads[2];
    collection_fill(&first, sizes[0].value);
    collection_fill(&second, sizes[0].value);
    pthread_create(&threads[0], NULL, add_second_to_first, NULL);
    pthread_create(&threads[1], NULL, add_first_to_second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}

#endif
