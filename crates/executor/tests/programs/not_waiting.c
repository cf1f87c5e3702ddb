/* Calls that must not wait, and calls that must. What each gives is what the kernel gives: the program passes by itself,
   and under every schedule. */
#include "scenario.h"
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define MUST(condition) \
    do \
        if (!(condition)) { \
            printf("line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
            exit(1); \
        } \
    while (0)
/* The call fails with this error. */
#define FAILS(call, error) MUST((call) == -1 && errno == (error))

static int ends[2];
static char buffer[1 << 20];
static struct iovec part = {buffer, 4};
static const struct timespec none;

static void pair(int type) {
    MUST(socketpair(AF_UNIX, type, 0, ends) == 0);
}

static void close_both(void) {
    close(ends[0]);
    close(ends[1]);
}

/* On a socket that waits, and on one that does not. */
static void receives(int flags) {
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    struct sockaddr_un from;
    socklen_t size = sizeof from;
    FAILS(recv(ends[0], buffer, 4, flags), EAGAIN);
    FAILS(recv(ends[0], buffer, 4, flags | MSG_PEEK), EAGAIN);
    FAILS(recv(ends[0], buffer, 4, flags | MSG_WAITALL), EAGAIN);
    FAILS(recvfrom(ends[0], buffer, 4, flags, (struct sockaddr *)&from, &size), EAGAIN);
    FAILS(recvmsg(ends[0], &message, flags), EAGAIN);
    FAILS(recvmmsg(ends[0], many, 2, flags, NULL), EAGAIN);
    MUST(send(ends[1], "ab", 2, flags) == 2);
    MUST(recv(ends[0], buffer, 4, flags | MSG_PEEK) == 2);
    MUST(recv(ends[0], buffer, 4, flags | MSG_WAITALL) == 2);
    MUST(memcmp(buffer, "ab", 2) == 0);
}

static void sends_until_full(int flags) {
    struct msghdr message = {.msg_iov = &(struct iovec){buffer, sizeof buffer}, .msg_iovlen = 1};
    struct mmsghdr many[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    ssize_t sent;
    while ((sent = send(ends[1], buffer, sizeof buffer, flags)) > 0) continue;
    MUST(sent == -1 && errno == EAGAIN);
    FAILS(sendto(ends[1], buffer, sizeof buffer, flags, NULL, 0), EAGAIN);
    FAILS(sendmsg(ends[1], &message, flags), EAGAIN);
    FAILS(sendmmsg(ends[1], many, 2, flags), EAGAIN);
}

static void *by_flag(void *nobody) {
    pair(SOCK_STREAM);
    receives(MSG_DONTWAIT);
    sends_until_full(MSG_DONTWAIT);
    close_both();
    pair(SOCK_DGRAM);
    struct mmsghdr many[3] = {0};
    for (int i = 0; i < 3; i++) many[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    FAILS(recv(ends[0], buffer, 4, MSG_DONTWAIT), EAGAIN);
    MUST(sendmmsg(ends[1], many, 2, 0) == 2 && many[1].msg_len == 4);
    MUST(recvmmsg(ends[0], many, 3, MSG_WAITFORONE, NULL) == 2);
    MUST(sendmmsg(ends[1], many, 2, 0) == 2);
    struct timespec over = {0, 0};
    MUST(recvmmsg(ends[0], many, 3, 0, &over) == 1);
    MUST(recvmmsg(ends[0], many, 3, MSG_DONTWAIT, NULL) == 1);
    MUST(send(ends[1], buffer, 4, 0) == 4 && recv(ends[0], buffer, 8, MSG_WAITALL) == 4);
    MUST(send(ends[1], buffer, 4, 0) == 4 && recv(ends[0], buffer, 2, MSG_TRUNC) == 4);
    close_both();
    return nobody;
}

static void *by_descriptor(void *nobody) {
    int on = 1, off = 0;
    pair(SOCK_STREAM | SOCK_NONBLOCK);
    receives(0);
    sends_until_full(0);
    FAILS(write(ends[1], buffer, sizeof buffer), EAGAIN);
    FAILS(writev(ends[1], &(struct iovec){buffer, sizeof buffer}, 1), EAGAIN);
    close_both();
    pair(SOCK_STREAM);
    int copy = dup(ends[0]);
    MUST(fcntl(copy, F_SETFL, O_NONBLOCK) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    receives(0);
    MUST(ioctl(copy, FIONBIO, &off) == 0 && ioctl(copy, FIONBIO, &on) == 0);
    receives(0);
    close(copy);
    close_both();
    MUST(pipe2(ends, O_NONBLOCK) == 0);
    FAILS(read(ends[0], buffer, 4), EAGAIN);
    FAILS(readv(ends[0], &part, 1), EAGAIN);
    while (write(ends[1], buffer, sizeof buffer) > 0) continue;
    MUST(errno == EAGAIN);
    close_both();
    int events = eventfd(0, EFD_NONBLOCK);
    eventfd_t value;
    FAILS(eventfd_read(events, &value), EAGAIN);
    MUST(eventfd_write(events, UINT64_MAX - 1) == 0);
    FAILS(eventfd_write(events, 1), EAGAIN);
    close(events);
    return nobody;
}

static void *by_call(void *nobody) {
    int others[2];
    MUST(pipe(ends) == 0 && pipe(others) == 0);
    FAILS(preadv2(ends[0], &part, 1, -1, RWF_NOWAIT), EAGAIN);
    FAILS(splice(ends[0], NULL, others[1], NULL, 4, SPLICE_F_NONBLOCK), EAGAIN);
    FAILS(tee(ends[0], others[1], 4, SPLICE_F_NONBLOCK), EAGAIN);
    MUST(vmsplice(ends[1], &part, 1, SPLICE_F_NONBLOCK) == 4);
    MUST(tee(ends[0], others[1], 4, 0) == 4);
    MUST(splice(ends[0], NULL, others[1], NULL, 4, 0) == 4);
    MUST(preadv2(others[0], &part, 1, -1, 0) == 4 && preadv2(others[0], &part, 1, -1, RWF_NOWAIT) == 4);
    MUST(pwritev2(others[1], &part, 1, -1, 0) == 4);
    FAILS(preadv2(others[0], &part, 1, 0, 0), ESPIPE);
    close(others[0]);
    close(others[1]);

    struct pollfd entry = {ends[0], POLLIN, 0};
    MUST(poll(&entry, 1, 0) == 0 && ppoll(&entry, 1, &none, NULL) == 0);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    MUST(select(ends[0] + 1, &set, NULL, NULL, &(struct timeval){0, 0}) == 0 && !FD_ISSET(ends[0], &set));
    FD_SET(ends[0], &set);
    MUST(pselect(ends[0] + 1, &set, NULL, NULL, &none, NULL) == 0 && !FD_ISSET(ends[0], &set));
    int watcher = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.fd = 0}};
    MUST(epoll_ctl(watcher, EPOLL_CTL_ADD, ends[0], &event) == 0);
    MUST(epoll_wait(watcher, &event, 1, 0) == 0 && epoll_pwait(watcher, &event, 1, 0, NULL) == 0);
    MUST(epoll_pwait2(watcher, &event, 1, &none, NULL) == 0);
    close(watcher);
    close_both();
    return nobody;
}

/* A limit on the time is one on virtual time. */
static void *by_time(void *nobody) {
    struct timeval limit = {0, 50000};
    pair(SOCK_STREAM);
    MUST(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    MUST(setsockopt(ends[1], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
    FAILS(recv(ends[0], buffer, 4, 0), EAGAIN);
    MUST(send(ends[1], "ab", 2, 0) == 2);
    MUST(recv(ends[0], buffer, 4, MSG_WAITALL) == 2);
    MUST(send(ends[1], "ab", 2, 0) == 2);
    MUST(recv(ends[0], buffer, 4, MSG_WAITALL | MSG_PEEK) == 2);
    ssize_t sent = send(ends[1], buffer, sizeof buffer, 0);
    MUST(sent > 0 && sent < (ssize_t)sizeof buffer);
    FAILS(send(ends[1], buffer, sizeof buffer, 0), EAGAIN);
    close_both();
    return nobody;
}

static void *by_lock(void *nobody) {
    char path[] = "/tmp/threadbare-lock-XXXXXX";
    int one = mkstemp(path), other = open(path, O_RDWR);
    unlink(path);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    MUST(flock(one, LOCK_EX) == 0);
    FAILS(flock(other, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    FAILS(flock(other, LOCK_SH | LOCK_NB), EWOULDBLOCK);
    MUST(flock(one, LOCK_UN) == 0 && flock(other, LOCK_EX | LOCK_NB) == 0 && flock(other, LOCK_UN) == 0);
    MUST(fcntl(one, F_OFD_SETLK, &whole) == 0);
    FAILS(fcntl(other, F_OFD_SETLK, &whole), EAGAIN);
    MUST(close(one) == 0 && fcntl(other, F_OFD_SETLKW, &whole) == 0);
    /* The locks of a process are all its own. */
    FAILS(lockf(other, F_TLOCK, 0), EAGAIN);
    close(other);
    return nobody;
}

static void *by_primitive(void *nobody) {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    FAILS(sem_trywait(&semaphore), EAGAIN);
    struct timespec past = {1, 0};
    FAILS(sem_timedwait(&semaphore, &past), ETIMEDOUT);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    MUST(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_trylock(&mutex) == EBUSY);
    MUST(pthread_mutex_timedlock(&mutex, &past) == ETIMEDOUT);
    struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 4};
    mqd_t queue = mq_open("/threadbare-not-waiting", O_CREAT | O_RDWR | O_NONBLOCK, 0600, &small);
    MUST(queue != (mqd_t)-1);
    mq_unlink("/threadbare-not-waiting");
    FAILS(mq_receive(queue, buffer, 4, NULL), EAGAIN);
    MUST(mq_send(queue, "a", 1, 0) == 0);
    FAILS(mq_send(queue, "b", 1, 0), EAGAIN);
    mq_close(queue);
    return nobody;
}

/* What has to wait: the other side comes later or earlier. */
static void *gives(void *nobody) {
    for (int i = 0; i < 4; i++) MUST(send(ends[1], "abcd" + i, 1, 0) == 1);
    MUST(recv(ends[1], buffer, 1, 0) == 1);
    for (size_t left = sizeof buffer; left > 0;) {
        ssize_t got = recv(ends[1], buffer, left, 0);
        MUST(got > 0);
        left -= got;
    }
    MUST(send(ends[1], "abc", 3, 0) == 3);
    close(ends[1]);
    return nobody;
}

static void *takes(void *nobody) {
    static char own[1 << 20];
    struct iovec parts[2] = {{own, 1}, {own + 1, 3}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    MUST(recv(ends[0], own, 4, MSG_WAITALL | MSG_PEEK) == 4 && memcmp(own, "abcd", 4) == 0);
    memset(own, 0, 4);
    MUST(recvmsg(ends[0], &message, MSG_WAITALL) == 4 && memcmp(own, "abcd", 4) == 0);
    MUST(send(ends[0], own, 1, 0) == 1);
    MUST(send(ends[0], own, sizeof own, 0) == sizeof own);
    MUST(recv(ends[0], own, 4, MSG_WAITALL | MSG_PEEK) == 3);
    MUST(recv(ends[0], own, 4, MSG_WAITALL) == 3 && recv(ends[0], own, 4, MSG_WAITALL) == 0);
    close(ends[0]);
    return nobody;
}

static int listener;
static struct sockaddr_un address = {AF_UNIX, "\0threadbare-not-waiting"};
static socklen_t address_size;

static void *connects(void *nobody) {
    for (int i = 0; i < 3; i++) {
        int socket_ = socket(AF_UNIX, SOCK_STREAM, 0);
        MUST(connect(socket_, (struct sockaddr *)&address, address_size) == 0);
        close(socket_);
    }
    return nobody;
}

static void *accepts(void *nobody) {
    for (int i = 0; i < 3; i++) {
        int socket_ = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        MUST(socket_ >= 0 && fcntl(socket_, F_GETFL) & O_NONBLOCK);
        close(socket_);
    }
    return nobody;
}

static int files[2], inside;

static void *locks(void *file) {
    int own = files[file != NULL];
    MUST(flock(own, LOCK_EX) == 0);
    MUST(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) == 1);
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    MUST(flock(own, LOCK_UN) == 0);
    return NULL;
}

static void *splices(void *nobody) {
    MUST(splice(ends[0], NULL, files[1], NULL, 4, 0) == 4);
    return nobody;
}

static void *writes_a_file(void *nobody) {
    MUST(sendfile(ends[1], files[0], NULL, 4) == 4);
    return nobody;
}

static int not_waiting(void) {
    routine_t all[] = {by_flag, by_descriptor, by_call, by_time, by_lock, by_primitive};
    for (int i = 0; i < 6; i++) both(all[i], nothing);
    puts("as the kernel does");
    return 0;
}

static int waiting(void) {
    pair(SOCK_STREAM);
    both(gives, takes);
    puts("as the kernel does");
    return 0;
}

static int connecting(void) {
    /* What was made before the first thread, all runs have in common. */
    pthread_join(start(nothing, NULL), NULL);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    /* The kernel chooses a name. */
    address_size = sizeof(sa_family_t);
    MUST(bind(listener, (struct sockaddr *)&address, address_size) == 0 && listen(listener, 0) == 0);
    address_size = sizeof address;
    MUST(getsockname(listener, (struct sockaddr *)&address, &address_size) == 0);
    both(connects, accepts);
    int late = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), later = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    MUST(connect(late, (struct sockaddr *)&address, address_size) == 0);
    FAILS(connect(later, (struct sockaddr *)&address, address_size), EAGAIN);
    puts("as the kernel does");
    return 0;
}

static int locking(void) {
    char path[] = "/tmp/threadbare-lock-XXXXXX";
    files[0] = mkstemp(path);
    files[1] = open(path, O_RDWR);
    unlink(path);
    pthread_t one = start(locks, NULL), other = start(locks, files);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    puts("as the kernel does");
    return 0;
}

static int splicing(void) {
    char path[] = "/tmp/threadbare-file-XXXXXX";
    files[0] = mkstemp(path);
    files[1] = open(path, O_RDWR);
    unlink(path);
    MUST(write(files[0], "abcd", 4) == 4 && lseek(files[0], 0, SEEK_SET) == 0 && pipe(ends) == 0);
    both(splices, writes_a_file);
    puts("as the kernel does");
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(not_waiting);
    SCENARIO(waiting);
    SCENARIO(connecting);
    SCENARIO(locking);
    SCENARIO(splicing);
    return 2;
}
