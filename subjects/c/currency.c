/*
 * One amount of money in two currencies. Three functions write it: one derives
 * the yen from the euro, one sets both side by side, and one rounds the yen and
 * leaves the euro alone. So two of three writes of the yen, 67 %, tell that the
 * variables belong together.
 *
 * The bug: the function that sets both side by side locks for each of them. If
 * another amount is written in between, the euro are of one amount and the yen
 * of the other. The fix sets both in one critical section.
 */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_THREADS = 32, YEN_PER_EURO = 107 };

static pthread_mutex_t money_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int euro;
    int yen;
} money;

static void set_euro(int amount) {
    pthread_mutex_lock(&money_lock);
    money.euro = amount;
    money.yen = money.euro * YEN_PER_EURO;
    pthread_mutex_unlock(&money_lock);
}

static void round_yen(void) {
    pthread_mutex_lock(&money_lock);
    money.yen -= money.yen % YEN_PER_EURO;
    pthread_mutex_unlock(&money_lock);
}

static void set_both(int euro, int yen) {
    pthread_mutex_lock(&money_lock);
    money.euro = euro;
#ifndef FIXED
    pthread_mutex_unlock(&money_lock);
    pthread_mutex_lock(&money_lock);
#endif
    money.yen = yen;
    pthread_mutex_unlock(&money_lock);
}

static void *payer(void *argument) {
    set_euro((int)(intptr_t)argument);
    round_yen();
    return NULL;
}

static void *trader(void *unused) {
    set_both(300, 300 * YEN_PER_EURO);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"payers", 1, 1, MAX_THREADS}};
    read_sizes(argc, argv, sizes, 1);
    int payers = sizes[0].value;

    pthread_t trader_thread;
    pthread_t threads[MAX_THREADS];
    pthread_create(&trader_thread, NULL, trader, NULL);
    for (int i = 0; i < payers; i++) {
        pthread_create(&threads[i], NULL, payer, (void *)(intptr_t)(i + 1));
    }
    pthread_join(trader_thread, NULL);
    for (int i = 0; i < payers; i++) {
        pthread_join(threads[i], NULL);
    }
    assert(money.yen == money.euro * YEN_PER_EURO);
    return 0;
}
