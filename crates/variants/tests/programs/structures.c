// Locks and lock-free structures, each used twice by every thread. The arguments are the name of one of them and a
// number of threads.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATIONS = 2, MAX_THREADS = 8 };

static int how_many, plain;

static atomic_int flag;
static void test_and_set(long me) {
    (void)me;
    while (atomic_exchange(&flag, 1))
        ;
    plain++;
    atomic_store(&flag, 0);
}

static void test_first(long me) {
    (void)me;
    do
        while (atomic_load(&flag))
            sched_yield();
    while (atomic_exchange(&flag, 1));
    plain++;
    atomic_store(&flag, 0);
}

static atomic_int next_ticket, now_serving;
static void ticket(long me) {
    (void)me;
    int mine = atomic_fetch_add(&next_ticket, 1);
    while (atomic_load(&now_serving) != mine)
        ;
    plain++;
    atomic_store(&now_serving, mine + 1);
}

struct mcs_node {
    _Atomic(struct mcs_node *) next;
    atomic_int is_locked;
};
static struct mcs_node mcs_nodes[MAX_THREADS];
static _Atomic(struct mcs_node *) mcs_tail;
static void mcs(long me) {
    struct mcs_node *node = &mcs_nodes[me];
    atomic_store(&node->next, NULL);
    struct mcs_node *before = atomic_exchange(&mcs_tail, node);
    if (before) {
        atomic_store(&node->is_locked, 1);
        atomic_store(&before->next, node);
        while (atomic_load(&node->is_locked))
            ;
    }
    plain++;
    struct mcs_node *expected = node;
    if (!atomic_load(&node->next)) {
        if (atomic_compare_exchange_strong(&mcs_tail, &expected, NULL))
            return;
        while (!atomic_load(&node->next))
            ;
    }
    atomic_store(&atomic_load(&node->next)->is_locked, 0);
}

static atomic_int wants[2], turn;
static void peterson(long me) {
    atomic_store(&wants[me], 1);
    atomic_store(&turn, 1 - me);
    while (atomic_load(&wants[1 - me]) && atomic_load(&turn) == 1 - me)
        ;
    plain++;
    atomic_store(&wants[me], 0);
}

static atomic_int sequence, halves[2];
static void seqlock(long me) {
    if (me == 0) {
        atomic_fetch_add(&sequence, 1);
        atomic_fetch_add(&halves[0], 1);
        atomic_fetch_add(&halves[1], 1);
        atomic_fetch_add(&sequence, 1);
        return;
    }
    int before, first, second;
    do {
        before = atomic_load(&sequence);
        first = atomic_load(&halves[0]);
        second = atomic_load(&halves[1]);
    } while (before % 2 || before != atomic_load(&sequence));
    if (first != second)
        abort();
}

struct node {
    _Atomic(struct node *) next;
    int value;
};
static struct node nodes[MAX_THREADS][OPERATIONS + 1];
static int taken[MAX_THREADS];

static _Atomic(struct node *) top;
static void treiber(long me) {
    struct node *node = &nodes[me][taken[me]];
    if (me % 2 == 0) {
        struct node *old = atomic_load(&top);
        do
            atomic_store(&node->next, old);
        while (!atomic_compare_exchange_weak(&top, &old, node));
    } else {
        struct node *old = atomic_load(&top);
        while (old && !atomic_compare_exchange_weak(&top, &old, atomic_load(&old->next)))
            ;
    }
}

static struct node dummy;
static _Atomic(struct node *) head = &dummy, tail = &dummy;
static void michael_scott(long me) {
    if (me % 2 == 0) {
        struct node *node = &nodes[me][taken[me]];
        for (;;) {
            struct node *last = atomic_load(&tail), *next = atomic_load(&last->next);
            if (next) {
                atomic_compare_exchange_strong(&tail, &last, next);
            } else if (atomic_compare_exchange_strong(&last->next, &next, node)) {
                atomic_compare_exchange_strong(&tail, &last, node);
                return;
            }
        }
    }
    for (;;) {
        struct node *first = atomic_load(&head), *last = atomic_load(&tail), *next = atomic_load(&first->next);
        if (first != last) {
            if (atomic_compare_exchange_strong(&head, &first, next))
                return;
        } else if (!next) {
            return;
        } else {
            atomic_compare_exchange_strong(&tail, &last, next);
        }
    }
}

static atomic_int deque[16], deque_top, deque_bottom;
static void chase_lev(long me) {
    if (me == 0) {
        int bottom = atomic_load(&deque_bottom);
        if (taken[0] == 0) {
            atomic_store(&deque[bottom % 16], 1);
            atomic_store(&deque_bottom, bottom + 1);
            return;
        }
        atomic_store(&deque_bottom, --bottom);
        int top = atomic_load(&deque_top);
        if (top < bottom)
            return;
        if (top == bottom)
            atomic_compare_exchange_strong(&deque_top, &top, top + 1);
        atomic_store(&deque_bottom, bottom + 1);
        return;
    }
    int top = atomic_load(&deque_top);
    if (top < atomic_load(&deque_bottom))
        atomic_compare_exchange_strong(&deque_top, &top, top + 1);
}

static atomic_int arrived, sense;
static void sense_barrier(long me) {
    int mine = !(taken[me] % 2);
    if (atomic_fetch_add(&arrived, 1) + 1 == how_many) {
        atomic_store(&arrived, 0);
        atomic_store(&sense, mine);
    } else {
        while (atomic_load(&sense) != mine)
            ;
    }
}

static void (*operation)(long);

static void *run(void *argument) {
    long me = (long)argument;
    for (taken[me] = 0; taken[me] < OPERATIONS; taken[me]++)
        operation(me);
    return NULL;
}

static const struct {
    const char *name;
    void (*operation)(long);
} structures[] = {
    {"test_and_set", test_and_set},
    {"test_first", test_first},
    {"ticket", ticket},
    {"mcs", mcs},
    {"peterson", peterson},
    {"seqlock", seqlock},
    {"treiber", treiber},
    {"michael_scott", michael_scott},
    {"chase_lev", chase_lev},
    {"sense_barrier", sense_barrier},
};

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    how_many = atoi(arguments[2]);
    for (unsigned i = 0; i < sizeof structures / sizeof *structures; i++)
        if (!strcmp(structures[i].name, arguments[1]))
            operation = structures[i].operation;
    if (!operation)
        return 2;
    pthread_t threads[MAX_THREADS];
    for (long thread = 0; thread < how_many; thread++)
        pthread_create(&threads[thread], NULL, run, (void *)thread);
    for (int thread = 0; thread < how_many; thread++)
        pthread_join(threads[thread], NULL);
    return 0;
}
