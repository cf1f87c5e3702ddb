/* A hash set of numbers with chained buckets: the elements of a collection in synchronised.h. */
#ifndef SUBJECTS_HASH_ELEMENTS_H
#define SUBJECTS_HASH_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { MAX_ELEMENTS = 256, BUCKETS = 4 };

struct hash_node {
    int value;
    struct hash_node *next;
};

struct elements {
    struct hash_node *buckets[BUCKETS];
    struct hash_node nodes[MAX_ELEMENTS];
    int nodes_used;
};

struct cursor {
    const struct elements *elements;
    int bucket;
    const struct hash_node *node;
};

static inline int bucket_of(int value) {
    return (int)((unsigned)value % BUCKETS);
}

static inline bool contains_element(const struct elements *elements, int value) {
    const struct hash_node *node = elements->buckets[bucket_of(value)];
    while (node != NULL && node->value != value) {
        node = node->next;
    }
    return node != NULL;
}

static inline void add_element(struct elements *elements, int value) {
    if (contains_element(elements, value)) {
        return;
    }
    if (elements->nodes_used == MAX_ELEMENTS) {
        abort();
    }
    struct hash_node *node = &elements->nodes[elements->nodes_used++];
    struct hash_node **bucket = &elements->buckets[bucket_of(value)];
    node->value = value;
    node->next = *bucket;
    *bucket = node;
}

static inline void remove_element(struct elements *elements, int value) {
    struct hash_node **link = &elements->buckets[bucket_of(value)];
    while (*link != NULL && (*link)->value != value) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = (*link)->next;
    }
}

static inline void skip_empty_buckets(struct cursor *cursor) {
    while (cursor->node == NULL && cursor->bucket < BUCKETS - 1) {
        cursor->bucket += 1;
        cursor->node = cursor->elements->buckets[cursor->bucket];
    }
}

static inline struct cursor cursor_at_start(const struct elements *elements) {
    struct cursor cursor = {elements, 0, elements->buckets[0]};
    skip_empty_buckets(&cursor);
    return cursor;
}

static inline bool cursor_has_next(const struct cursor *cursor) {
    return cursor->node != NULL;
}

static inline int cursor_next(struct cursor *cursor) {
    int value = cursor->node->value;
    cursor->node = cursor->node->next;
    skip_empty_buckets(cursor);
    return value;
}

#endif
