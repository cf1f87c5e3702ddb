/*
 * A system that takes orders, as in order_system, with one pair of variables
 * for each way in which CorrRT tells that variables belong together:
 *
 * vertical    the gross price is computed from the net price
 * control     the fee is set if the order is express
 * parental    street and number are set one after the other
 * horizontal  minutes and hours are computed from the same seconds
 * chain       dollars are computed from yen, and these from euros
 *
 * The bug: a clerk writes each pair in two critical sections. A manager who
 * looks in between sees one half of it. There is no data race. The fix writes
 * each pair in one critical section.
 *
 * Published: CorrRT, 5 threads, 5 high-level races, all found.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_CLERKS = 32, GROSS_PER_NET = 2, FEE = 5, YEN_PER_EURO = 160, YEN_PER_DOLLAR = 80, DOLLARS_PER_EURO = 2 };

static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int net, gross;
} price;
static struct {
    bool express;
    int fee;
} delivery;
static struct {
    int street, number;
} address;
static struct {
    int seconds, minutes, hours;
} age;
static struct {
    int euros, yen, dollars;
} paid;

/* Where the one critical section of the fixed program is two in the buggy one. */
static void between_halves(void) {
#ifndef FIXED
    pthread_mutex_unlock(&order_lock);
    pthread_mutex_lock(&order_lock);
#endif
}

static void set_price(int net) {
    pthread_mutex_lock(&order_lock);
    price.net = net;
    between_halves();
    price.gross = price.net * GROSS_PER_NET;
    pthread_mutex_unlock(&order_lock);
}

static void make_express(void) {
    pthread_mutex_lock(&order_lock);
    delivery.express = true;
    between_halves();
    if (delivery.express) {
        delivery.fee = FEE;
    }
    pthread_mutex_unlock(&order_lock);
}

static void set_address(int street, int number) {
    pthread_mutex_lock(&order_lock);
    address.street = street;
    between_halves();
    address.number = number;
    pthread_mutex_unlock(&order_lock);
}

static void set_age(int seconds) {
    pthread_mutex_lock(&order_lock);
    age.seconds = seconds;
    age.minutes = age.seconds / 60;
    between_halves();
    age.hours = age.seconds / 3600;
    pthread_mutex_unlock(&order_lock);
}

static void pay(int euros) {
    pthread_mutex_lock(&order_lock);
    paid.euros = euros;
    paid.yen = paid.euros * YEN_PER_EURO;
    between_halves();
    paid.dollars = paid.yen / YEN_PER_DOLLAR;
    pthread_mutex_unlock(&order_lock);
}

static void *clerk(void *id) {
    int order = (int)(intptr_t)id + 1;
    set_price(order);
    make_express();
    set_address(order, order);
    set_age(order * 3600);
    pay(order);
    return NULL;
}

static void *manager(void *unused) {
    pthread_mutex_lock(&order_lock);
    assert(price.gross == price.net * GROSS_PER_NET);
    assert(delivery.fee == (delivery.express ? FEE : 0));
    assert(address.street == address.number);
    assert(age.hours == age.minutes / 60);
    assert(paid.dollars == paid.euros * DOLLARS_PER_EURO);
    pthread_mutex_unlock(&order_lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"clerks", 1, 1, MAX_CLERKS}};
    read_sizes(argc, argv, sizes, 1);
    int clerks = sizes[0].value;

    pthread_t manager_thread;
    pthread_t threads[MAX_CLERKS];
    for (int i = 0; i < clerks; i++) {
        pthread_create(&threads[i], NULL, clerk, (void *)(intptr_t)i);
    }
    pthread_create(&manager_thread, NULL, manager, NULL);
    for (int i = 0; i < clerks; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_join(manager_thread, NULL);
    return 0;
}
