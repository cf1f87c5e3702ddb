/* A list of numbers in an array: the elements of a collection in synchronised.h. */
#ifndef SUBJECTS_ARRAY_ELEMENTS_H
#define SUBJECTS_ARRAY_ELEMENTS_H

#include <stdbool.h>
#include <stdlib.h>

enum { MAX_ELEMENTS = 256 };

struct elements {
    int values[MAX_ELEMENTS];
    int count;
};

struct cursor {
    const struct elements *elements;
    int index;
};

static inline int index_of(const struct elements *elements, int value) {
    int index = 0;
    while (index < elements->count && elements->values[index] != value) {
        index += 1;
    }
    return index;
}

static inline bool contains_element(const struct elements *elements, int value) {
    return index_of(elements, value) < elements->count;
}

static inline void add_element(struct elements *elements, int value) {
    if (elements->count == MAX_ELEMENTS) {
        abort();
    }
    elements->values[elements->count] = value;
    elements->count += 1;
}

static inline void remove_element(struct elements *elements, int value) {
    int index = index_of(elements, value);
    if (index < elements->count) {
        elements->count -= 1;
        for (int i = index; i < elements->count; i++) {
            elements->values[i] = elements->values[i + 1];
        }
    }
}

static inline struct cursor cursor_at_start(const struct elements *elements) {
    return (struct cursor){elements, 0};
}

static inline bool cursor_has_next(const struct cursor *cursor) {
    return cursor->index < cursor->elements->count;
}

static inline int cursor_next(struct cursor *cursor) {
    return cursor->elements->values[cursor->index++];
}

#endif
