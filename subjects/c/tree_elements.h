/* An ordered tree of numbers: the elements of a collection in synchronised.h. */
#ifndef SUBJECTS_TREE_ELEMENTS_H
#define SUBJECTS_TREE_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { MAX_ELEMENTS = 256 };

/* A removed element keeps its node, as a signpost. */
struct tree_node {
    int value;
    bool present;
    struct tree_node *smaller;
    struct tree_node *larger;
};

struct elements {
    struct tree_node *root;
    struct tree_node nodes[MAX_ELEMENTS];
    int nodes_used;
};

struct cursor {
    const struct tree_node *root;
    const struct tree_node *node;
};

/* The link that leads to the value, or to where it would be. */
static inline struct tree_node **link_to(struct elements *elements, int value) {
    struct tree_node **link = &elements->root;
    while (*link != NULL && (*link)->value != value) {
        link = value < (*link)->value ? &(*link)->smaller : &(*link)->larger;
    }
    return link;
}

static inline bool contains_element(struct elements *elements, int value) {
    const struct tree_node *node = *link_to(elements, value);
    return node != NULL && node->present;
}

static inline void add_element(struct elements *elements, int value) {
    struct tree_node **link = link_to(elements, value);
    if (*link == NULL) {
        if (elements->nodes_used == MAX_ELEMENTS) {
            abort();
        }
        struct tree_node *node = &elements->nodes[elements->nodes_used++];
        node->value = value;
        *link = node;
    }
    (*link)->present = true;
}

static inline void remove_element(struct elements *elements, int value) {
    struct tree_node *node = *link_to(elements, value);
    if (node != NULL) {
        node->present = false;
    }
}

/* The present node with the smallest value above that of the node before; NULL as that: of all. */
static inline const struct tree_node *node_after(const struct tree_node *root, const struct tree_node *before) {
    if (root == NULL) {
        return NULL;
    }
    if (before != NULL && root->value <= before->value) {
        return node_after(root->larger, before);
    }
    const struct tree_node *found = node_after(root->smaller, before);
    if (found == NULL && root->present) {
        found = root;
    }
    return found != NULL ? found : node_after(root->larger, before);
}

static inline struct cursor cursor_at_start(const struct elements *elements) {
    return (struct cursor){elements->root, node_after(elements->root, NULL)};
}

static inline bool cursor_has_next(const struct cursor *cursor) {
    return cursor->node != NULL;
}

static inline int cursor_next(struct cursor *cursor) {
    int value = cursor->node->value;
    cursor->node = node_after(cursor->root, cursor->node);
    return value;
}

#endif
