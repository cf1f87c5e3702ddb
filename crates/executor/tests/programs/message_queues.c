#include "scenario.h"
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>

#define NAME "/threadbare"
static mqd_t queue, back;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int found;

/* A new queue for so many messages of one byte. */
static mqd_t make(const char *name, int room, int flags) {
    struct mq_attr attributes = {.mq_maxmsg = room, .mq_msgsize = 1};
    mqd_t made = mq_open(name, O_CREAT | O_EXCL | O_RDWR | flags, 0600, &attributes);
    if (made == (mqd_t)-1) {
        perror("mq_open");
        exit(92);
    }
    return made;
}

static void put(mqd_t to, char letter, unsigned priority) {
    if (mq_send(to, &letter, 1, priority) != 0) abort();
}

static char get(mqd_t from) {
    char letter;
    if (mq_receive(from, &letter, 1, NULL) != 1) abort();
    return letter;
}

/* The highest priority first, and among equals the oldest. */
static int priorities(void) {
    queue = make(NAME, 5, 0);
    put(queue, 'a', 1), put(queue, 'b', 2), put(queue, 'c', 1), put(queue, 'd', 0), put(queue, 'e', 2);
    pthread_join(start(nothing, NULL), NULL);
    for (int i = 0; i < 5; i++) putchar(get(queue));
    puts("");
    return 0;
}

static void *produce(void *nobody) {
    for (char letter = 'a'; letter <= 'c'; letter++) put(queue, letter, 0);
    return nobody;
}

static void *consume(void *nobody) {
    for (int i = 0; i < 3; i++) leave(get(queue));
    return nobody;
}

/* Three messages through a queue for one: neither loses any, whoever waits. */
static int stream(void) {
    queue = make(NAME, 1, 0);
    both(produce, consume);
    puts(letters);
    return 0;
}

static void *put_x(void *nobody) {
    put(queue, 'x', 0);
    return nobody;
}

static void *put_y(void *nobody) {
    put(queue, 'y', 0);
    return nobody;
}

/* Messages of two threads come in the order in which they were sent. */
static int either(void) {
    queue = make(NAME, 2, 0);
    both(put_x, put_y);
    leave(get(queue)), leave(get(queue));
    puts(letters);
    return 0;
}

/* Sends under a lock that the receiver needs too: a queue that is full, or empty, stops both. */
static void *send_locked(void *nobody) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&mutex);
        put(queue, 'x', 0);
        pthread_mutex_unlock(&mutex);
    }
    return nobody;
}

static void *receive_locked(void *nobody) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&mutex);
        get(queue);
        pthread_mutex_unlock(&mutex);
    }
    return nobody;
}

static int locked(void) {
    queue = make(NAME, 1, 0);
    both(send_locked, receive_locked);
    puts("done");
    return 0;
}

static void *fill_there(void *nobody) {
    put(queue, 'x', 0), put(queue, 'x', 0);
    get(back);
    return nobody;
}

static void *fill_back(void *nobody) {
    put(back, 'x', 0), put(back, 'x', 0);
    get(queue);
    return nobody;
}

/* Each sends more than the queue takes before it receives. */
static int full(void) {
    queue = make(NAME, 1, 0), back = make(NAME "2", 1, 0);
    both(fill_there, fill_back);
    return 0;
}

static void *try_get(void *nobody) {
    char letter;
    found = mq_receive(queue, &letter, 1, NULL) == 1 ? 0 : errno;
    return nobody;
}

static int trying(void) {
    queue = make(NAME, 1, O_NONBLOCK);
    both(put_x, try_get);
    puts(found == EAGAIN ? "none" : found == 0 ? "one" : strerror(found));
    return 0;
}

static void *timed_get(void *nobody) {
    char letter;
    struct timespec until = in_seconds(CLOCK_REALTIME, 1);
    found = mq_timedreceive(queue, &letter, 1, NULL, &until) == 1 ? 0 : errno;
    return nobody;
}

static int timed(void) {
    queue = make(NAME, 1, 0);
    both(put_x, timed_get);
    puts(found == ETIMEDOUT ? "timed out" : found == 0 ? "one" : strerror(found));
    return 0;
}

/* Nobody receives: the time is up, whatever the schedule. */
static int timed_send(void) {
    queue = make(NAME, 1, 0);
    pthread_join(start(put_x, NULL), NULL);
    struct timespec until = in_seconds(CLOCK_REALTIME, 1), wrong = {.tv_nsec = -1};
    int late = mq_timedsend(queue, "y", 1, 0, &until) != 0 && errno == ETIMEDOUT;
    int invalid = mq_timedsend(queue, "y", 1, 0, &wrong) != 0 && errno == EINVAL;
    printf("%d %d\n", late, invalid);
    return 0;
}

static int attributes(void) {
    struct mq_attr is, was, new = {.mq_flags = O_NONBLOCK};
    queue = make(NAME, 3, 0);
    pthread_join(start(put_x, NULL), NULL);
    mq_setattr(queue, &new, &was);
    mq_getattr(queue, &is);
    printf("%ld %ld %ld, %d %d\n", is.mq_maxmsg, is.mq_msgsize, is.mq_curmsgs, was.mq_flags == 0,
           is.mq_flags == O_NONBLOCK);
    return 0;
}

#define FAILS(call, error) (errno = 0, (call) == -1 && errno == (error))

static int errors(void) {
    char letter;
    struct mq_attr wrong = {.mq_maxmsg = 0, .mq_msgsize = 1};
    struct sigevent silently = {.sigev_notify = SIGEV_NONE};
    queue = make(NAME, 1, 0);
    pthread_join(start(nothing, NULL), NULL);
    mqd_t reader = mq_open(NAME, O_RDONLY);
    int opened = FAILS(mq_open(NAME, O_CREAT | O_EXCL | O_RDWR, 0600, NULL), EEXIST) +
                 FAILS(mq_open("/another", O_RDWR), ENOENT) + FAILS(mq_open("name", O_RDWR), EINVAL) +
                 FAILS(mq_open("/another", O_CREAT | O_RDWR, 0600, &wrong), EINVAL);
    int used = FAILS(mq_send(reader, "x", 1, 0), EBADF) + FAILS(mq_send(queue, "xy", 2, 0), EMSGSIZE) +
               FAILS(mq_send(queue, "x", 1, 32768), EINVAL) + FAILS(mq_receive(queue, &letter, 0, NULL), EMSGSIZE);
    int notified = mq_notify(queue, &silently) == 0 && FAILS(mq_notify(queue, &silently), EBUSY);
    int unlinked = mq_unlink(NAME) == 0 && FAILS(mq_unlink(NAME), ENOENT);
    /* Whoever has it open keeps it. */
    put(queue, 'x', 0);
    int kept = get(reader) == 'x';
    int closed = mq_close(reader) == 0 && FAILS(mq_close(reader), EBADF);
    printf("%d %d %d %d %d %d\n", opened, used, notified, unlinked, kept, closed);
    return 0;
}

/* What lay in the queue before the first thread is there in every run, and what a run leaves is not. */
static int early(void) {
    struct mq_attr is;
    queue = make(NAME, 3, 0);
    put(queue, 'x', 0);
    both(put_y, try_get);
    mq_getattr(queue, &is);
    printf("%ld\n", is.mq_curmsgs);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(priorities);
    SCENARIO(stream);
    SCENARIO(either);
    SCENARIO(locked);
    SCENARIO(full);
    SCENARIO(trying);
    SCENARIO(timed);
    SCENARIO(timed_send);
    SCENARIO(attributes);
    SCENARIO(errors);
    SCENARIO(early);
    return 91;
}
