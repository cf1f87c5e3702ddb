/* System calls with an instruction of the program's own, which no function of libc's sees. */
#include "scenario.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static long raw6(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
    long result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}
#define raw(number, ...) RAW(number, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define RAW(number, a, b, c, d, e, f, ...) \
    raw6(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static int word, counter, ends[2];

static void lock(void) {
    while (__atomic_exchange_n(&word, 2, __ATOMIC_SEQ_CST) != 0) raw(SYS_futex, &word, FUTEX_WAIT, 2, NULL);
}

static void unlock(int wakes) {
    __atomic_store_n(&word, 0, __ATOMIC_SEQ_CST);
    if (wakes) raw(SYS_futex, &word, FUTEX_WAKE, 1);
}

static void *counts(void *wakes) {
    lock();
    counter++;
    unlock(wakes != NULL);
    return NULL;
}

static int count_with(void *wakes) {
    pthread_t one = start(counts, wakes), other = start(counts, wakes);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    printf("%d\n", counter);
    return 0;
}

static int futexes(void) {
    return count_with(&word);
}

static int futexes_without_wake(void) {
    return count_with(NULL);
}

static void *sleeps(void *nobody) {
    struct timespec hour = {3600, 0}, before, after;
    raw(SYS_clock_gettime, CLOCK_MONOTONIC, &before);
    if (raw(SYS_nanosleep, &hour, NULL) != 0) abort();
    raw(SYS_clock_gettime, CLOCK_MONOTONIC, &after);
    printf("%ld h\n", (after.tv_sec - before.tv_sec) / 3600);
    return nobody;
}

static int sleeping(void) {
    both(sleeps, nothing);
    return 0;
}

static void *reads(void *nobody) {
    char letter = 0;
    long got = raw(SYS_read, ends[0], &letter, 1);
    printf("%ld %c\n", got, letter);
    return nobody;
}

static void *writes(void *nobody) {
    raw(SYS_write, ends[1], "x", 1);
    return nobody;
}

static int pipes(void) {
    if (raw(SYS_pipe2, ends, 0) != 0) return 1;
    both(reads, writes);
    return 0;
}

static int pipes_without_writer(void) {
    if (raw(SYS_pipe2, ends, 0) != 0) return 1;
    both(reads, nothing);
    return 0;
}

/* What the call must leave as it was: registers, and what lies below the stack pointer. */
static int keeping(void) {
    pthread_join(start(nothing, NULL), NULL);
    volatile double half = 0.5;
    double sum = half, before = half;
    for (int i = 0; i < 8; i++) sum += before * raw(SYS_getpid) / getpid();
    long low, high, result;
    asm volatile("movq $7, -8(%%rsp)\n movq $9, -128(%%rsp)\n syscall\n movq -8(%%rsp), %0\n movq -128(%%rsp), %1"
                 : "=r"(low), "=r"(high), "=a"(result)
                 : "a"(SYS_gettid)
                 : "rcx", "r11", "memory");
    printf("%.1f %ld %ld %d %ld\n", sum, low, high, result == gettid(), raw(SYS_close, 12345));
    return 0;
}

static int children(void) {
    pthread_join(start(nothing, NULL), NULL);
    int status[2];
    long calls[2] = {SYS_fork, SYS_vfork};
    for (int i = 0; i < 2; i++) {
        long child = raw(calls[i]);
        if (child == 0) raw(SYS_exit_group, 3 + i);
        raw(SYS_wait4, child, &status[i], 0, NULL);
    }
    long child = raw(SYS_clone, SIGCHLD, 0);
    if (child == 0) raw(SYS_exit_group, 5);
    int last;
    wait4(child, &last, 0, NULL);
    printf("%d %d %d\n", WEXITSTATUS(status[0]), WEXITSTATUS(status[1]), WEXITSTATUS(last));
    return 0;
}

/* Whoever closes all descriptors must not close the tool's, by whatever way. */
static int closing(void) {
    pthread_join(start(nothing, NULL), NULL);
    int file = open("/dev/null", O_RDONLY), other;
    raw(SYS_close_range, 3, ~0U, 0);
    other = open("/dev/null", O_RDONLY);
    printf("%d ", file == other);
    syscall(SYS_close_range, 3, ~0U, 0);
    for (int i = 3; i < 2000; i++) {
        raw(SYS_close, i);
        if (raw(SYS_dup2, 1, i) == i) close(i);
    }
    DIR *directory = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        int number = atoi(entry->d_name);
        if (number > 2 && number != dirfd(directory)) close(number);
    }
    closedir(directory);
    closefrom(3);
    both(nothing, nothing);
    puts("still there");
    return 0;
}

static int handled;
static void handler(int signal) {
    handled += signal == SIGUSR1;
}
asm(".text\nrestorer:\n mov $15, %eax\n syscall");
extern void restorer(void);

/* A handler that returns by an instruction of the program's own. */
static int handlers(void) {
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {handler, 0x04000000, restorer, 0};
    pthread_join(start(nothing, NULL), NULL);
    raw(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8);
    kill(getpid(), SIGUSR1);
    printf("%d %d\n", handled, raw(SYS_getpid) == getpid());
    return 0;
}

static void *makes_a_ring(void *nobody) {
    struct io_uring_params parameters = {0};
    raw(SYS_io_uring_setup, 4, &parameters);
    return nobody;
}

static int rings(void) {
    both(makes_a_ring, nothing);
    return 0;
}

static void *makes_a_thread(void *nobody) {
    syscall(SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, NULL, NULL, NULL, NULL);
    return nobody;
}

static int threads(void) {
    both(makes_a_thread, nothing);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(futexes);
    SCENARIO(futexes_without_wake);
    SCENARIO(sleeping);
    SCENARIO(pipes);
    SCENARIO(pipes_without_writer);
    SCENARIO(keeping);
    SCENARIO(children);
    SCENARIO(closing);
    SCENARIO(handlers);
    SCENARIO(rings);
    SCENARIO(threads);
    return 2;
}
