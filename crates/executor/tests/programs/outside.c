/* What the outside world gives a program, and what threads do through it. */
#include "scenario.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int ends[2];
static int file, seen;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Numbers from every source there is. */
static int chance(void) {
    pthread_join(start(nothing, NULL), NULL);
    unsigned numbers[5] = {0};
    getrandom(&numbers[0], sizeof(unsigned), 0);
    getentropy(&numbers[1], sizeof(unsigned));
    int device = open("/dev/urandom", O_RDONLY);
    read(device, &numbers[2], sizeof(unsigned));
    FILE *stream = fopen("/dev/random", "r");
    fread(&numbers[3], sizeof(unsigned), 1, stream);
    syscall(SYS_getrandom, &numbers[4], sizeof(unsigned), 0);
    for (int i = 0; i < 5; i++) printf("%08x ", numbers[i]);
    return 0;
}

static int process_id(void) {
    pthread_join(start(nothing, NULL), NULL);
    printf("%d %d\n", getpid(), gettid());
    return 0;
}

static void *read_line(void *nobody) {
    char line[4] = "";
    read(file, line, 3);
    printf("%s", line);
    return nobody;
}

/* A file that was opened before the first thread is read from the same place in every run. */
static int file_position(void) {
    file = open("/proc/version", O_RDONLY);
    both(read_line, read_line);
    return 0;
}

/* What is printed before the first thread is part of every run's output. */
static int early_output(void) {
    write(1, "early ", 6);
    pthread_join(start(nothing, NULL), NULL);
    write(1, "late", 4);
    return 0;
}

static void *read_pipe(void *nobody) {
    char byte = '?';
    read(ends[0], &byte, 1);
    printf("%c\n", byte);
    return nobody;
}

static void *write_pipe(void *nobody) {
    write(ends[1], "p", 1);
    return nobody;
}

static int pipes(void) {
    if (pipe(ends) != 0) return 92;
    both(read_pipe, write_pipe);
    return 0;
}

static void *talk(void *nobody) {
    char bytes[8] = "";
    read(ends[0], bytes, sizeof bytes - 1);
    write(ends[1], "late", 4);
    printf("%s\n", bytes);
    return nobody;
}

/* What lay in a pipe before there were threads is there in every run, and nothing of another run. */
static int old_pipe(void) {
    if (pipe(ends) != 0) return 92;
    write(ends[1], "early", 5);
    ends[0] = dup(ends[0]);
    both(talk, nothing);
    return 0;
}

static int old_pair(void) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return 92;
    write(ends[1], "one", 3);
    write(ends[1], "two", 3);
    both(talk, nothing);
    return 0;
}

static void *count_event(void *nobody) {
    uint64_t value = 0, more = 5;
    read(ends[0], &value, sizeof value);
    write(ends[0], &more, sizeof more);
    printf("%d\n", (int)value);
    return nobody;
}

static int old_event(void) {
    ends[0] = eventfd(3, 0);
    both(count_event, nothing);
    return 0;
}

static void *watch(void *nobody) {
    struct epoll_event event = {0};
    int count = epoll_wait(file, &event, 1, 0);
    printf("%d %d ", count, (int)event.data.u32);
    write(ends[1], "x", 1);
    count = epoll_wait(file, &event, 1, 0);
    printf("%d %d\n", count, (int)event.data.u32);
    epoll_ctl(file, EPOLL_CTL_DEL, ends[0], NULL);
    return nobody;
}

static int old_epoll(void) {
    if (pipe(ends) != 0) return 92;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
    file = epoll_create1(0);
    epoll_ctl(file, EPOLL_CTL_ADD, ends[0], &event);
    both(watch, nothing);
    return 0;
}

static void *poll_pipe(void *nobody) {
    struct pollfd wait = {.fd = ends[0], .events = POLLIN};
    poll(&wait, 1, -1);
    return read_pipe(nobody);
}

static int polls(void) {
    if (pipe(ends) != 0) return 92;
    both(poll_pipe, write_pipe);
    return 0;
}

static void *lock_file(void *letter) {
    flockfile(stdout);
    putchar(*(char *)letter);
    sched_yield();
    putchar(*(char *)letter);
    funlockfile(stdout);
    return NULL;
}

