#include "scenario.h"

#include <poll.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

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

/* Also while there is one thread. */
static int alone(void) {
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec setting = {.it_value = {.tv_nsec = 1000}};
    timerfd_settime(timer, 0, &setting, NULL);
    uint64_t times;
    printf("%zd bytes\n", read(timer, &times, sizeof times));
    pthread_join(start(do_nothing, NULL), NULL);
    return 0;
}

static uint64_t times_over(void) {
    uint64_t times = 0;
    read(timer, &times, sizeof times);
    return times;
}

/* Over before the wait is, whoever runs meanwhile. */
static int polls(void) {
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    pthread_t other = start(do_nothing, NULL);
    arm(0, 1, 0);
    struct pollfd entry = {timer, POLLIN, 0};
    printf("%d ready, ", poll(&entry, 1, 10 * 1000));
    arm(0, 1, 0);
    sem_t never;
    sem_init(&never, 0, 0);
    struct timespec limit = in_seconds(CLOCK_REALTIME, 2);
    sem_timedwait(&never, &limit);
    printf("%lu time\n", times_over());
    pthread_join(other, NULL);
    return 0;
}

static int finished;

static void *work_long(void *nobody) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    eventfd_write(finished, 1);
    return nobody;
}

/* However long others work, they are not held up for so long that a timer is over. */
static int guards(void) {
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    finished = eventfd(0, 0);
    arm(0, 5, 0);
    pthread_t worker = start(work_long, NULL);
    struct pollfd entries[] = {{timer, POLLIN, 0}, {finished, POLLIN, 0}};
    poll(entries, 2, -1);
    puts(entries[0].revents ? "late" : "in time");
    pthread_join(worker, NULL);
    return 0;
}

static int counts(void) {
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    arm(0, 1, 2);
    sleep(4);
    pthread_join(start(do_nothing, NULL), NULL);
    printf("%lu ", times_over());
    sleep(6);
    printf("%lu ", times_over());
    while (times_over() == 0) {
    }
    puts("1");
    return 0;
}

/* By any of its numbers, and in any run, also if a child has it too. */
static int numbers(void) {
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    if (fork() == 0) _exit(0);
    wait(NULL);
    pthread_join(start(do_nothing, NULL), NULL);
    int first = timer;
    timer = dup(first);
    arm(0, HOUR, 0);
    close(first);
    printf("%lu, ", times_over());
    int ends[2];
    pipe(ends);
    dup2(ends[0], timer);
    sleep(HOUR);
    struct itimerspec setting = {{0, 0}, {1, 0}};
    printf("%d\n", timerfd_settime(timer, 0, &setting, NULL));
    return 0;
}

static int mistakes(void) {
    pthread_join(start(do_nothing, NULL), NULL);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec wrong = {.it_value = {.tv_nsec = 2000000000}};
    printf("%d %d ", timerfd_settime(timer, 0, &wrong, NULL), timerfd_settime(timer, 0x80, &wrong, NULL));
    printf("%d %d ", timerfd_gettime(timer, NULL), timerfd_gettime(0, &wrong));
    arm(TFD_TIMER_ABSTIME, seconds() + 30 * 365 * 24 * HOUR, 0);
    printf("%lu\n", times_over());
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(epolls);
    SCENARIO(intervals);
    SCENARIO(settings);
    SCENARIO(never);
    SCENARIO(alone);
    SCENARIO(polls);
    SCENARIO(guards);
    SCENARIO(counts);
    SCENARIO(numbers);
    SCENARIO(mistakes);
    return 91;
}
