/* Primitives and stack variables that a thread uses though they are gone. With FIXED, nobody uses them by then. */
#include "scenario.h"

#include <alloca.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>

static struct object {
    long before;
    union {
        pthread_mutex_t mutex;
        pthread_cond_t condition;
        pthread_rwlock_t rwlock;
        pthread_spinlock_t spin;
        pthread_barrier_t barrier;
        pthread_once_t once;
        sem_t semaphore;
        mtx_t mtx;
        cnd_t cnd;
        int futex;
    };
} *object;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct timespec past;

static void no_work(void) {}

#ifdef FIXED
#define JOIN_FIRST 1
#else
#define JOIN_FIRST 0
#endif

/* A thread does `use` to an object for which another has done `end`, if that is not joined first. */
#define USED(name, begin, use, end)             \
    static void *use_##name(void *unused) {     \
        use;                                    \
        return unused;                          \
    }                                           \
    static int name(void) {                     \
        object = calloc(1, sizeof *object);     \
        begin;                                  \
        pthread_t user = start(use_##name, NULL); \
        if (JOIN_FIRST) pthread_join(user, NULL); \
        end;                                    \
        if (!JOIN_FIRST) pthread_join(user, NULL); \
        return 0;                               \
    }

#define FREED(name, begin, use) USED(name, begin, use, free(object))

FREED(freed_mutex, pthread_mutex_init(&object->mutex, NULL), pthread_mutex_lock(&object->mutex))
FREED(freed_trylock, pthread_mutex_init(&object->mutex, NULL), pthread_mutex_trylock(&object->mutex))
FREED(freed_timedlock, pthread_mutex_init(&object->mutex, NULL), pthread_mutex_timedlock(&object->mutex, &past))
FREED(freed_locked, pthread_mutex_lock(&object->mutex), pthread_mutex_timedlock(&object->mutex, &past))
FREED(freed_signal, pthread_cond_init(&object->condition, NULL), pthread_cond_signal(&object->condition))
FREED(freed_broadcast, pthread_cond_init(&object->condition, NULL), pthread_cond_broadcast(&object->condition))
FREED(freed_wait, pthread_cond_init(&object->condition, NULL),
      pthread_mutex_lock(&guard);
      pthread_cond_timedwait(&object->condition, &guard, &past);
      pthread_mutex_unlock(&guard))
FREED(freed_rdlock, pthread_rwlock_init(&object->rwlock, NULL), pthread_rwlock_rdlock(&object->rwlock))
FREED(freed_wrlock, pthread_rwlock_init(&object->rwlock, NULL), pthread_rwlock_wrlock(&object->rwlock))
FREED(freed_spin, pthread_spin_init(&object->spin, 0), pthread_spin_lock(&object->spin))
FREED(freed_post, sem_init(&object->semaphore, 0, 0), sem_post(&object->semaphore))
FREED(freed_sem_wait, sem_init(&object->semaphore, 0, 1), sem_wait(&object->semaphore))
FREED(freed_barrier, pthread_barrier_init(&object->barrier, NULL, 1), pthread_barrier_wait(&object->barrier))
FREED(freed_once, object->once = PTHREAD_ONCE_INIT, pthread_once(&object->once, no_work))
FREED(freed_mtx, mtx_init(&object->mtx, mtx_plain), mtx_lock(&object->mtx))
FREED(freed_cnd, cnd_init(&object->cnd), cnd_signal(&object->cnd))
FREED(freed_futex, object->futex = 1, syscall(SYS_futex, &object->futex, FUTEX_WAIT_PRIVATE, 0, NULL))

USED(destroyed_mutex, pthread_mutex_init(&object->mutex, NULL), pthread_mutex_lock(&object->mutex);
     pthread_mutex_unlock(&object->mutex), pthread_mutex_destroy(&object->mutex))
USED(destroyed_condition, pthread_cond_init(&object->condition, NULL), pthread_cond_signal(&object->condition),
     pthread_cond_destroy(&object->condition))
USED(destroyed_rwlock, pthread_rwlock_init(&object->rwlock, NULL), pthread_rwlock_rdlock(&object->rwlock);
     pthread_rwlock_unlock(&object->rwlock), pthread_rwlock_destroy(&object->rwlock))
USED(destroyed_spin, pthread_spin_init(&object->spin, 0), pthread_spin_lock(&object->spin);
     pthread_spin_unlock(&object->spin), pthread_spin_destroy(&object->spin))
USED(destroyed_semaphore, sem_init(&object->semaphore, 0, 0), sem_post(&object->semaphore),
     sem_destroy(&object->semaphore))
USED(destroyed_barrier, pthread_barrier_init(&object->barrier, NULL, 1), pthread_barrier_wait(&object->barrier),
     pthread_barrier_destroy(&object->barrier))
USED(destroyed_mtx, mtx_init(&object->mtx, mtx_plain), mtx_lock(&object->mtx);
     mtx_unlock(&object->mtx), mtx_destroy(&object->mtx))
USED(destroyed_cnd, cnd_init(&object->cnd), cnd_broadcast(&object->cnd), cnd_destroy(&object->cnd))

static void *hold(void *unused) {
    pthread_mutex_lock(&object->mutex);
    usleep(1);
    pthread_mutex_unlock(&object->mutex);
    return unused;
}

/* Destroyed while the other has it, under some schedules. */
static int held(void) {
    object = calloc(1, sizeof *object);
    pthread_t other = start(hold, NULL);
    sched_yield();
    if (JOIN_FIRST) pthread_join(other, NULL);
    pthread_mutex_destroy(&object->mutex);
    if (!JOIN_FIRST) pthread_join(other, NULL);
    return 0;
}

static int is_ready;

static void *await(void *unused) {
    pthread_mutex_lock(&guard);
    while (!is_ready) pthread_cond_wait(&object->condition, &guard);
    pthread_mutex_unlock(&guard);
    return unused;
}

/* Destroyed though a thread waits that nobody has notified. With FIXED it is notified, and may wake up later. */
static int waited_for(void) {
    object = calloc(1, sizeof *object);
    pthread_t other = start(await, NULL);
    pthread_mutex_lock(&guard);
    is_ready = 1;
    if (JOIN_FIRST) pthread_cond_broadcast(&object->condition);
    pthread_mutex_unlock(&guard);
#ifndef FIXED
    pthread_cond_destroy(&object->condition);
#endif
    pthread_join(other, NULL);
    return 0;
}

static void *set(void *variable) {
    *(volatile int *)variable = 1;
    return NULL;
}

static void *lock_it(void *mutex) {
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

static __attribute__((noinline)) pthread_t start_with_variable(void) {
    volatile int variable = 0;
    pthread_t other = start(set, (void *)&variable);
    if (JOIN_FIRST) pthread_join(other, NULL);
    return other;
}

static __attribute__((noinline)) pthread_t start_with_mutex(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t other = start(lock_it, &mutex);
    if (JOIN_FIRST) pthread_join(other, NULL);
    return other;
}

static int returned(void) {
    pthread_t other = start_with_variable();
    if (!JOIN_FIRST) pthread_join(other, NULL);
    return 0;
}

static int returned_mutex(void) {
    pthread_t other = start_with_mutex();
    if (!JOIN_FIRST) pthread_join(other, NULL);
    return 0;
}

static int *volatile shared;

static void *offer(void *unused) {
    int variable = 0;
    shared = &variable;
    if (JOIN_FIRST) while (shared != NULL) usleep(1);
    return unused;
}

static __attribute__((noinline)) void write_through(int *variable) {
    *variable = 1;
}

static int ended(void) {
    pthread_t other = start(offer, NULL);
    int *variable;
    while ((variable = shared) == NULL) usleep(1);
    if (!JOIN_FIRST) pthread_join(other, NULL);
    write_through(variable);
    shared = NULL;
    if (JOIN_FIRST) pthread_join(other, NULL);
    return 0;
}

/* What follows is in order, though it looks like the above. */

static void *leave_condition(void *unused) {
    pthread_mutex_lock(&guard);
    is_ready = 1;
    pthread_cond_broadcast(&object->condition);
    pthread_mutex_unlock(&guard);
    return unused;
}

/* A condition variable may be destroyed when all have been notified, though they have not all woken up. */
static int notified(void) {
    object = calloc(1, sizeof *object);
    pthread_t waiter = start(await, NULL), notifier = start(leave_condition, NULL);
    pthread_join(notifier, NULL);
    pthread_cond_destroy(&object->condition);
    pthread_join(waiter, NULL);
    return 0;
}

static void *pass(void *unused) {
    if (pthread_barrier_wait(&object->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        pthread_barrier_destroy(&object->barrier);
        free(object);
    }
    return unused;
}

/* A barrier may be destroyed by the thread that is told to, though the others have not all left. */
static int last_of_barrier(void) {
    object = calloc(1, sizeof *object);
    pthread_barrier_init(&object->barrier, NULL, 2);
    both(pass, pass);
    return 0;
}

static void *lock_object(void *unused) {
    pthread_mutex_lock(&object->mutex);
    pthread_mutex_unlock(&object->mutex);
    return unused;
}

static int initialised_again(void) {
    object = calloc(1, sizeof *object);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&object->mutex, NULL);
        both(lock_object, lock_object);
        pthread_mutex_destroy(&object->mutex);
    }
    object->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&object->mutex);
    pthread_mutex_unlock(&object->mutex);
    memset(&object->semaphore, 0, sizeof object->semaphore);
    sem_init(&object->semaphore, 0, 1);
    sem_destroy(&object->semaphore);
    sem_init(&object->semaphore, 0, 1);
    sem_wait(&object->semaphore);
    return 0;
}

