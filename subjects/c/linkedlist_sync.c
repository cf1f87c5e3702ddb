/*
 * Two doubly linked lists, each behind its lock. One thread removes all
 * elements of the second from the first, while others add to the second.
 *
 * The bug: the bulk method locks its receiver only and iterates over the other
 * collection without a lock. If that one changes between two steps, the
 * fail-fast iterator fails. The fix, in synchronised.h, iterates over a copy
 * that was made under the lock of the other collection.
 *
 * Published: PECAN, 357 events, 6 races, 1 AV and 7 ASV predicted, 13 real, 3
 * with an exception.
 */
#include "linked_elements.h"

#include "bulk_driver.h"

static void *bulk_caller(void *unused) {
    collection_remove_all(&receiver, &argument);
    return unused;
}

static void *changer(void *id) {
    collection_add(&argument, fill + (int)(intptr_t)id);
    return NULL;
}