static int file_locks(void) {
    pthread_t x = start(lock_file, "x"), y = start(lock_file, "y");
    pthread_join(x, NULL);
    pthread_join(y, NULL);
    return 0;
}

static void *print_one(void *nobody) {
    printf("%s", "y");
    return nobody;
}

static void *put_one(void *nobody) {
    fputs("y", stdout);
    return nobody;
}

/* Who uses a stream waits for whoever has locked it. */
static int locked_stream(routine_t uses) {
    pthread_t x = start(lock_file, "x"), y = start(uses, NULL);
    pthread_join(x, NULL);
    pthread_join(y, NULL);
    return 0;
}

static int lock_and_print(void) { return locked_stream(print_one); }
static int lock_and_put(void) { return locked_stream(put_one); }

static void *print_numbers(void *nobody) {
    printf("%d %d %d %d %d %d %d %g %g %g %g %g %g %g %g %g", 1, 2, 3, 4, 5, 6, 7, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5,
           7.5, 8.5, 9.5);
    return nobody;
}

static int many_arguments(void) {
    both(print_numbers, nothing);
    return 0;
}

static void *fork_child(void *nobody) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
        write(1, "child ", 6);
        _exit(5);
    }
    int status;
    waitpid(child, &status, 0);
    seen = WEXITSTATUS(status);
    return nobody;
}

static int forks(void) {
    both(fork_child, nothing);
    printf("%d\n", seen);
    return 0;
}

static void *vfork_child(void *nobody) {
    pid_t child = vfork();
    if (child == 0) _exit(5);
    int status;
    waitpid(child, &status, 0);
    seen = WEXITSTATUS(status);
    return nobody;
}

static int vforks(void) {
    both(vfork_child, nothing);
    printf("%d\n", seen);
    return 0;
}

static void *run_shell(void *nobody) {
    seen = WEXITSTATUS(system("exit 6"));
    return nobody;
}

static int shells(void) {
    both(run_shell, nothing);
    printf("%d\n", seen);
    return 0;
}

static void *wait_for_ever(void *nobody) {
    while (1) pause();
    return nobody;
}

/* A thread that waits for a signal does not keep others from running. */
static int pausing(void) {
    start(wait_for_ever, NULL);
    pthread_join(start(nothing, NULL), NULL);
    puts("done");
    return 0;
}

static void *cancelled(void *nobody) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    while (1) sleep(1);
    return nobody;
}

static int cancels(void) {
    pthread_t thread = start(cancelled, NULL);
    pthread_cancel(thread);
    void *result;
    pthread_join(thread, &result);
    puts(result == PTHREAD_CANCELED ? "cancelled" : "?");
    return 0;
}

static struct sockaddr_in address;

static void *say_hello(void *nobody) {
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    connect(connection, (struct sockaddr *)&address, sizeof address);
    write(connection, "hello", 5);
    close(connection);
    return nobody;
}

/* A socket that is made in a run is that run's, also before it is used. */
static int loopback(void) {
    pthread_join(start(nothing, NULL), NULL);
    socklen_t length = sizeof address;
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&address, &length);
    pthread_t client = start(say_hello, NULL);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    int connection = accept(listener, NULL, NULL);
    char text[8] = "";
    for (ssize_t count, all = 0; (count = read(connection, text + all, sizeof text - 1 - all)) > 0;) all += count;
    pthread_join(client, NULL);
    printf("%s", text);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(chance);
    SCENARIO(process_id);
    SCENARIO(file_position);
    SCENARIO(early_output);
    SCENARIO(pipes);
    SCENARIO(old_pipe);
    SCENARIO(old_pair);
    SCENARIO(old_event);
    SCENARIO(old_epoll);
    SCENARIO(polls);
    SCENARIO(loopback);
    SCENARIO(file_locks);
    SCENARIO(lock_and_print);
    SCENARIO(lock_and_put);
    SCENARIO(many_arguments);
    SCENARIO(forks);
    SCENARIO(vforks);
    SCENARIO(shells);
    SCENARIO(pausing);
    SCENARIO(cancels);
    return 91;
}
