/*
 * Two ordered trees, each behind its lock. One thread removes all elements of
 * the second from the first, while others remove elements from the second.
 *
 * The bug: the bulk method locks its receiver only and iterates over the other
 * collection without a lock. If that one changes between two steps, the
 * fail-fast iterator fails. The fix, in synchronised.h, iterates over a copy
 * that was made under the lock of the other collection.
 *
 * Published: RankChecker, 200 threads, 813 schedules at (1,all,2,1); PECAN, 475
 * events, 4 races, 2 AV and 4 ASV predicted, 10 real, 4 with an exception.
 */
#include "tree_elements.h"

#include "bulk_driver.h"

static void *bulk_caller(void *unused) {
    collection_remove_all(&receiver, &argument);
    return unused;
}

static void *changer(void *id) {
    collection_remove(&argument, (int)(intptr_t)id % fill);
    return NULL;
}
