/* A bug for each oracle, which some schedules show; with -DFIXED the same program without it. */
#include "scenario.h"
#include <assert.h>
#include <stdexcept>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static int counter, state, turn_one = 1, turn_two = 1;
static int *shared;

#ifdef FIXED
#define LOCK pthread_mutex_lock(&mutex)
#define UNLOCK pthread_mutex_unlock(&mutex)
#else
#define LOCK (void)0
#define UNLOCK (void)0
#endif

static void *add(void *) {
    LOCK;
    counter++;
    UNLOCK;
    return NULL;
}

static int assertion(void) {
    both(add, add);
    assert(counter == 2);
    return 0;
}

static int exit_code(void) {
    both(add, add);
    return counter == 2 ? 0 : 3;
}

/* Changes for a moment, which nobody is to see. */
static void *change(void *) {
    LOCK;
    state = 1;
    state = 0;
    UNLOCK;
    return NULL;
}

static int seen(void) {
    LOCK;
    int value = state;
    UNLOCK;
    return value;
}

static void *abort_if_seen(void *) {
    if (seen()) abort();
    return NULL;
}

static int abortion(void) {
    both(change, abort_if_seen);
    return 0;
}

static void *throw_if_seen(void *) {
    if (seen()) throw std::runtime_error("seen");
    return NULL;
}

static int exception(void) {
    both(change, throw_if_seen);
    return 0;
}

static void *take_away(void *) {
    LOCK;
    shared = NULL;
    UNLOCK;
    return NULL;
}

static void *use_if_there(void *) {
    LOCK;
    if (shared) *shared = 1;
    UNLOCK;
    return NULL;
}

static int fatal_signal(void) {
    shared = &counter;
    both(take_away, use_if_there);
    return 0;
}

static void *lock_in_order(void *) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *lock_crosswise(void *nobody) {
#ifdef FIXED
    return lock_in_order(nobody);
#else
    pthread_mutex_lock(&other);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&other);
    return nobody;
#endif
}

static int deadlock(void) {
    both(lock_in_order, lock_crosswise);
    return 0;
}

/* Each lets the other go first. */
static void *wait_for_two(void *) {
    while (__atomic_load_n(&turn_two, __ATOMIC_SEQ_CST)) sched_yield();
    __atomic_store_n(&turn_one, 0, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *wait_for_one(void *) {
#ifdef FIXED
    __atomic_store_n(&turn_two, 0, __ATOMIC_SEQ_CST);
#endif
    while (__atomic_load_n(&turn_one, __ATOMIC_SEQ_CST)) sched_yield();
    __atomic_store_n(&turn_two, 0, __ATOMIC_SEQ_CST);
    return NULL;
}

static int livelock(void) {
    both(wait_for_two, wait_for_one);
    return 0;
}

static void allocate(int count) {
    shared = (int *)malloc(count * sizeof(int));
}

/* The last to leave frees it. */
static void *use_and_drop(void *) {
    LOCK;
    *shared = 1;
    if (++counter == 2) free(shared);
    UNLOCK;
    return NULL;
}

static void *drop_early(void *) {
#ifdef FIXED
    return use_and_drop(NULL);
#else
    free(shared);
    return NULL;
#endif
}

static void *use(void *) {
#ifdef FIXED
    return use_and_drop(NULL);
#else
    *shared = 1;
    return NULL;
#endif
}

static int use_after_free(void) {
    allocate(4);
    both(drop_early, use);
    return 0;
}

static void *drop_if_there(void *) {
    LOCK;
    if (shared) {
        free(shared);
        shared = NULL;
    }
    UNLOCK;
    return NULL;
}

static int double_free(void) {
    allocate(4);
    both(drop_if_there, drop_if_there);
    return 0;
}

static void *step_and_back(void *) {
    LOCK;
    shared++;
    shared--;
    UNLOCK;
    return NULL;
}

static int invalid_free(void) {
    allocate(4);
    both(step_and_back, drop_if_there);
    return 0;
}

static void *append(void *) {
    LOCK;
    if (counter < 1) {
        counter++;
        shared[counter - 1] = 1;
    }
    UNLOCK;
    return NULL;
}

/* Room for one, which both may find free. */
static int overflow(void) {
    allocate(1);
    both(append, append);
    return 0;
}

static int data_race(void) {
    both(add, add);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(assertion);
    SCENARIO(exit_code);
    SCENARIO(abortion);
    SCENARIO(exception);
    SCENARIO(fatal_signal);
    SCENARIO(deadlock);
    SCENARIO(livelock);
    SCENARIO(use_after_free);
    SCENARIO(double_free);
    SCENARIO(invalid_free);
    SCENARIO(overflow);
    SCENARIO(data_race);
    return 91;
}
