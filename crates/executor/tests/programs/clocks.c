/* Clocks that move with the work of the thread that looks. */
#include "scenario.h"
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static int64_t nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int64_t now(void) {
    return nanoseconds(CLOCK_MONOTONIC);
}

/* About 2 ms of work. */
static void *work(void *nobody) {
    volatile int *table = calloc(64, sizeof *table);
    for (int i = 0; i < 100000; i++) table[i % 64] += i;
    free((void *)table);
    return nobody;
}

/* The rate of one's own work in each unit, on every clock. A division by zero ends the program. */
static int divides(void) {
    pthread_join(start(nothing, NULL), NULL);
    clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME_COARSE, CLOCK_BOOTTIME,
                          CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    volatile int64_t rate = 0;
    for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        int64_t before = nanoseconds(clocks[i]);
        work(NULL);
        rate += 100000 / ((nanoseconds(clocks[i]) - before) / 1000000);
        before = nanoseconds(clocks[i]);
        rate += 1000 / ((nanoseconds(clocks[i]) - before) / 1000);
    }
    clock_t ticks = clock();
    rate += 1000 / (clock() - ticks);
    puts("divided");
    return 0;
}

/* The processor's time, which other functions tell too. */
static int usage(void) {
    pthread_join(start(nothing, NULL), NULL);
    struct rusage before, after;
    struct tms ticks, later;
    getrusage(RUSAGE_SELF, &before);
    clock_t first = times(&ticks);
    for (int i = 0; i < 10; i++) work(NULL);
    getrusage(RUSAGE_SELF, &after);
    clock_t last = times(&later);
    int64_t used = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 + after.ru_utime.tv_usec - before.ru_utime.tv_usec;
    sleep(10);
    clock_t processor = clock();
    printf("%d %d %d %d\n", used >= 10000 && used < 100000, last - first >= 1, later.tms_utime - ticks.tms_utime >= 1,
           processor < CLOCKS_PER_SEC);
    return 0;
}

/* Others did the work: it counts for who has joined them, or waited for them in another way. */
static int joined_work(void) {
    int64_t before = now();
    both(work, work);
    volatile int64_t rate = 100000 / ((now() - before) / 1000000);
    puts(rate ? "divided" : "slow");
    return 0;
}

static sem_t done;

static void *work_and_post(void *nobody) {
    work(NULL);
    sem_post(&done);
    return nobody;
}

static int awaited_work(void) {
    int64_t before = now();
    pthread_t worker = start(work_and_post, NULL);
    sem_wait(&done);
    volatile int64_t rate = 100000 / ((now() - before) / 1000000);
    pthread_join(worker, NULL);
    puts(rate ? "divided" : "slow");
    return 0;
}

/* Loops that wait for a clock to move. */
static int waits(void) {
    pthread_t other = start(work, NULL);
    int64_t begun = now();
    while (now() == begun) {}
    while (now() - begun < 10000000) {}
    time_t second = time(NULL);
    while (time(NULL) == second) {}
    struct timeval first, last;
    gettimeofday(&first, NULL);
    do gettimeofday(&last, NULL);
    while (last.tv_sec == first.tv_sec && last.tv_usec / 1000 == first.tv_usec / 1000);
    clock_t used = clock();
    while (clock() == used) {}
    begun = now();
    while (now() - begun < 3000000) sched_yield();
    pthread_join(other, NULL);
    puts("moved");
    return 0;
}

static void *yield_until(void *nobody) {
    int64_t begun = now() / 1000000000;
    while (now() / 1000000000 < begun + 3600) sched_yield();
    return nobody;
}

/* It waits for an hour, and that is no livelock. */
static int waits_for_long(void) {
    both(yield_until, yield_until);
    return 0;
}

/* A time that is passed on is not later than what its receiver reads. */
static int64_t stamp;
static _Atomic int64_t atomic_stamp;
static int ready, ends[2];

static void check(int64_t earlier) {
    if (earlier && now() <= earlier) abort();
}

static void *stamps_under_lock(void *nobody) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        check(stamp);
        for (int looks = i; looks < 3; looks++) stamp = now();
        pthread_mutex_unlock(&lock);
    }
    return nobody;
}

static int by_lock(void) {
    both(stamps_under_lock, stamps_under_lock);
    puts("in order");
    return 0;
}

static void *stamps_atomically(void *looks) {
    check(atomic_load(&atomic_stamp));
    for (long i = 0; i < (long)looks; i++) now();
    atomic_store(&atomic_stamp, now());
    check(atomic_exchange(&atomic_stamp, now()));
    return NULL;
}

static int by_atomic(void) {
    pthread_t other = start(stamps_atomically, (void *)9);
    stamps_atomically((void *)1);
    pthread_join(other, NULL);
    check(atomic_stamp);
    puts("in order");
    return 0;
}

