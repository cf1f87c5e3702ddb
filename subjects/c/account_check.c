/*
 * One account, one lock. Depositors and withdrawers change the balance and
 * report that they have; a checker compares the balance with what it should
 * be, but only if all of them have reported already.
 *
 * The bug is in the formula of the checker, which takes the deposits off the
 * balance instead of adding them. Nothing else is wrong, there is no data race,
 * and the formula is evaluated only if the checker comes last. Main does not
 * join the threads, so the process may also end before the checker has run.
 * The fix corrects the formula and joins.
 *
 * Known: 1 to 18 schedules to the bug in all tools.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_THREADS = 100, INITIAL = 1, DEPOSIT = 2, WITHDRAWAL = 4 };

static pthread_mutex_t account_lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = INITIAL;
static int depositors;
static int withdrawers;
static int deposited;
static int withdrawn;

static int expected_balance(void) {
#ifdef FIXED
    return INITIAL + depositors * DEPOSIT - withdrawers * WITHDRAWAL;
#else
    return INITIAL - depositors * DEPOSIT - withdrawers * WITHDRAWAL;
#endif
}

static void *depositor(void *unused) {
    pthread_mutex_lock(&account_lock);
    balance += DEPOSIT;
    deposited += 1;
    pthread_mutex_unlock(&account_lock);
    return unused;
}

static void *withdrawer(void *unused) {
    pthread_mutex_lock(&account_lock);
    balance -= WITHDRAWAL;
    withdrawn += 1;
    pthread_mutex_unlock(&account_lock);
    return unused;
}

static void *checker(void *unused) {
    pthread_mutex_lock(&account_lock);
    if (deposited == depositors && withdrawn == withdrawers) {
        assert(balance == expected_balance());
    }
    pthread_mutex_unlock(&account_lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"depositors", 1, 1, MAX_THREADS}, {"withdrawers", 1, 1, MAX_THREADS}};
    read_sizes(argc, argv, sizes, 2);
    depositors = sizes[0].value;
    withdrawers = sizes[1].value;
    int total = depositors + withdrawers;

    pthread_t threads[2 * MAX_THREADS + 1];
    pthread_create(&threads[total], NULL, checker, NULL);
    for (int i = 0; i < total; i++) {
        pthread_create(&threads[i], NULL, i < depositors ? depositor : withdrawer, NULL);
    }
#ifdef FIXED
    for (int i = 0; i <= total; i++) {
        pthread_join(threads[i], NULL);
    }
#endif
    return 0;
}
