/*
 * A bank that keeps a total beside the balances. Each thread adds one to its
 * own balance and one to the total, several times over.
 *
 * The bug: the total belongs to all threads, but is read, increased and written
 * back without a lock. Of two threads that read the same total, one loses its
 * increase. The fix gives the total a lock.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_THREADS = 100, MAX_DEPOSITS = 10000 };

static int balances[MAX_THREADS];
static int bank_total;
static int deposits;

#ifdef FIXED
static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;

static void add_to_total(int sum) {
    pthread_mutex_lock(&total_lock);
    bank_total += sum;
    pthread_mutex_unlock(&total_lock);
}
#else
static void add_to_total(int sum) {
    bank_total += sum;
}
#endif

static void *depositor(void *argument) {
    int *balance = argument;
    for (int i = 0; i < deposits; i++) {
        *balance += 1;
        add_to_total(1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"threads", 2, 1, MAX_THREADS}, {"deposits", 1, 1, MAX_DEPOSITS}};
    read_sizes(argc, argv, sizes, 2);
    int count = sizes[0].value;
    deposits = sizes[1].value;

    pthread_t threads[MAX_THREADS];
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, depositor, &balances[i]);
    }
    int sum_of_balances = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        sum_of_balances += balances[i];
    }
    assert(bank_total == sum_of_balances);
    return 0;
}
