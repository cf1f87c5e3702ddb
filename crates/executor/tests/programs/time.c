#include "scenario.h"
#include <sys/time.h>

static int flag;
static volatile int plain;

static long milliseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void *sleep_and_say(void *tenths) {
    usleep((long)tenths * 100000);
    char digit = '0' + (long)tenths;
    write(1, &digit, 1);
    return NULL;
}

/* Whoever sleeps longer wakes later. */
static int sleeps(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) threads[i] = start(sleep_and_say, (void *)(long)"3142"[i] - '0');
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}

static void *look(void *nobody) {
    long before = milliseconds(CLOCK_MONOTONIC);
    for (int i = 0; i < 20; i++) {
        long now = milliseconds(CLOCK_MONOTONIC);
        if (now < before) abort();
        before = now;
        sched_yield();
    }
    return nobody;
}

/* An hour of sleep passes at once, on every clock, and no clock runs backwards. */
static int clocks(void) {
    both(look, look);
    long wall = milliseconds(CLOCK_REALTIME), steady = milliseconds(CLOCK_MONOTONIC), seconds = time(NULL);
    struct timeval before, after;
    gettimeofday(&before, NULL);
    sleep(3600);
    gettimeofday(&after, NULL);
    struct timespec until = in_seconds(CLOCK_MONOTONIC, 60);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    wall = milliseconds(CLOCK_REALTIME) - wall;
    steady = milliseconds(CLOCK_MONOTONIC) - steady;
    printf("%ld %ld %ld %ld\n", wall / 1000, steady / 1000, (long)(after.tv_sec - before.tv_sec),
           (long)(time(NULL) - seconds));
    return 0;
}

/* C11's way to ask for the time sees the same time. */
static int c11_clock(void) {
    pthread_join(start(nothing, NULL), NULL);
    struct timespec now, posix;
    timespec_get(&now, TIME_UTC);
    clock_gettime(CLOCK_REALTIME, &posix);
    puts(labs(now.tv_sec - posix.tv_sec) <= 1 ? "same" : "different");
    return 0;
}

static void *set_flag(void *nobody) {
    __atomic_store_n(&flag, 1, __ATOMIC_SEQ_CST);
    return nobody;
}

static void *spin_on_flag(void *nobody) {
    while (!__atomic_load_n(&flag, __ATOMIC_SEQ_CST)) {
    }
    return nobody;
}

static int spin_atomic(void) {
    both(spin_on_flag, set_flag);
    puts("done");
    return 0;
}

static int spin_in_many(void) {
    pthread_t a = start(spin_on_flag, NULL), b = start(spin_on_flag, NULL);
    both(spin_on_flag, set_flag);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    puts("done");
    return 0;
}

static void *set_plain(void *nobody) {
    plain = 1;
    return nobody;
}

static void *spin_on_plain(void *nobody) {
    while (!plain) sched_yield();
    return nobody;
}

static int spin_plain(void) {
    both(spin_on_plain, set_plain);
    puts("done");
    return 0;
}

static void *sleep_then_set(void *nobody) {
    usleep(1000);
    return set_flag(nobody);
}

static void *yield_on_flag(void *nobody) {
    while (!__atomic_load_n(&flag, __ATOMIC_SEQ_CST)) sched_yield();
    return nobody;
}

/* Time passes for a sleeper though another thread never stops running. */
static int spin_for_sleeper(void) {
    both(yield_on_flag, sleep_then_set);
    puts("done");
    return 0;
}

static void *sleep_on_flag(void *nobody) {
    while (!__atomic_load_n(&flag, __ATOMIC_SEQ_CST)) usleep(1000);
    return nobody;
}

static int poll_flag(void) {
    both(sleep_on_flag, set_flag);
    puts("done");
    return 0;
}

static void *wait_for_time(void *nobody) {
    struct timespec until = in_seconds(CLOCK_MONOTONIC, 0);
    until.tv_nsec += 1000000;
    struct timespec now;
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec * 1000000000L + now.tv_nsec < until.tv_sec * 1000000000L + until.tv_nsec);
    return nobody;
}

static int spin_on_clock(void) {
    both(wait_for_time, wait_for_time);
    puts("done");
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(sleeps);
    SCENARIO(clocks);
    SCENARIO(c11_clock);
    SCENARIO(spin_atomic);
    SCENARIO(spin_in_many);
    SCENARIO(spin_plain);
    SCENARIO(spin_for_sleeper);
    SCENARIO(poll_flag);
    SCENARIO(spin_on_clock);
    return 91;
}
