/*
 * The ring of bank accounts again, here with every amount changed under its
 * own account's lock: a transfer holds the locks of both accounts.
 *
 * The bug is the order of the two locks, source before destination, which
 * closes a circle around the ring. When every thread holds its own account and
 * none has reached the next one yet, all of them wait for ever. The fix takes
 * the account with the lower address first, whichever end of the transfer it
 * is, so no circle can form.
 *
 * Known: N - 1 preemptions and N threads for a ring of N accounts.
 */
#include <pthread.h>

#include "sizes.h"

enum { MAX_ACCOUNTS = 10, INITIAL = 1000, DEPOSIT = 300, WITHDRAWAL = 100, TRANSFER = 100 };

struct account {
    pthread_mutex_t lock;
    int amount;
    struct account *next;
};

static struct account accounts[MAX_ACCOUNTS];

static void change_amount(struct account *account, int difference) {
    pthread_mutex_lock(&account->lock);
    account->amount += difference;
    pthread_mutex_unlock(&account->lock);
}

static void transfer(struct account *source, struct account *destination, int sum) {
    struct account *first = source;
    struct account *second = destination;
#ifdef FIXED
    if (destination < source) {
        first = destination;
        second = source;
    }
#endif
    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(&second->lock);
    source->amount -= sum;
    destination->amount += sum;
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
}

static void *use_account(void *argument) {
    struct account *own = argument;
    change_amount(own, DEPOSIT);
    change_amount(own, -WITHDRAWAL);
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
    return 0;
}
