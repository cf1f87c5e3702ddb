/*
 * Bank accounts in a ring. Thread i deposits into account i, withdraws from it
 * and transfers a sum to account i + 1.
 *
 * The bug is a wrong lock: a transfer changes both amounts under the source's
 * lock alone, and a deposit takes no lock at all. If thread i has loaded the
 * destination's amount and thread i + 1 then runs its own deposit, the store
 * of thread i wipes that deposit out. The fix changes an amount only under
 * the lock of its own account, and holds one lock at a time.
 *
 * Published: RankChecker, 3 threads, 19 schedules at (1,all,2,1); PECAN, 66
 * events, 7 races, 2 AV and 6 ASV predicted, all 15 real, 8 with an exception.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_ACCOUNTS = 10, INITIAL = 1000, DEPOSIT = 300, WITHDRAWAL = 100, TRANSFER = 100 };

struct account {
    pthread_mutex_t lock;
    int amount;
    struct account *next;
};

static struct account accounts[MAX_ACCOUNTS];

static void deposit(struct account *account, int sum) {
#ifdef FIXED
    pthread_mutex_lock(&account->lock);
    account->amount += sum;
    pthread_mutex_unlock(&account->lock);
#else
    account->amount += sum;
#endif
}

static void withdraw(struct account *account, int sum) {
    pthread_mutex_lock(&account->lock);
    account->amount -= sum;
    pthread_mutex_unlock(&account->lock);
}

static void transfer(struct account *source, struct account *destination, int sum) {
#ifdef FIXED
    withdraw(source, sum);
    deposit(destination, sum);
#else
    pthread_mutex_lock(&source->lock);
    source->amount -= sum;
    destination->amount += sum;
    pthread_mutex_unlock(&source->lock);
#endif
}

static void *use_account(void *argument) {
    struct account *own = argument;
    deposit(own, DEPOSIT);
    withdraw(own, WITHDRAWAL);
    transfer(own, own->next, TRANSFER);
    return NULL;
}

static void open_accounts(int count) {
    for (int i = 0; i < count; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].amount = INITIAL;
        accounts[i].next = &accounts[(i + 1) % count];
    }
}

/* Each account gives one transfer away and receives one, so these two cancel out. */
static void check_amounts(int count) {
    for (int i = 0; i < count; i++) {
        assert(accounts[i].amount == INITIAL + DEPOSIT - WITHDRAWAL);
    }
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"accounts", 2, 2, MAX_ACCOUNTS}};
    read_sizes(argc, argv, sizes, 1);
    int count = sizes[0].value;

    pthread_t threads[MAX_ACCOUNTS];
    open_accounts(count);
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, use_account, &accounts[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    check_amounts(count);
    return 0;
}
