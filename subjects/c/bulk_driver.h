/*
 * The program around two synchronised collections: one thread calls a bulk
 * method of the first on the second, while others change the second. Which
 * collection, which method and which change is for the including file to say:
 * it includes the elements first and defines bulk_caller and changer.
 */
#ifndef BULK_DRIVER_H
#define BULK_DRIVER_H

#include <pthread.h>
#include <stdint.h>

#include "sizes.h"
#include "synchronised.h"

enum { MAX_CHANGERS = 200, MAX_FILL = 50 };

static struct collection receiver = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct collection argument = {.lock = PTHREAD_MUTEX_INITIALIZER};
static int fill;

static void *bulk_caller(void *unused);
static void *changer(void *id);

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

#endif
