/*
 * Two array lists, each behind its lock. One thread asks whether the first
 * contains all elements of the second, while others remove elements from the
 * second.
 *
 * The bug: the bulk method locks its receiver only and iterates over the other
 * collection without a lock. If that one changes between two steps, the
 * fail-fast iterator fails. The fix, in synchronised.h, iterates over a copy
 * that was made under the lock of the other collection.
 *
 * Published: PECAN, 294 events, 6 races, 1 AV and 4 ASV predicted, 11 real, 2
 * with an exception.
 */
#include "array_elements.h"

#include "bulk_driver.h"

static void *bulk_caller(void *unused) {
    collection_contains_all(&receiver, &argument);
    return unused;
}

static void *changer(void *id) {
    collection_remove(&argument, (int)(intptr_t)id % fill);
    return NULL;
}
