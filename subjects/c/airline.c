/*
 * An airline that prints more tickets than the plane has seats. Main starts
 * one seller per ticket and gives up as soon as a seller has stopped the sales.
 *
 * The bug is that looking at stop_sales and selling are two separate steps.
 * While the seller of the last seat has not raised the flag yet, main starts
 * another one, which sells a seat that does not exist. The counter has no lock
 * either, but an increment lost there only hides an oversold plane. In the fix
 * the seller itself tests the flag, counts and raises it in one critical section.
 *
 * Published: RankChecker, 11 threads, 2 schedules at (0,0,2,1).
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "sizes.h"

enum { MAX_TICKETS = 100 };

static int capacity;
static int seats_sold;
static bool stop_sales;

static void count_sale(void) {
    seats_sold += 1;
    if (seats_sold >= capacity) {
        stop_sales = true;
    }
}

#ifdef FIXED
static pthread_mutex_t sales_lock = PTHREAD_MUTEX_INITIALIZER;

static bool sales_stopped(void) {
    pthread_mutex_lock(&sales_lock);
    bool stopped = stop_sales;
    pthread_mutex_unlock(&sales_lock);
    return stopped;
}

static void sell_seat(void) {
    pthread_mutex_lock(&sales_lock);
    if (!stop_sales) {
        count_sale();
    }
    pthread_mutex_unlock(&sales_lock);
}
#else
static bool sales_stopped(void) {
    return stop_sales;
}

static void sell_seat(void) {
    count_sale();
}
#endif

static void *seller(void *unused) {
    sell_seat();
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"tickets", 2, 2, MAX_TICKETS}};
    read_sizes(argc, argv, sizes, 1);
    int tickets = sizes[0].value;
    int too_many = tickets < 20 ? 1 : tickets / 10;
    capacity = tickets - too_many;

    pthread_t sellers[MAX_TICKETS];
    int started = 0;
    while (started < tickets && !sales_stopped()) {
        pthread_create(&sellers[started], NULL, seller, NULL);
        started += 1;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(sellers[i], NULL);
    }
    assert(seats_sold <= capacity);
    return 0;
}
