/*
 * The shop again, with patient customers: each waits until there is something
 * in stock, and buys one item. The supplier delivers one item for everybody,
 * in a single batch.
 *
 * The bug: the supplier wakes one customer for a batch of many. Of several who
 * wait, the others are never woken, though what they wait for is there. The
 * fix wakes all of them.
 */
#include <pthread.h>

#include "sizes.h"

enum { MAX_CUSTOMERS = 100 };

static pthread_mutex_t shop_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t delivered = PTHREAD_COND_INITIALIZER;
static int items_in_stock;
static int batch;

static void *supplier(void *unused) {
    pthread_mutex_lock(&shop_lock);
    items_in_stock += batch;
#ifdef FIXED
    pthread_cond_broadcast(&delivered);
#else
    pthread_cond_signal(&delivered);
#endif
    pthread_mutex_unlock(&shop_lock);
    return unused;
}

static void *customer(void *unused) {
    pthread_mutex_lock(&shop_lock);
    while (items_in_stock == 0) {
        pthread_cond_wait(&delivered, &shop_lock);
    }
    items_in_stock -= 1;
    pthread_mutex_unlock(&shop_lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"customers", 2, 1, MAX_CUSTOMERS}};
    read_sizes(argc, argv, sizes, 1);
    int customers = sizes[0].value;
    batch = customers;

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
    return 0;
}
