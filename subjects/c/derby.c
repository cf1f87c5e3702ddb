/*
 * A database with pages in a cache, generated to the counts of Apache Derby.
 * Four threads change pages, each its own ones, and write out those of their
 * neighbour that they find changed.
 *
 * It exemplifies many branches that depend on the order of threads: whether a
 * page is written out is decided by whether its owner came first, for each page
 * on its own. With 29 pages there are, as in the trace of the original, five
 * threads, 33 shared variables (the pages, and four counts) and 29 branches
 * that the interleaving decides. Two test cases for each of them are enough.
 * The accesses race, but nothing fails. The fix has a lock for all of them.
 *
 * Published test cases: TPAIR 1453539, race-equivalent 58.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "sizes.h"

enum { WORKERS = 4, MAX_PAGES = 1000 };

struct page {
    bool changed;
};

static struct page *cache[MAX_PAGES];
static int written_out[WORKERS];
static int pages;

#ifdef FIXED
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_cache(void) {
    pthread_mutex_lock(&cache_lock);
}

static void unlock_cache(void) {
    pthread_mutex_unlock(&cache_lock);
}
#else
static void lock_cache(void) {
}

static void unlock_cache(void) {
}
#endif

static void change_page(int page) {
    lock_cache();
    cache[page]->changed = true;
    unlock_cache();
}

static void write_out_page(int page, int worker) {
    lock_cache();
    if (cache[page]->changed) {
        written_out[worker] += 1;
    }
    unlock_cache();
}

static void *work(void *id) {
    int worker = (int)(intptr_t)id;
    int neighbour = (worker + 1) % WORKERS;
    for (int page = worker; page < pages; page += WORKERS) {
        change_page(page);
    }
    for (int page = neighbour; page < pages; page += WORKERS) {
        write_out_page(page, worker);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"pages", 1, 1, MAX_PAGES}};
    read_sizes(argc, argv, sizes, 1);
    pages = sizes[0].value;

    for (int i = 0; i < pages; i++) {
        cache[i] = calloc(1, sizeof *cache[i]);
    }
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    }
    int total = 0;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        total += written_out[i];
    }
    for (int i = 0; i < pages; i++) {
        free(cache[i]);
    }
    return total > pages;
}
