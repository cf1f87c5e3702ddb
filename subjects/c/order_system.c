/*
 * A system that takes orders: clerks enter orders, and a manager looks at how
 * many there are and what they are worth together.
 *
 * The bug: a clerk counts an order and adds its price in two critical sections.
 * A manager who looks in between sees an order without its price. There is no
 * data race. The fix enters both in one critical section.
 *
 * Published: CorrRT, 5 threads, 25 high-level races in the whole program, 21
 * found.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_CLERKS = 32, MAX_ORDERS = 1000, PRICE = 7 };

static pthread_mutex_t orders_lock = PTHREAD_MUTEX_INITIALIZER;
static int open_orders;
static int open_worth;
static int orders_each;

static void enter_order(int price) {
    pthread_mutex_lock(&orders_lock);
    open_orders += 1;
#ifndef FIXED
    pthread_mutex_unlock(&orders_lock);
    pthread_mutex_lock(&orders_lock);
#endif
    open_worth += price;
    pthread_mutex_unlock(&orders_lock);
}

static void *clerk(void *unused) {
    for (int i = 0; i < orders_each; i++) {
        enter_order(PRICE);
    }
    return unused;
}

static void *manager(void *unused) {
    pthread_mutex_lock(&orders_lock);
    assert(open_worth == open_orders * PRICE);
    pthread_mutex_unlock(&orders_lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"clerks", 1, 1, MAX_CLERKS}, {"orders", 1, 1, MAX_ORDERS}};
    read_sizes(argc, argv, sizes, 2);
    int clerks = sizes[0].value;
    orders_each = sizes[1].value;

    pthread_t manager_thread;
    pthread_t threads[MAX_CLERKS];
    for (int i = 0; i < clerks; i++) {
        pthread_create(&threads[i], NULL, clerk, NULL);
    }
    pthread_create(&manager_thread, NULL, manager, NULL);
    for (int i = 0; i < clerks; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_join(manager_thread, NULL);
    return 0;
}
