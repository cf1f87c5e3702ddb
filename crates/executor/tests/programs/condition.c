#include "scenario.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER, arrived = PTHREAD_COND_INITIALIZER;
static int waiting, ready, found;

static void *wait_blindly(void *nobody) {
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return nobody;
}

static void *signal_once(void *nobody) {
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return nobody;
}

/* The signal may come before the wait. */
static int lost(void) {
    both(wait_blindly, signal_once);
    puts("woken");
    return 0;
}

static void *wait_and_leave(void *letter) {
    pthread_mutex_lock(&mutex);
    waiting++;
    pthread_cond_signal(&arrived);
    pthread_cond_wait(&condition, &mutex);
    leave(*(char *)letter);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void wait_for_arrivals(int count) {
    while (waiting < count) pthread_cond_wait(&arrived, &mutex);
}

/* One signal for two that wait: either may get it. */
static int either(void) {
    pthread_t x = start(wait_and_leave, "x"), y = start(wait_and_leave, "y");
    pthread_mutex_lock(&mutex);
    wait_for_arrivals(2);
    pthread_cond_signal(&condition);
    while (letters[0] == 0) {
        pthread_mutex_unlock(&mutex);
        sched_yield();
        pthread_mutex_lock(&mutex);
    }
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    pthread_join(x, NULL);
    pthread_join(y, NULL);
    puts(letters);
    return 0;
}

static int everybody(void) {
    pthread_t x = start(wait_and_leave, "x"), y = start(wait_and_leave, "y");
    pthread_mutex_lock(&mutex);
    wait_for_arrivals(2);
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    pthread_join(x, NULL);
    pthread_join(y, NULL);
    puts(letters);
    return 0;
}

/* A signal wakes one of those who wait already, and nobody who comes later. */
static int one_is_left(void) {
    pthread_t x = start(wait_and_leave, "x"), y = start(wait_and_leave, "y");
    pthread_mutex_lock(&mutex);
    wait_for_arrivals(2);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    pthread_join(x, NULL);
    pthread_join(y, NULL);
    return 0;
}

static void *set_ready(void *nobody) {
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return nobody;
}

static int predicate(void) {
    pthread_t other = start(set_ready, NULL);
    pthread_mutex_lock(&mutex);
    while (!ready) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    pthread_join(other, NULL);
    puts("ready");
    return 0;
}

/* Looks once only: right as long as nobody is woken for no reason. */
static int trusting(void) {
    pthread_t other = start(set_ready, NULL);
    pthread_mutex_lock(&mutex);
    if (!ready) pthread_cond_wait(&condition, &mutex);
    puts(ready ? "ready" : "early");
    pthread_mutex_unlock(&mutex);
    pthread_join(other, NULL);
    return 0;
}

static int nobody_signals(void) {
    pthread_join(start(nothing, NULL), NULL);
    struct timespec until = in_seconds(CLOCK_REALTIME, 5);
    pthread_mutex_lock(&mutex);
    int error = pthread_cond_timedwait(&condition, &mutex, &until);
    int held = pthread_mutex_trylock(&mutex);
    struct timespec after = in_seconds(CLOCK_REALTIME, 0);
    printf("%d %d %d\n", error == ETIMEDOUT, held == EBUSY, after.tv_sec >= until.tv_sec);
    return 0;
}

static void wait_for_seconds(int seconds) {
    struct timespec until = in_seconds(CLOCK_REALTIME, seconds);
    pthread_mutex_lock(&mutex);
    while (!ready && found != ETIMEDOUT) found = pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}

static void *wait_a_second(void *nobody) {
    wait_for_seconds(1);
    return nobody;
}

static int timed(void) {
    both(wait_a_second, set_ready);
    puts(found == ETIMEDOUT ? "timed out" : "ready");
    return 0;
}

static void *wait_a_day(void *nobody) {
    wait_for_seconds(24 * 3600);
    return nobody;
}

/* Nobody is kept from running for so long. */
static int patient(void) {
    both(wait_a_day, set_ready);
    puts(found == ETIMEDOUT ? "timed out" : "ready");
    return 0;
}

/* … but if nobody comes, it ends. */
static int in_vain(void) {
    both(wait_a_day, nothing);
    puts(found == ETIMEDOUT ? "timed out" : "ready");
    return 0;
}

static int monotonic(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition, &attributes);
    pthread_join(start(nothing, NULL), NULL);
    struct timespec until = in_seconds(CLOCK_MONOTONIC, 5);
    pthread_mutex_lock(&mutex);
    int error = pthread_cond_timedwait(&condition, &mutex, &until);
    struct timespec after = in_seconds(CLOCK_MONOTONIC, 0);
    until.tv_sec++;
    int late = pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&mutex);
    printf("%d %d %d %d\n", error == ETIMEDOUT, after.tv_sec >= until.tv_sec - 1, late == ETIMEDOUT,
           pthread_cond_destroy(&condition));
    return 0;
}

static int not_owned(void) {
    pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    pthread_join(start(nothing, NULL), NULL);
    printf("%d\n", pthread_cond_wait(&condition, &checked) == EPERM);
    return 0;
}

static void *signal_recursive(void *held) {
    pthread_mutex_lock(held);
    ready = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(held);
    return NULL;
}

/* A wait gives up one hold of a recursive mutex; with two holds nobody else can ever lock it. */
static int held_twice(void) {
    pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_t other = start(signal_recursive, &recursive);
    while (!ready) pthread_cond_wait(&condition, &recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    pthread_join(other, NULL);
    puts("done");
    return 0;
}

static int held_once(void) {
    pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    pthread_mutex_lock(&recursive);
    pthread_t other = start(signal_recursive, &recursive);
    while (!ready) pthread_cond_wait(&condition, &recursive);
    pthread_mutex_unlock(&recursive);
    pthread_join(other, NULL);
    puts("done");
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(lost);
    SCENARIO(either);
    SCENARIO(everybody);
    SCENARIO(one_is_left);
    SCENARIO(predicate);
    SCENARIO(trusting);
    SCENARIO(nobody_signals);
    SCENARIO(timed);
    SCENARIO(patient);
    SCENARIO(in_vain);
    SCENARIO(monotonic);
    SCENARIO(not_owned);
    SCENARIO(held_twice);
    SCENARIO(held_once);
    return 91;
}
