/*
 * Two vectors whose every method locks its vector, the steps of an iterator
 * included. One thread compares the vectors while others add to the second;
 * more threads work on vectors of their own. The comparer may fill both vectors
 * before it compares them, which takes it further from its start to the bug.
 *
 * The bug: equals holds the lock of its receiver throughout, but that of the
 * argument only within each step. If an element is added between the question
 * whether there is a next one and the taking of it, the fail-fast iterator
 * fails. There is no data race. The fix copies the argument in one critical
 * section and compares the copy.
 *
 * Published: guided test, (1,10) found in every trial after 1382 states; with
 * the constant heuristic (1,8) in 0.08 of the trials, by random depth-first
 * search never.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sizes.h"

enum { MAX_ADDERS = 32, MAX_BYSTANDERS = 32, MAX_FILLED = 16, MAX_ELEMENTS = 64, ELEMENTS = 1 };

struct vector {
    pthread_mutex_t lock;
    int changes;
    int count;
    int values[MAX_ELEMENTS];
};

static struct vector first = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct vector second = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct vector others[MAX_BYSTANDERS];

static void vector_add(struct vector *self, int value) {
    pthread_mutex_lock(&self->lock);
    if (self->count == MAX_ELEMENTS) {
        abort();
    }
    self->changes += 1;
    self->values[self->count] = value;
    self->count += 1;
    pthread_mutex_unlock(&self->lock);
}

#ifdef FIXED
static bool vector_equals(struct vector *self, struct vector *other) {
    int values[MAX_ELEMENTS];
    pthread_mutex_lock(&other->lock);
    int count = other->count;
    for (int i = 0; i < count; i++) {
        values[i] = other->values[i];
    }
    pthread_mutex_unlock(&other->lock);

    pthread_mutex_lock(&self->lock);
    bool equal = self->count == count;
    for (int i = 0; i < count && equal; i++) {
        equal = self->values[i] == values[i];
    }
    pthread_mutex_unlock(&self->lock);
    return equal;
}
#else
struct iterator {
    struct vector *vector;
    int expected_changes;
    int index;
};

static struct iterator iterate(struct vector *vector) {
    pthread_mutex_lock(&vector->lock);
    struct iterator iterator = {vector, vector->changes, 0};
    pthread_mutex_unlock(&vector->lock);
    return iterator;
}

static bool iterator_has_next(const struct iterator *iterator) {
    pthread_mutex_lock(&iterator->vector->lock);
    bool has_next = iterator->index != iterator->vector->count;
    pthread_mutex_unlock(&iterator->vector->lock);
    return has_next;
}

static int iterator_next(struct iterator *iterator) {
    pthread_mutex_lock(&iterator->vector->lock);
    assert(iterator->vector->changes == iterator->expected_changes);
    int value = iterator->vector->values[iterator->index++];
    pthread_mutex_unlock(&iterator->vector->lock);
    return value;
}

static bool vector_equals(struct vector *self, struct vector *other) {
    pthread_mutex_lock(&self->lock);
    struct iterator iterator = iterate(other);
    bool equal = true;
    int compared = 0;
    while (equal && compared < self->count && iterator_has_next(&iterator)) {
        equal = self->values[compared] == iterator_next(&iterator);
        compared += 1;
    }
    equal = equal && compared == self->count && !iterator_has_next(&iterator);
    pthread_mutex_unlock(&self->lock);
    return equal;
}
#endif

static void *comparer(void *filled) {
    for (int i = 0; i < *(int *)filled; i++) {
        vector_add(&first, i);
        vector_add(&second, i);
    }
    vector_equals(&first, &second);
    return NULL;
}

static void *adder(void *unused) {
    vector_add(&second, ELEMENTS);
    return unused;
}

static void *bystander(void *own) {
    vector_add(own, ELEMENTS);
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"adders", 1, 1, MAX_ADDERS},
                           {"bystanders", 0, 0, MAX_BYSTANDERS},
                           {"filled", 0, 0, MAX_FILLED}};
    read_sizes(argc, argv, sizes, 3);
    int adders = sizes[0].value;
    int bystanders = sizes[1].value;

    for (int i = 0; i < ELEMENTS; i++) {
        vector_add(&first, i);
        vector_add(&second, i);
    }
    pthread_t comparer_thread;
    pthread_t adder_threads[MAX_ADDERS];
    pthread_t bystander_threads[MAX_BYSTANDERS];
    pthread_create(&comparer_thread, NULL, comparer, &sizes[2].value);
    for (int i = 0; i < adders; i++) {
        pthread_create(&adder_threads[i], NULL, adder, NULL);
    }
    for (int i = 0; i < bystanders; i++) {
        pthread_mutex_init(&others[i].lock, NULL);
        pthread_create(&bystander_threads[i], NULL, bystander, &others[i]);
    }
    pthread_join(comparer_thread, NULL);
    for (int i = 0; i < adders; i++) {
        pthread_join(adder_threads[i], NULL);
    }
    for (int i = 0; i < bystanders; i++) {
        pthread_join(bystander_threads[i], NULL);
    }
    return 0;
}
