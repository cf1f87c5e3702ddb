/*
 * Two hash sets, each behind its lock. One thread asks whether the first
 * contains all elements of the second, while others add to the second.
 *
 * The bug: the bulk method locks its receiver only and iterates over the other
 * collection without a lock. If that one changes between two steps, the
 * fail-fast iterator fails. The fix, in synchronised.h, iterates over a copy
 * that was made under the lock of the other collection.
 *
 * Published: RankChecker, 200 threads, 813 schedules at (1,all,2,1); PECAN, 404
 * events, 4 races, 3 AV and 4 ASV predicted, 10 real, 5 with an exception.
 */
#include "hash_elements.h"

#include "bulk_driver.h"

static void *bulk_caller(void *unused) {
    collection_contains_all(&receiver, &argument);
    return unused;
}

static void *changer(void *id) {
    collection_add(&argument, fill + (int)(intptr_t)id);
    return NULL;
}
