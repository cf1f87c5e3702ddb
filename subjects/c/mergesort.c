/*
 * A merge sort that gives its halves to threads as long as the number of live
 * threads stays within a limit. Every node of the recursion asks how many
 * threads it may still start, starts them, and counts them.
 *
 * Two bugs. First, a thread is counted after it was started: another node,
 * perhaps in that thread, asks in between, and together they start more than
 * the limit allows. Second, a node changes the count under a lock of its own,
 * so an update can be lost. Either way a node may find that fewer than no
 * threads are available. The fix reserves the threads in the critical section
 * that asks for them.
 *
 * Published: RankChecker, 100 threads, 651 schedules at (1,all,2,1); PECAN, 6
 * threads, 1587 events, 8 races and 10 AV predicted, 8 real, 1 with an
 * exception, 10 false.
 */
#include <assert.h>
#include <pthread.h>

#include "merging.h"
#include "sizes.h"

enum { MAX_LIMIT = 64 };

struct node {
    pthread_mutex_t lock;
    int low;
    int high;
};

static pthread_mutex_t class_lock = PTHREAD_MUTEX_INITIALIZER;
static int alive = 1;
static int limit;

/* The caller holds the class lock. */
static int available(void) {
    int threads = limit - alive;
    assert(threads >= 0);
    return threads > 2 ? 2 : threads;
}

#ifdef FIXED
static int ask_for_threads(void) {
    pthread_mutex_lock(&class_lock);
    int threads = available();
    alive += threads;
    pthread_mutex_unlock(&class_lock);
    return threads;
}

/* Counted already by ask_for_threads. */
static void count_started(struct node *node) {
    (void)node;
}

static void count_ended(struct node *node) {
    (void)node;
    pthread_mutex_lock(&class_lock);
    alive -= 1;
    pthread_mutex_unlock(&class_lock);
}
#else
static int ask_for_threads(void) {
    pthread_mutex_lock(&class_lock);
    int threads = available();
    pthread_mutex_unlock(&class_lock);
    return threads;
}

static void count_started(struct node *node) {
    pthread_mutex_lock(&node->lock);
    alive += 1;
    pthread_mutex_unlock(&node->lock);
}

static void count_ended(struct node *node) {
    pthread_mutex_lock(&node->lock);
    alive -= 1;
    pthread_mutex_unlock(&node->lock);
}
#endif

static void *sort(void *argument) {
    struct node *node = argument;
    if (node->high - node->low < 2) {
        return NULL;
    }
    int middle = (node->low + node->high) / 2;
    struct node halves[2] = {{PTHREAD_MUTEX_INITIALIZER, node->low, middle},
                             {PTHREAD_MUTEX_INITIALIZER, middle, node->high}};
    pthread_t threads[2];
    int started = ask_for_threads();
    for (int i = 0; i < started; i++) {
        pthread_create(&threads[i], NULL, sort, &halves[i]);
        count_started(node);
    }
    for (int i = started; i < 2; i++) {
        sort(&halves[i]);
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        count_ended(node);
    }
    merge(node->low, middle, node->high);
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"elements", 4, 2, MAX_ELEMENTS}, {"limit", 2, 1, MAX_LIMIT}};
    read_sizes(argc, argv, sizes, 2);
    int count = sizes[0].value;
    limit = sizes[1].value;

    fill_descending(count);
    struct node root = {PTHREAD_MUTEX_INITIALIZER, 0, count};
    sort(&root);
    assert(holds_one_to(count));
    return 0;
}
