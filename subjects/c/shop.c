/*
 * A shop with one supplier and several customers. A customer looks whether
 * there is something in stock, and if so buys one.
 *
 * The bug: looking and buying are two critical sections. Two customers see the
 * last item, both buy it, and the stock goes below zero. There is no data race.
 * The fix looks and buys under one hold of the lock.
 *
 * Published: PECAN, 4 threads, 429 events, 4 races predicted, all real, 1 with
 * an exception.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "sizes.h"

enum { MAX_CUSTOMERS = 100, MAX_ITEMS = 1000 };

static pthread_mutex_t shop_lock = PTHREAD_MUTEX_INITIALIZER;
static int items_in_stock;
static int sold;
static int batch;

static void *supplier(void *unused) {
    pthread_mutex_lock(&shop_lock);
    items_in_stock += batch;
    pthread_mutex_unlock(&shop_lock);
    return unused;
}

#ifdef FIXED
static void *customer(void *unused) {
    pthread_mutex_lock(&shop_lock);
    if (items_in_stock > 0) {
        items_in_stock -= 1;
        sold += 1;
    }
    pthread_mutex_unlock(&shop_lock);
    return unused;
}
#else
static bool in_stock(void) {
    pthread_mutex_lock(&shop_lock);
    bool available = items_in_stock > 0;
    pthread_mutex_unlock(&shop_lock);
    return available;
}

static void buy(void) {
    pthread_mutex_lock(&shop_lock);
    items_in_stock -= 1;
    sold += 1;
    pthread_mutex_unlock(&shop_lock);
}

static void *customer(void *unused) {
    if (in_stock()) {
        buy();
    }
    return unused;
}
#endif

int main(int argc, char **argv) {
    struct size sizes[] = {{"customers", 2, 1, MAX_CUSTOMERS}, {"items", 1, 1, MAX_ITEMS}};
    read_sizes(argc, argv, sizes, 2);
    int customers = sizes[0].value;
    batch = sizes[1].value;

    pthread_t supplier_thread;
    pthread_t threads[MAX_CUSTOMERS];
    pthread_create(&supplier_thread, NULL, supplier, NULL);
    for (int i = 0; i < customers; i++) {
        pthread_create(&threads[i], NULL, customer, NULL);
    }
    pthread_join(supplier_thread, NULL);
    for (int i = 0; i < customers; i++) {
        pthread_join(threads[i], NULL);
    }
    assert(items_in_stock >= 0 && sold + items_in_stock == batch);
    return 0;
}
