#include "scenario.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int ends[2];
static int set;

static void *write_byte(void *nobody) {
    write(ends[1], "x", 1);
    return nobody;
}

/* What was in the pipe before the first thread is in it in every run. */
static int pipes(void) {
    pipe(ends);
    write_byte(NULL);
    pthread_join(start(write_byte, NULL), NULL);
    int bytes;
    ioctl(ends[0], FIONREAD, &bytes);
    printf("%d bytes\n", bytes);
    return 0;
}

static int sockets(void) {
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    pthread_join(start(write_byte, NULL), NULL);
    int bytes;
    ioctl(ends[0], FIONREAD, &bytes);
    printf("%d byte\n", bytes);
    return 0;
}

static void *count_two(void *nobody) {
    eventfd_write(ends[0], 2);
    return nobody;
}

static int events(void) {
    ends[0] = eventfd(3, 0);
    pthread_join(start(count_two, NULL), NULL);
    eventfd_t count;
    eventfd_read(ends[0], &count);
    printf("%d\n", (int)count);
    eventfd_write(ends[0], 100);
    return 0;
}

static void *watch(void *nobody) {
    struct epoll_event event = {.events = EPOLLIN};
    int error = epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
    printf("%d, ", error);
    return nobody;
}

static int epolls(void) {
    int other[2];
    pipe(other);
    pipe(ends);
    set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, other[0], &event);
    pthread_join(start(watch, NULL), NULL);
    write(other[1], "x", 1);
    printf("%d ready\n", epoll_wait(set, &event, 1, -1));
    return 0;
}

/* Nobody outside can end this wait, whatever number the pipe goes by. */
static int epolls_in_vain(void) {
    pipe(ends);
    set = epoll_create1(0);
    both(nothing, nothing);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, dup(ends[0]), &event);
    return epoll_wait(set, &event, 1, -1);
}

int main(int argc, char **argv) {
    SCENARIO(pipes);
    SCENARIO(sockets);
    SCENARIO(events);
    SCENARIO(epolls);
    SCENARIO(epolls_in_vain);
    return 91;
}
