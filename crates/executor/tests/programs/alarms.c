/* Timers that send signals, and signals that come while a thread waits for something else. */
#include "scenario.h"

#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

enum { HOUR = 3600 };

static sem_t semaphore;
static volatile int times;
static sigjmp_buf out;

static long seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void post(int signal) {
    times++;
    sem_post(&semaphore);
}

static void jump(int signal) {
    siglongjmp(out, signal);
}

static void do_nothing(int signal) {
}

static void *wait_for_nothing(void *nobody) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&condition, &mutex);
    return nobody;
}

static void *wait_for_post(void *nobody) {
    sem_wait(&semaphore);
    return nobody;
}

static void *post_here(void *nobody) {
    sem_post(&semaphore);
    return nobody;
}

/* Set before the first thread; everybody waits when it comes. */
static int posts(void) {
    signal(SIGALRM, post);
    alarm(HOUR);
    long begin = seconds();
    pthread_join(start(wait_for_post, NULL), NULL);
    printf("after %ld h\n", (seconds() - begin) / HOUR);
    return 0;
}

static int pauses(void) {
    signal(SIGALRM, post);
    pthread_t other = start(post_here, NULL);
    long begin = seconds();
    alarm(HOUR);
    int result = pause();
    printf("%d after %ld h\n", result, (seconds() - begin) / HOUR);
    pthread_join(other, NULL);
    return 0;
}

/* One that would kill the program only guards it. */
static int guards(void) {
    alarm(1);
    pthread_t other = start(post_here, NULL);
    sleep(HOUR);
    pthread_join(other, NULL);
    printf("alive\n");
    return 0;
}

static int guards_in_vain(void) {
    alarm(1);
    pthread_join(start(wait_for_post, NULL), NULL);
    return 0;
}

static int repeats(void) {
    signal(SIGALRM, post);
    struct itimerval each_hour = {{HOUR, 0}, {HOUR, 0}};
    setitimer(ITIMER_REAL, &each_hour, NULL);
    long begin = seconds();
    pthread_t waiting[3];
    for (int i = 0; i < 3; i++) waiting[i] = start(wait_for_post, NULL);
    for (int i = 0; i < 3; i++) pthread_join(waiting[i], NULL);
    printf("%d in %ld h\n", times, (seconds() - begin) / HOUR);
    return 0;
}

static void *wait_for_alarm(void *set) {
    int signal;
    sigwait(set, &signal);
    printf("%s\n", signal == SIGALRM ? "alarm" : "something else");
    return NULL;
}

static int waited_for(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t waiting = start(wait_for_alarm, &set);
    alarm(1);
    pthread_join(waiting, NULL);
    return 0;
}

static int settings(void) {
    both(nothing, nothing);
    unsigned before = alarm(HOUR), then = alarm(0);
    struct itimerval wrong = {{0, -1}, {0, 0}}, set = {{0, 7}, {5, 0}}, got;
    int refused = setitimer(ITIMER_REAL, &wrong, NULL), accepted = setitimer(ITIMER_REAL, &set, NULL);
    getitimer(ITIMER_REAL, &got);
    printf("%u %u %d %d %ld %ld", before, then, refused, accepted, got.it_value.tv_sec, got.it_interval.tv_usec);
    printf(" %d %u\n", setitimer(99, &set, NULL), alarm(0));
    return 0;
}

static int many(void) {
    signal(SIGUSR1, post);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t first, second;
    timer_create(CLOCK_MONOTONIC, &event, &first);
    timer_create(CLOCK_REALTIME, &event, &second);
    long begin = seconds();
    struct itimerspec in_an_hour = {{0, 0}, {HOUR, 0}}, in_two = in_an_hour, left;
    clock_gettime(CLOCK_REALTIME, &in_two.it_value);
    in_two.it_value.tv_sec += 2 * HOUR;
    timer_settime(first, 0, &in_an_hour, NULL);
    timer_settime(second, TIMER_ABSTIME, &in_two, NULL);
    both(wait_for_post, wait_for_post);
    timer_gettime(first, &left);
    printf("%d in %ld h, %ld left", times, (seconds() - begin + 1) / HOUR, (long)left.it_value.tv_sec);
    int deleted = timer_delete(first), again = timer_delete(first);
    printf(", %d %d %d\n", deleted, again, timer_settime(first, 0, &in_an_hour, NULL));
    return 0;
}

static void *wait_with_a_limit(void *nobody) {
    alarm(1);
    if (sigsetjmp(out, 1) == 0) sem_wait(&semaphore);
    else printf("given up\n");
    return nobody;
}

/* Other threads leave the signal to this one. */
static int jumps_out(void) {
    signal(SIGALRM, jump);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_t waiting = start(wait_with_a_limit, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_join(waiting, NULL);
    return 0;
}

/* Sent to a thread that waits, or will. */
static int killed(void) {
    signal(SIGUSR1, post);
    pthread_t waiting = start(wait_for_post, NULL);
    pthread_kill(waiting, SIGUSR1);
    pthread_join(waiting, NULL);
    printf("handled\n");
    return 0;
}

/* A tick that helps nobody. */
static int ticks_in_vain(void) {
    signal(SIGALRM, do_nothing);
    struct itimerval each_second = {{1, 0}, {1, 0}};
    setitimer(ITIMER_REAL, &each_second, NULL);
    pthread_join(start(wait_for_post, NULL), NULL);
    return 0;
}

static void note_value(int signal, siginfo_t *info, void *context) {
    times = *(int *)info->si_value.sival_ptr;
    sem_post(&semaphore);
}

static int tells_a_value(void) {
    static int value = 7;
    struct sigaction action = {.sa_sigaction = note_value, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_ptr = &value};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec soon = {{0, 0}, {1, 0}};
    timer_settime(timer, 0, &soon, NULL);
    pthread_join(start(wait_for_post, NULL), NULL);
    printf("%d\n", times);
    return 0;
}

/* A handler while its thread waits for a condition is not modelled. */
static int interrupts_a_wait(void) {
    signal(SIGUSR1, post);
    pthread_t waiting = start(wait_for_nothing, NULL);
    sleep(1);
    pthread_kill(waiting, SIGUSR1);
    pthread_join(waiting, NULL);
    return 0;
}

static int starts_a_thread(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD};
    timer_t timer;
    both(nothing, nothing);
    return timer_create(CLOCK_MONOTONIC, &event, &timer);
}

int main(int argc, char **argv) {
    sem_init(&semaphore, 0, 0);
    SCENARIO(posts);
    SCENARIO(pauses);
    SCENARIO(guards);
    SCENARIO(guards_in_vain);
    SCENARIO(repeats);
    SCENARIO(waited_for);
    SCENARIO(settings);
    SCENARIO(many);
    SCENARIO(jumps_out);
    SCENARIO(killed);
    SCENARIO(ticks_in_vain);
    SCENARIO(tells_a_value);
    SCENARIO(interrupts_a_wait);
    SCENARIO(starts_a_thread);
    return 91;
}
