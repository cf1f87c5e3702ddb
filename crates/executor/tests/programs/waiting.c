#include "scenario.h"
#include <semaphore.h>
#include <linux/futex.h>
#include <sys/syscall.h>

static sem_t semaphore;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int found, counter, serial, futex, after[3];

static void *take(void *nobody) {
    sem_wait(&semaphore);
    int now = __atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);
    if (now > __atomic_load_n(&found, __ATOMIC_SEQ_CST)) __atomic_store_n(&found, now, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&counter, 1, __ATOMIC_SEQ_CST);
    sem_post(&semaphore);
    return nobody;
}

/* Two of three may be inside. */
static int two_of_three(void) {
    sem_init(&semaphore, 0, 2);
    pthread_t third = start(take, NULL);
    both(take, take);
    pthread_join(third, NULL);
    int value;
    sem_getvalue(&semaphore, &value);
    printf("%d %d\n", found, value);
    return 0;
}

static int one_of_two(void) {
    sem_init(&semaphore, 0, 1);
    both(take, take);
    int value;
    sem_getvalue(&semaphore, &value);
    printf("%d %d\n", found, value);
    return 0;
}

static void *post(void *nobody) {
    sem_post(&semaphore);
    return nobody;
}

static void *try_take(void *nobody) {
    found = sem_trywait(&semaphore) == 0 ? 0 : errno;
    return nobody;
}

static int trying(void) {
    sem_init(&semaphore, 0, 0);
    both(post, try_take);
    puts(found == EAGAIN ? "none" : "one");
    return 0;
}

static void *timed_take(void *nobody) {
    struct timespec until = in_seconds(CLOCK_REALTIME, 1);
    found = sem_timedwait(&semaphore, &until) == 0 ? 0 : errno;
    return nobody;
}

static int timed(void) {
    sem_init(&semaphore, 0, 0);
    both(post, timed_take);
    puts(found == ETIMEDOUT ? "timed out" : "one");
    return 0;
}

static int never_posted(void) {
    sem_init(&semaphore, 0, 0);
    both(take, take);
    return 0;
}

static void *meet(void *number) {
    int last = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    __atomic_add_fetch(&serial, last, __ATOMIC_SEQ_CST);
    after[(long)number] = __atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);
    last = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    __atomic_add_fetch(&serial, last, __ATOMIC_SEQ_CST);
    /* Past the second barrier, everybody has passed the first. */
    if (__atomic_load_n(&counter, __ATOMIC_SEQ_CST) != 3) abort();
    return NULL;
}

static int barriers(void) {
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) threads[i] = start(meet, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("%d %d\n", serial, pthread_barrier_destroy(&barrier));
    return 0;
}

static void *meet_once(void *nobody) {
    int last = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    __atomic_add_fetch(&serial, last, __ATOMIC_SEQ_CST);
    return nobody;
}

static int two_meet(void) {
    pthread_barrier_init(&barrier, NULL, 2);
    both(meet_once, meet_once);
    printf("%d %d\n", serial, pthread_barrier_destroy(&barrier));
    return 0;
}

static int too_few(void) {
    pthread_barrier_init(&barrier, NULL, 3);
    both(meet, meet);
    return 0;
}

static void run_once(void) {
    counter = counter + 1;
    leave('0' + counter);
}

static void *enter_once(void *letter) {
    pthread_once(&once, run_once);
    pthread_mutex_lock(&mutex);
    leave(*(char *)letter);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static int only_once(void) {
    pthread_t x = start(enter_once, "x"), y = start(enter_once, "y");
    pthread_join(x, NULL);
    pthread_join(y, NULL);
    puts(letters);
    return 0;
}

static void *wait_for_futex(void *nobody) {
    while (__atomic_load_n(&futex, __ATOMIC_SEQ_CST) == 0) syscall(SYS_futex, &futex, FUTEX_WAIT, 0, NULL);
    return nobody;
}

static void *wake_futex(void *nobody) {
    __atomic_store_n(&futex, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &futex, FUTEX_WAKE, 1);
    return nobody;
}

static int futexes(void) {
    both(wait_for_futex, wake_futex);
    puts("woken");
    return 0;
}

static void *wait_with_mask(void *mask) {
    return (void *)syscall(SYS_futex, &futex, FUTEX_WAIT_BITSET, 0, NULL, NULL, (int)(long)mask);
}

/* Two wait with different masks, and each is woken by its own: neither wake-up takes the other's place. */
static int masks(void) {
    pthread_t one = start(wait_with_mask, (void *)1), two = start(wait_with_mask, (void *)2);
    sleep(1);
    long first = syscall(SYS_futex, &futex, FUTEX_WAKE_BITSET, 1, NULL, NULL, 1);
    long second = syscall(SYS_futex, &futex, FUTEX_WAKE_BITSET, 1, NULL, NULL, 2);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%ld %ld\n", first, second);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(two_of_three);
    SCENARIO(one_of_two);
    SCENARIO(trying);
    SCENARIO(timed);
    SCENARIO(never_posted);
    SCENARIO(barriers);
    SCENARIO(two_meet);
    SCENARIO(too_few);
    SCENARIO(only_once);
    SCENARIO(futexes);
    SCENARIO(masks);
    return 91;
}
