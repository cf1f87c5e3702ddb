/* A lock for readers, for writers, and for one reader at a time that may become a writer. Those who have to wait stand in
 * a queue. The last reader that leaves lets somebody in: whoever waits to become a writer, or else the first in the queue.
 *
 * The fault is that of parking_lot 0.7.0: the last reader looks whether somebody waits to become a writer before it has
 * locked the queue. Somebody may begin to wait for that in between, is passed over, and waits for ever.
 *
 * It needs an unlock that lets threads in without giving them the lock. The first unlock with a queue gives it to them
 * (it is fair), which hides the fault. HISTORY says how many there were before.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef HISTORY
#define HISTORY 1
#endif

enum { QUEUE = 1, UPGRADING = 2, READER = 4, UPGRADABLE = 1 << 16, WRITER = 1 << 18, UPGRADE = WRITER - UPGRADABLE };

struct waiter {
    unsigned wants;
    int is_let_in, has_lock;
    pthread_cond_t change;
    struct waiter *next;
};

static atomic_uint state;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *first;
static int unlocks = HISTORY;

/* Who has the lock in this state leaves room for one more. */
static int fits(unsigned state, unsigned wants) {
    switch (wants) {
    case READER:
        return !(state & (WRITER | UPGRADING));
    case UPGRADABLE:
        return !(state & (WRITER | UPGRADABLE));
    case UPGRADE:
        return (state & ~(QUEUE | UPGRADING)) == UPGRADABLE;
    default:
        return !(state & ~QUEUE);
    }
}

/* Waits in the queue until it is let in, unless it can go on. Returns whether it was given the lock. */
static int wait_for(unsigned wants, int *was_let_in) {
    struct waiter self = {.wants = wants, .change = PTHREAD_COND_INITIALIZER};
    unsigned flags = wants == UPGRADE ? QUEUE | UPGRADING : QUEUE;
    pthread_mutex_lock(&queue);
    unsigned old = atomic_load(&state);
    do {
        if (fits(old, wants) && (wants == UPGRADE || !(old & QUEUE))) {
            pthread_mutex_unlock(&queue);
            return 0;
        }
    } while (!atomic_compare_exchange_strong(&state, &old, old | flags));
    struct waiter **last = &first;
    while (*last)
        last = &(*last)->next;
    *last = &self;
    while (!self.is_let_in)
        pthread_cond_wait(&self.change, &queue);
    pthread_mutex_unlock(&queue);
    *was_let_in = 1;
    return self.has_lock;
}

static void lock(unsigned wants) {
    int was_let_in = wants == UPGRADE;
    for (;;) {
        unsigned old = atomic_load(&state);
        if ((was_let_in || !(old & QUEUE)) && fits(old, wants)) {
            if (atomic_compare_exchange_strong(&state, &old, old + wants))
                return;
        } else {
            was_let_in = wants == UPGRADE;
            if (wait_for(wants, &was_let_in))
                return;
        }
    }
}

static void let_in(struct waiter **waiter, int with_lock) {
    struct waiter *out = *waiter;
    *waiter = out->next;
    out->has_lock = with_lock;
    out->is_let_in = 1;
    pthread_cond_signal(&out->change);
}

/* Lets in as many from the front of the queue as can have the lock together. Returns what they want together. */
static unsigned let_in_first(int with_lock) {
    unsigned granted = 0;
    while (first && first->wants != UPGRADE && fits(granted, first->wants)) {
        granted += first->wants;
        let_in(&first, with_lock);
    }
    return granted;
}

static void unlock_writer(void) {
    unsigned old = WRITER;
    if (atomic_compare_exchange_strong(&state, &old, 0))
        return;
    pthread_mutex_lock(&queue);
    int is_fair = unlocks++ == 0;
    unsigned granted = let_in_first(is_fair);
    atomic_store(&state, (is_fair ? granted : 0) | (first ? QUEUE : 0));
    pthread_mutex_unlock(&queue);
}

static void unlock_reader(void) {
    unsigned old = atomic_load(&state);
    for (;;) {
        unsigned last = old & UPGRADING ? UPGRADABLE + READER : READER;
        if ((old & QUEUE) && (old & ~(QUEUE | UPGRADING)) == last)
            break;
        if (atomic_compare_exchange_strong(&state, &old, old - READER))
            return;
    }
    pthread_mutex_lock(&queue);
#ifdef FIXED
    old = atomic_load(&state);
#endif
    unsigned gone = READER;
    if (old & UPGRADING) {
        struct waiter **upgrader = &first;
        while ((*upgrader)->wants != UPGRADE)
            upgrader = &(*upgrader)->next;
        let_in(upgrader, 0);
        gone += UPGRADING;
    } else {
        let_in_first(0);
    }
    old = atomic_load(&state);
    while (!atomic_compare_exchange_strong(&state, &old, (old - gone) & ~(first ? 0u : QUEUE)))
        ;
    pthread_mutex_unlock(&queue);
}

static void *read_once(void *unused) {
    lock(READER);
    unlock_reader();
    return unused;
}

static void *upgrade_once(void *unused) {
    lock(UPGRADABLE);
    lock(UPGRADE);
    unlock_writer();
    return unused;
}

static void *write_once(void *unused) {
    lock(WRITER);
    unlock_writer();
    return unused;
}

int main(void) {
    void *(*const routines[3])(void *) = {read_once, upgrade_once, write_once};
    pthread_t threads[3];
    lock(WRITER);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, routines[i], NULL);
    unlock_writer();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
