#include "scenario.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int turn_one = 1, turn_two = 1, counter;

/* Both step back for the other, for ever. */
static void *polite_one(void *nobody) {
    while (__atomic_load_n(&turn_two, __ATOMIC_SEQ_CST)) sched_yield();
    __atomic_store_n(&turn_one, 0, __ATOMIC_SEQ_CST);
    return nobody;
}

static void *polite_two(void *nobody) {
    while (__atomic_load_n(&turn_one, __ATOMIC_SEQ_CST)) sched_yield();
    __atomic_store_n(&turn_two, 0, __ATOMIC_SEQ_CST);
    return nobody;
}

static int polite(void) {
    both(polite_one, polite_two);
    return 0;
}

static void *count(void *nobody) {
    for (int i = 0; i < 1000000; i++) {
        pthread_mutex_lock(&a);
        counter++;
        pthread_mutex_unlock(&a);
    }
    return nobody;
}

/* Long, but it gets somewhere. */
static int counting(void) {
    both(count, count);
    return 0;
}

static void *lock_often(void *nobody) {
    for (int i = 0; i < 1000000; i++) {
        pthread_mutex_lock(&b);
        pthread_mutex_unlock(&b);
    }
    return nobody;
}

/* Long, and only the threads' own counters show that it gets somewhere. */
static int locking(void) {
    both(lock_often, lock_often);
    return 0;
}

static void *wait_for_turn(void *nobody) {
    while (__atomic_load_n(&turn_two, __ATOMIC_SEQ_CST)) sched_yield();
    return nobody;
}

static void *give_turn(void *nobody) {
    __atomic_store_n(&turn_two, 0, __ATOMIC_SEQ_CST);
    return nobody;
}

/* Goes in circles until the other has had its turn. */
static int waiting(void) {
    both(wait_for_turn, give_turn);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(polite);
    SCENARIO(counting);
    SCENARIO(locking);
    SCENARIO(waiting);
    return 91;
}