static void *wake(void *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
    return NULL;
}

/* A lock is unlocked before its waiters are woken, and may be freed in between. */
static int woken_late(void) {
    object = calloc(1, sizeof *object);
    pthread_t waker = start(wake, &object->futex);
    free(object);
    pthread_join(waker, NULL);
    return 0;
}

static __attribute__((noinline)) void fill(int *first, int count) {
    pthread_t others[2] = {start(set, first), start(set, first + count - 1)};
    for (int i = 0; i < 2; i++) pthread_join(others[i], NULL);
}

/* Memory below a function's frame that is its own all the same. */
static int below_the_frame(void) {
    volatile int count = 100;
    int array[count];
    fill(array, count);
    fill(alloca(count * sizeof(int)), count);
    printf("%d\n", array[0] + array[count - 1]);
    return 0;
}

static void *use_stack_of_main(void *variable) {
    return set(variable);
}

/* The stack of a main thread that has left stays. */
static int main_leaves(void) {
    static int variable;
    int on_stack = 0;
    start(use_stack_of_main, &on_stack);
    start(use_stack_of_main, &variable);
    pthread_exit(NULL);
}

int main(int argc, char **argv) {
    SCENARIO(freed_mutex);
    SCENARIO(freed_trylock);
    SCENARIO(freed_timedlock);
    SCENARIO(freed_locked);
    SCENARIO(freed_signal);
    SCENARIO(freed_broadcast);
    SCENARIO(freed_wait);
    SCENARIO(freed_rdlock);
    SCENARIO(freed_wrlock);
    SCENARIO(freed_spin);
    SCENARIO(freed_post);
    SCENARIO(freed_sem_wait);
    SCENARIO(freed_barrier);
    SCENARIO(freed_once);
    SCENARIO(freed_mtx);
    SCENARIO(freed_cnd);
    SCENARIO(freed_futex);
    SCENARIO(destroyed_mutex);
    SCENARIO(destroyed_condition);
    SCENARIO(destroyed_rwlock);
    SCENARIO(destroyed_spin);
    SCENARIO(destroyed_semaphore);
    SCENARIO(destroyed_barrier);
    SCENARIO(destroyed_mtx);
    SCENARIO(destroyed_cnd);
    SCENARIO(held);
    SCENARIO(waited_for);
    SCENARIO(returned);
    SCENARIO(returned_mutex);
    SCENARIO(ended);
    SCENARIO(notified);
    SCENARIO(last_of_barrier);
    SCENARIO(initialised_again);
    SCENARIO(woken_late);
    SCENARIO(below_the_frame);
    SCENARIO(main_leaves);
    return 91;
}
