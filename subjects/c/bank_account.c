/*
 * A bank account with a lock, into which one thread deposits and from which
 * others withdraw.
 *
 * The bug: a withdrawal reads the balance in one critical section and writes
 * the new one in another. A deposit in between is overwritten. Every access is
 * locked, so there is no data race. The fix withdraws in one critical section.
 *
 * Published: CorrRT, 2 threads, 1 high-level race, found.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_THREADS = 32, INITIAL = 1000, DEPOSIT = 50, WITHDRAWAL = 20 };

static pthread_mutex_t account_lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = INITIAL;

static void deposit(int sum) {
    pthread_mutex_lock(&account_lock);
    balance += sum;
    pthread_mutex_unlock(&account_lock);
}

#ifdef FIXED
static void withdraw(int sum) {
    deposit(-sum);
}
#else
static int read_balance(void) {
    pthread_mutex_lock(&account_lock);
    int seen = balance;
    pthread_mutex_unlock(&account_lock);
    return seen;
}

static void withdraw(int sum) {
    int seen = read_balance();
    pthread_mutex_lock(&account_lock);
    balance = seen - sum;
    pthread_mutex_unlock(&account_lock);
}
#endif

static void *depositor(void *unused) {
    deposit(DEPOSIT);
    return unused;
}

static void *withdrawer(void *unused) {
    withdraw(WITHDRAWAL);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"withdrawers", 1, 1, MAX_THREADS}};
    read_sizes(argc, argv, sizes, 1);
    int withdrawers = sizes[0].value;

    pthread_t depositor_thread;
    pthread_t threads[MAX_THREADS];
    pthread_create(&depositor_thread, NULL, depositor, NULL);
    for (int i = 0; i < withdrawers; i++) {
        pthread_create(&threads[i], NULL, withdrawer, NULL);
    }
    pthread_join(depositor_thread, NULL);
    for (int i = 0; i < withdrawers; i++) {
        pthread_join(threads[i], NULL);
    }
    assert(balance == INITIAL + DEPOSIT - withdrawers * WITHDRAWAL);
    return 0;
}
