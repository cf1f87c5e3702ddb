/* A doubly linked list of numbers: the elements of a collection in synchronised.h. */
#ifndef SUBJECTS_LINKED_ELEMENTS_H
#define SUBJECTS_LINKED_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { MAX_ELEMENTS = 256 };

struct linked_node {
    int value;
    struct linked_node *previous;
    struct linked_node *next;
};

struct elements {
    struct linked_node *first;
    struct linked_node *last;
    struct linked_node nodes[MAX_ELEMENTS];
    int nodes_used;
};

struct cursor {
    const struct linked_node *node;
};

static inline struct linked_node *find_node(const struct elements *elements, int value) {
    struct linked_node *node = elements->first;
    while (node != NULL && node->value != value) {
        node = node->next;
    }
    return node;
}

static inline bool contains_element(const struct elements *elements, int value) {
    return find_node(elements, value) != NULL;
}

static inline void add_element(struct elements *elements, int value) {
    if (elements->nodes_used == MAX_ELEMENTS) {
        abort();
    }
    struct linked_node *node = &elements->nodes[elements->nodes_used++];
    node->value = value;
    node->previous = elements->last;
    if (elements->last == NULL) {
        elements->first = node;
    } else {
        elements->last->next = node;
    }
    elements->last = node;
}

static inline void remove_element(struct elements *elements, int value) {
    struct linked_node *node = find_node(elements, value);
    if (node == NULL) {
        return;
    }
    if (node->previous == NULL) {
        elements->first = node->next;
    } else {
        node->previous->next = node->next;
    }
    if (node->next == NULL) {
        elements->last = node->previous;
    } else {
        node->next->previous = node->previous;
    }
}

static inline struct cursor cursor_at_start(const struct elements *elements) {
    return (struct cursor){elements->first};
}

static inline bool cursor_has_next(const struct cursor *cursor) {
    return cursor->node != NULL;
}

static inline int cursor_next(struct cursor *cursor) {
    int value = cursor->node->value;
    cursor->node = cursor->node->next;
    return value;
}

#endif
