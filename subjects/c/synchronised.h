/*
 * A collection of numbers behind a lock, in the manner of the JDK 1.4 wrappers.
 * Every method locks the collection it is called on. Iterators do not, and are
 * fail-fast: they compare a counter of changes with what it was when they were
 * made.
 *
 * The bugs are in the methods that take another collection as their argument.
 * Most of them iterate over the argument without its lock, and the iterator
 * fails if somebody changes it meanwhile. add_all has the argument copied,
 * which locks it inside the receiver's lock: two calls with the roles exchanged
 * deadlock. In the fixed program all of them copy the argument first and lock
 * the receiver afterwards, so that nobody holds two locks.
 *
 * What holds the elements is up to the including file. Before this header it
 * includes one of hash_elements.h, tree_elements.h, array_elements.h and
 * linked_elements.h. Each defines MAX_ELEMENTS; struct elements, empty when all
 * zero, with add_element, remove_element and contains_element; and struct
 * cursor, with cursor_at_start, cursor_has_next and cursor_next. None of them
 * frees or reuses memory, so a cursor that is overtaken by a change sees
 * nothing worse than outdated elements.
 */
#ifndef SUBJECTS_SYNCHRONISED_H
#define SUBJECTS_SYNCHRONISED_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

struct collection {
    pthread_mutex_t lock;
    volatile int changes; /* so that an optimising compiler, too, loads it in every step */
    struct elements elements;
};

struct iterator {
    const struct collection *collection;
    int expected_changes;
    struct cursor cursor;
};

/*
 * The caller holds the lock, here and in remove_counted. A change is counted
 * before it is made, so that an iterator does not miss one that is under way.
 */
static inline void add_counted(struct collection *self, int value) {
    self->changes += 1;
    add_element(&self->elements, value);
}

static inline void remove_counted(struct collection *self, int value) {
    self->changes += 1;
    remove_element(&self->elements, value);
}

static inline void collection_add(struct collection *self, int value) {
    pthread_mutex_lock(&self->lock);
    add_counted(self, value);
    pthread_mutex_unlock(&self->lock);
}

static inline void collection_remove(struct collection *self, int value) {
    pthread_mutex_lock(&self->lock);
    remove_counted(self, value);
    pthread_mutex_unlock(&self->lock);
}

static inline void collection_fill(struct collection *self, int count) {
    for (int i = 0; i < count; i++) {
        collection_add(self, i);
    }
}

static inline struct iterator iterate(const struct collection *collection) {
    return (struct iterator){collection, collection->changes, cursor_at_start(&collection->elements)};
}

static inline bool iterator_has_next(const struct iterator *iterator) {
    return cursor_has_next(&iterator->cursor);
}

static inline int iterator_next(struct iterator *iterator) {
    assert(iterator->collection->changes == iterator->expected_changes);
    return cursor_next(&iterator->cursor);
}

/* Copies the elements to an array of MAX_ELEMENTS and returns their number. */
static inline int collection_copy(struct collection *self, int *values) {
    int count = 0;
    pthread_mutex_lock(&self->lock);
    struct iterator iterator = iterate(self);
    while (iterator_has_next(&iterator)) {
        values[count++] = iterator_next(&iterator);
    }
    pthread_mutex_unlock(&self->lock);
    return count;
}

#ifdef FIXED
static inline bool collection_contains_all(struct collection *self, struct collection *other) {
    int values[MAX_ELEMENTS];
    int count = collection_copy(other, values);
    bool all = true;
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < count && all; i++) {
        all = contains_element(&self->elements, values[i]);
    }
    pthread_mutex_unlock(&self->lock);
    return all;
}

static inline void collection_remove_all(struct collection *self, struct collection *other) {
    int values[MAX_ELEMENTS];
    int count = collection_copy(other, values);
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < count; i++) {
        remove_counted(self, values[i]);
    }
    pthread_mutex_unlock(&self->lock);
}

static inline void collection_add_all(struct collection *self, struct collection *other) {
    int values[MAX_ELEMENTS];
    int count = collection_copy(other, values);
    pthread_mutex_lock(&self->lock);
    for (int i = 0; i < count; i++) {
        add_counted(self, values[i]);
    }
    pthread_mutex_unlock(&self->lock);
}

static inline bool collection_equals(struct collection *self, struct collection *other) {
    int values[MAX_ELEMENTS];
    int count = collection_copy(other, values);
    int compared = 0;
    bool equal = true;
    pthread_mutex_lock(&self->lock);
    struct iterator own = iterate(self);
    while (equal && iterator_has_next(&own)) {
        equal = compared < count && iterator_next(&own) == values[compared];
        compared += 1;
    }
    pthread_mutex_unlock(&self->lock);
    return equal && compared == count;
}
#else
static inline bool collection_contains_all(struct collection *self, struct collection *other) {
    bool all = true;
    pthread_mutex_lock(&self->lock);
    struct iterator iterator = iterate(other);
    while (all && iterator_has_next(&iterator)) {
        all = contains_element(&self->elements, iterator_next(&iterator));
    }
    pthread_mutex_unlock(&self->lock);
    return all;
}

static inline void collection_remove_all(struct collection *self, struct collection *other) {
    pthread_mutex_lock(&self->lock);
    struct iterator iterator = iterate(other);
    while (iterator_has_next(&iterator)) {
        remove_counted(self, iterator_next(&iterator));
    }
    pthread_mutex_unlock(&self->lock);
}

static inline void collection_add_all(struct collection *self, struct collection *other) {
    int values[MAX_ELEMENTS];
    pthread_mutex_lock(&self->lock);
    int count = collection_copy(other, values);
    for (int i = 0; i < count; i++) {
        add_counted(self, values[i]);
    }
    pthread_mutex_unlock(&self->lock);
}

static inline bool collection_equals(struct collection *self, struct collection *other) {
    bool equal = true;
    pthread_mutex_lock(&self->lock);
    struct iterator own = iterate(self);
    struct iterator others = iterate(other);
    while (equal && iterator_has_next(&own) && iterator_has_next(&others)) {
        equal = iterator_next(&own) == iterator_next(&others);
    }
    equal = equal && !iterator_has_next(&own) && !iterator_has_next(&others);
    pthread_mutex_unlock(&self->lock);
    return equal;
}
#endif

#endif
