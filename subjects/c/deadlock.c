/*
 * A vector that contains a hash table that contains the vector. Printing either
 * of them prints what it contains, too. More threads print objects of their
 * own.
 *
 * The bug: a print holds the lock of the outer object while it takes that of
 * the inner one. One thread prints the vector and another the table, so the
 * two locks are taken in both orders, and when each thread has its first, both
 * wait for ever. The fix lets go of the outer object before it looks into the
 * inner one.
 *
 * Published: guided test finds it in every trial; random depth-first search
 * never at (1,9).
 */
#include <pthread.h>
#include <stddef.h>

#include "sizes.h"

enum { MAX_PRINTERS = 32, MAX_BYSTANDERS = 32 };

struct object {
    pthread_mutex_t lock;
    int count;
    struct object *contained;
};

static struct object vector = {.lock = PTHREAD_MUTEX_INITIALIZER, .count = 1};
static struct object table = {.lock = PTHREAD_MUTEX_INITIALIZER, .count = 1};
static struct object others[MAX_BYSTANDERS];

static int print_inner(struct object *self) {
    pthread_mutex_lock(&self->lock);
    int printed = self->count;
    pthread_mutex_unlock(&self->lock);
    return printed;
}

/* A print is modelled by the number of elements printed. */
static int print(struct object *self) {
    pthread_mutex_lock(&self->lock);
    int printed = self->count;
    struct object *inner = self->contained;
#ifdef FIXED
    pthread_mutex_unlock(&self->lock);
#endif
    if (inner != NULL) {
        printed += print_inner(inner);
    }
#ifndef FIXED
    pthread_mutex_unlock(&self->lock);
#endif
    return printed;
}

static void *printer(void *object) {
    print(object);
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"printers", 1, 1, MAX_PRINTERS}, {"bystanders", 0, 0, MAX_BYSTANDERS}};
    read_sizes(argc, argv, sizes, 2);
    int printers = sizes[0].value;
    int bystanders = sizes[1].value;

    vector.contained = &table;
    table.contained = &vector;
    pthread_t threads[2 * MAX_PRINTERS + MAX_BYSTANDERS];
    int started = 0;
    for (int i = 0; i < printers; i++) {
        pthread_create(&threads[started++], NULL, printer, &vector);
        pthread_create(&threads[started++], NULL, printer, &table);
    }
    for (int i = 0; i < bystanders; i++) {
        pthread_mutex_init(&others[i].lock, NULL);
        pthread_create(&threads[started++], NULL, printer, &others[i]);
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
