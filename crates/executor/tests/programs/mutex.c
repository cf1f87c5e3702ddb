#include "scenario.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static int counter, found;

static void *append(void *letter) {
    pthread_mutex_lock(&a);
    leave(*(char *)letter);
    pthread_mutex_unlock(&a);
    return NULL;
}

static int order(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) threads[i] = start(append, &"xyz"[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    puts(letters);
    return 0;
}

static void *increment(void *locked) {
    if (locked) pthread_mutex_lock(&a);
    counter = counter + 1;
    if (locked) pthread_mutex_unlock(&a);
    return NULL;
}

static int protected(void) {
    pthread_t other = start(increment, &a);
    increment(&a);
    pthread_join(other, NULL);
    printf("%d\n", counter);
    return 0;
}

static int slots[2];

static void *fill_slot(void *slot) {
    pthread_mutex_lock(&a);
    *(int *)slot = 1;
    pthread_mutex_unlock(&a);
    return NULL;
}

/* Whoever comes first, it comes to the same. */
static int either_way(void) {
    pthread_t one = start(fill_slot, &slots[0]), other = start(fill_slot, &slots[1]);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    printf("%d%d\n", slots[0], slots[1]);
    return 0;
}

static int unprotected(void) {
    pthread_t other = start(increment, NULL);
    increment(NULL);
    pthread_join(other, NULL);
    printf("%d\n", counter);
    return 0;
}

static void *try_recursive(void *nobody) {
    found = pthread_mutex_trylock(&recursive);
    if (found == 0) pthread_mutex_unlock(&recursive);
    return nobody;
}

static int recursion(void) {
    pthread_t other = start(try_recursive, NULL);
    int errors[7];
    errors[0] = pthread_mutex_lock(&recursive);
    errors[1] = pthread_mutex_lock(&recursive);
    errors[2] = pthread_mutex_trylock(&recursive);
    errors[3] = pthread_mutex_unlock(&recursive);
    errors[4] = pthread_mutex_unlock(&recursive);
    errors[5] = pthread_mutex_unlock(&recursive);
    pthread_join(other, NULL);
    errors[6] = pthread_mutex_unlock(&recursive);
    for (int i = 0; i < 7; i++) printf("%d ", errors[i]);
    puts(found == EBUSY ? "busy" : "free");
    return 0;
}

static void *unlock_checked(void *nobody) {
    found = pthread_mutex_unlock(&checked);
    return nobody;
}

static int error_check(void) {
    int first = pthread_mutex_lock(&checked);
    int again = pthread_mutex_lock(&checked), tried = pthread_mutex_trylock(&checked);
    pthread_join(start(unlock_checked, NULL), NULL);
    int last = pthread_mutex_unlock(&checked), more = pthread_mutex_unlock(&checked);
    printf("%d %d %d %d %d %d\n", first, again == EDEADLK, tried == EBUSY, found == EPERM, last, more == EPERM);
    return 0;
}

static void *hold(void *nobody) {
    pthread_mutex_lock(&a);
    counter = 1;
    counter = 2;
    pthread_mutex_unlock(&a);
    return nobody;
}

static void *try(void *nobody) {
    int error = pthread_mutex_trylock(&a);
    if (error == 0) pthread_mutex_unlock(&a);
    found = error;
    return nobody;
}

static int trying(void) {
    both(hold, try);
    puts(found == EBUSY ? "busy" : found == 0 ? "free" : "?");
    return 0;
}

static void *lock_for_a_second(void *nobody) {
    struct timespec until = in_seconds(CLOCK_REALTIME, 1);
    found = pthread_mutex_timedlock(&a, &until);
    if (found == 0) pthread_mutex_unlock(&a);
    return nobody;
}

static int timed(void) {
    both(hold, lock_for_a_second);
    puts(found == ETIMEDOUT ? "timed out" : found == 0 ? "locked" : "?");
    return 0;
}

static int timed_out(void) {
    struct timespec before = in_seconds(CLOCK_REALTIME, 1);
    pthread_mutex_lock(&a);
    pthread_join(start(lock_for_a_second, NULL), NULL);
    struct timespec after = in_seconds(CLOCK_REALTIME, 0);
    printf("%s, %s\n", found == ETIMEDOUT ? "timed out" : "?", after.tv_sec >= before.tv_sec ? "later" : "early");
    return 0;
}

static void *lock_by_clock(void *nobody) {
    struct timespec until = in_seconds(CLOCK_MONOTONIC, 1);
    found = pthread_mutex_clocklock(&a, CLOCK_MONOTONIC, &until);
    return nobody;
}

static int by_clock(void) {
    pthread_mutex_lock(&a);
    pthread_join(start(lock_by_clock, NULL), NULL);
    puts(found == ETIMEDOUT ? "timed out" : "?");
    return 0;
}

static void *relock(void *nobody) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&a);
    return nobody;
}

static int self_deadlock(void) {
    pthread_join(start(relock, NULL), NULL);
    return 0;
}

static void *a_then_b(void *nobody) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return nobody;
}

static void *b_then_a(void *nobody) {
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return nobody;
}

static int crossed(void) {
    both(a_then_b, b_then_a);
    puts("done");
    return 0;
}

static int destroyed(void) {
    pthread_mutex_t mutex;
    pthread_mutex_init(&mutex, NULL);
    pthread_join(start(nothing, NULL), NULL);
    pthread_mutex_lock(&mutex);
    int held = pthread_mutex_destroy(&mutex);
    pthread_mutex_unlock(&mutex);
    printf("%d %d\n", held == EBUSY, pthread_mutex_destroy(&mutex));
    return 0;
}

static int adaptive(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&a, &attributes);
    both(hold, try);
    puts(found == EBUSY ? "busy" : "free");
    return 0;
}

static void *end_holding(void *nobody) {
    pthread_mutex_lock(&a);
    return nobody;
}

/* The next to lock a robust mutex learns that its owner has ended. */
static int robust(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&a, &attributes);
    pthread_join(start(end_holding, NULL), NULL);
    int error = pthread_mutex_lock(&a);
    printf("%d %d\n", error == EOWNERDEAD, pthread_mutex_consistent(&a));
    pthread_mutex_unlock(&a);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(order);
    SCENARIO(protected);
    SCENARIO(either_way);
    SCENARIO(unprotected);
    SCENARIO(recursion);
    SCENARIO(error_check);
    SCENARIO(trying);
    SCENARIO(timed);
    SCENARIO(timed_out);
    SCENARIO(by_clock);
    SCENARIO(self_deadlock);
    SCENARIO(crossed);
    SCENARIO(destroyed);
    SCENARIO(adaptive);
    SCENARIO(robust);
    return 91;
}