static void *stamps_plainly(void *nobody) {
    for (int i = 0; i < 5; i++) now();
    *(volatile int64_t *)&stamp = now();
    return nobody;
}

static int by_race(void) {
    pthread_t other = start(stamps_plainly, NULL);
    check(*(volatile int64_t *)&stamp);
    pthread_join(other, NULL);
    check(stamp);
    puts("in order");
    return 0;
}

static void *stamps_for_condition(void *nobody) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 5; i++) stamp = now();
    ready = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&lock);
    return nobody;
}

static int by_condition(void) {
    pthread_t other = start(stamps_for_condition, NULL);
    pthread_mutex_lock(&lock);
    while (!ready) pthread_cond_wait(&condition, &lock);
    check(stamp);
    pthread_mutex_unlock(&lock);
    pthread_join(other, NULL);
    puts("in order");
    return 0;
}

static void *sends_stamp(void *nobody) {
    for (int i = 0; i < 5; i++) now();
    int64_t sent = now();
    write(ends[1], &sent, sizeof sent);
    return nobody;
}

static int by_pipe(void) {
    if (pipe(ends)) return 1;
    pthread_t other = start(sends_stamp, NULL);
    int64_t got = 0;
    read(ends[0], &got, sizeof got);
    check(got);
    pthread_join(other, NULL);
    puts("in order");
    return 0;
}

static pthread_barrier_t barrier;
static int64_t stamps[2];

static void *meets(void *which) {
    for (long i = 0; i < 1 + 4 * (long)which; i++) stamps[(long)which] = now();
    pthread_barrier_wait(&barrier);
    check(stamps[!which]);
    return NULL;
}

static int by_barrier(void) {
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t other = start(meets, (void *)1);
    meets((void *)0);
    pthread_join(other, NULL);
    puts("in order");
    return 0;
}

static void on_signal(int signal) {
    check(atomic_load_explicit(&atomic_stamp, memory_order_relaxed));
    ready = signal;
}

static void *sends_signal(void *target) {
    for (int i = 0; i < 5; i++) now();
    stamp = now();
    pthread_kill(*(pthread_t *)target, SIGUSR1);
    return NULL;
}

static int by_signal(void) {
    signal(SIGUSR1, on_signal);
    pthread_t me = pthread_self(), other = start(sends_signal, &me);
    while (!ready) sched_yield();
    check(stamp);
    pthread_join(other, NULL);
    puts("in order");
    return 0;
}

/* Deadlines that are made from what a clock says lie as far ahead as they should. */
static int deadlines(void) {
    pthread_join(start(nothing, NULL), NULL);
    work(NULL);
    int64_t begun = now();
    struct timespec until = {(begun + 5000000) / 1000000000, (begun + 5000000) % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    int64_t slept = now() - begun;
    begun = nanoseconds(CLOCK_REALTIME);
    until = (struct timespec){(begun + 5000000) / 1000000000, (begun + 5000000) % 1000000000};
    pthread_mutex_lock(&lock);
    int error = pthread_cond_timedwait(&condition, &lock, &until);
    pthread_mutex_unlock(&lock);
    int64_t waited = nanoseconds(CLOCK_REALTIME) - begun;
    printf("%d %d %d\n", slept >= 5000000 && slept < 6000000, error == ETIMEDOUT, waited >= 5000000 && waited < 6000000);
    return 0;
}

/* A timer is over for a thread that does nothing but look at it. */
static int spins_on_timer(void) {
    pthread_join(start(nothing, NULL), NULL);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec setting = {.it_value = {.tv_nsec = 5000000}};
    timerfd_settime(timer, 0, &setting, NULL);
    do timerfd_gettime(timer, &setting);
    while (setting.it_value.tv_sec || setting.it_value.tv_nsec);
    puts("over");
    return 0;
}

/* Two threads that look at clocks and work for themselves. */
static void *looks_twice(void *result) {
    *(int64_t *)result = now();
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    *(int64_t *)result -= now();
    return NULL;
}

static int independent(void) {
    int64_t spans[2];
    pthread_t one = start(looks_twice, spans), two = start(looks_twice, spans + 1);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%ld %ld\n", (long)spans[0], (long)spans[1]);
    return 0;
}

int main(int argc, char **argv) {
    sem_init(&done, 0, 0);
    SCENARIO(divides);
    SCENARIO(usage);
    SCENARIO(joined_work);
    SCENARIO(awaited_work);
    SCENARIO(waits);
    SCENARIO(waits_for_long);
    SCENARIO(by_lock);
    SCENARIO(by_atomic);
    SCENARIO(by_race);
    SCENARIO(by_condition);
    SCENARIO(by_pipe);
    SCENARIO(by_barrier);
    SCENARIO(by_signal);
    SCENARIO(deadlines);
    SCENARIO(spins_on_timer);
    SCENARIO(independent);
    return 91;
}
