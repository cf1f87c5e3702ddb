#include "scenario.h"

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

enum { HOUR = 3600 };

static int timer;

static long seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void arm(int flags, long first, long again) {
    struct itimerspec setting = {{again, 0}, {first, 0}};
    timerfd_settime(timer, flags, &setting, NULL);
}

static void *sleep_for_two_hours(void *nobody) {
    sleep(2 * HOUR);
    return nobody;
}

/* An hour is over in no time, and before two hours are. */
static int epolls(void) {
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, timer, &event);
    long begin = seconds();
    pthread_t sleeper = start(sleep_for_two_hours, NULL);
    arm(0, HOUR, 0);
    int ready = epoll_wait(set, &event, 1, -1);
    printf("%d ready after %ld h", ready, (seconds() - begin) / HOUR);
    pthread_join(sleeper, NULL);
    printf(", all after %ld h\n", (seconds() - begin) / HOUR);
    return 0;
}

static void *read_twice(void *nobody) {
    uint64_t times, sum = 0;
    for (int i = 0; i < 2; i++) {
        read(timer, &times, sizeof times);
        sum += times;
    }
    printf("%lu times in ", sum);
    return nobody;
}

/* Armed before the first thread. */
static int intervals(void) {
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    long begin = seconds();
    arm(0, HOUR, HOUR);
    pthread_join(start(read_twice, NULL), NULL);
    printf("%ld h\n", (seconds() - begin) / HOUR);
    return 0;
}

static void *do_nothing(void *nobody) {
    return nobody;
}

static int settings(void) {
    pthread_join(start(do_nothing, NULL), NULL);
    timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    arm(TFD_TIMER_ABSTIME, now.tv_sec + HOUR, 0);
    struct itimerspec left;
    timerfd_gettime(timer, &left);
    uint64_t times;
    ssize_t early = read(timer, &times, sizeof times);
    sleep(2 * HOUR);
    ssize_t late = read(timer, &times, sizeof times);
    printf("%d h left, %zd, %zd bytes\n", (int)(left.it_value.tv_sec + 60) / HOUR, early, late);
    return 0;
}

/* Nobody will ever arm it. */
static int never(void) {
    pthread_join(start(do_nothing, NULL), NULL);
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    uint64_t times;
    read(timer, &times, sizeof times);
    return 0;
}

/* While there is one thread, the kernel waits. */
static int alone(void) {
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec setting = {.it_value = {.tv_nsec = 1000}};
    timerfd_settime(timer, 0, &setting, NULL);
    uint64_t times;
    printf("%zd bytes\n", read(timer, &times, sizeof times));
    pthread_join(start(do_nothing, NULL), NULL);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(epolls);
    SCENARIO(intervals);
    SCENARIO(settings);
    SCENARIO(never);
    SCENARIO(alone);
    return 91;
}
