/*
 * The sequential half of a merge sort, for the subjects that do the other half
 * with threads: the array, how it is filled and checked, and how two sorted
 * neighbours are merged.
 */
#ifndef SUBJECTS_MERGING_H
#define SUBJECTS_MERGING_H

#include <stdbool.h>

enum { MAX_ELEMENTS = 1000 };

static int elements[MAX_ELEMENTS];
static int merged[MAX_ELEMENTS];

static inline void fill_descending(int count) {
    for (int i = 0; i < count; i++) {
        elements[i] = count - i;
    }
}

static inline bool holds_one_to(int count) {
    for (int i = 0; i < count; i++) {
        if (elements[i] != i + 1) {
            return false;
        }
    }
    return true;
}

/* Merges [low, middle) and [middle, high). Calls at the same time must have disjoint ranges. */
static inline void merge(int low, int middle, int high) {
    int left = low;
    int right = middle;
    for (int i = low; i < high; i++) {
        bool from_left = right == high || (left < middle && elements[left] <= elements[right]);
        merged[i] = from_left ? elements[left++] : elements[right++];
    }
    for (int i = low; i < high; i++) {
        elements[i] = merged[i];
    }
}

#endif
