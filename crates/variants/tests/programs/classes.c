// Small programs whose interleavings are counted. The arguments are the name of one of them and a number of threads.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static sem_t semaphore;
static atomic_int number;
static atomic_int array[20];
static atomic_int table[128];
static int plain;

static void *locked(void *argument) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&mutex);
        plain++;
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

static void *counts(void *argument) {
    atomic_fetch_add(&number, 1);
    atomic_fetch_add(&number, 1);
    atomic_load(&number);
    return argument;
}

static void *increments(void *argument) {
    atomic_fetch_add(&number, 1);
    return argument;
}

static void *writes_or_reads(void *argument) {
    if ((long)argument == 0)
        atomic_store(&number, 1);
    else
        atomic_load(&number);
    return argument;
}

static void *writes_or_reads_plainly(void *argument) {
    static volatile int seen[8];
    if ((long)argument == 0)
        plain = 1;
    else
        seen[(long)argument] = plain;
    return argument;
}

static int last_place;
static void *last_zero(void *argument) {
    long i = (long)argument;
    if (i == 0)
        for (i = last_place; atomic_load(&array[i]) != 0; i--)
            ;
    else
        atomic_store(&array[i], atomic_load(&array[i - 1]) + 1);
    return argument;
}

static void *inserts(void *argument) {
    int id = (long)argument;
    for (int k = 1; k <= 4; k++) {
        int message = 11 * k + id, slot = message * 7 % 128, empty = 0;
        while (!atomic_compare_exchange_strong(&table[slot], &empty, message)) {
            empty = 0;
            slot = (slot + 1) % 128;
        }
    }
    return argument;
}

static void *waits_or_notifies(void *argument) {
    pthread_mutex_lock(&mutex);
    if ((long)argument < 2) {
        while (plain == 0)
            pthread_cond_wait(&condition, &mutex);
        plain--;
    } else {
        plain++;
        pthread_cond_signal(&condition);
    }
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void *takes_or_posts(void *argument) {
    if ((long)argument == 0)
        sem_post(&semaphore), sem_post(&semaphore);
    else
        sem_wait(&semaphore);
    return argument;
}

static void *meets(void *argument) {
    atomic_fetch_add(&number, 1);
    pthread_barrier_wait(&barrier);
    atomic_load(&number);
    return argument;
}

static void *tries(void *argument) {
    for (int i = 0; i < 2; i++)
        if (pthread_mutex_trylock(&mutex) == 0) {
            plain++;
            pthread_mutex_unlock(&mutex);
        }
    return argument;
}

static void *tries_for_a_while(void *argument) {
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
    if (pthread_mutex_timedlock(&mutex, &soon) == 0) {
        plain++;
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

static void *reads_or_writes_locked(void *argument) {
    if ((long)argument == 0)
        pthread_rwlock_wrlock(&rwlock);
    else
        pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    return argument;
}

static void initialise(void) { atomic_store(&number, 1); }
static void *does_once(void *argument) {
    pthread_once(&once, initialise);
    return argument;
}

static void *waits_for_a_while(void *argument) {
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
    pthread_mutex_lock(&mutex);
    if ((long)argument == 0)
        pthread_cond_timedwait(&condition, &mutex, &soon);
    else
        pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return argument;
}

static void *allocates(void *argument) {
    static _Atomic(int *) shared;
    int *own = malloc(sizeof *own);
    *own = 1;
    int *before = atomic_exchange(&shared, own);
    if (before)
        ++*before;
    return argument;
}

struct program {
    const char *name;
    void *(*routine)(void *);
    int joins;
} programs[] = {
    {"locked", locked, 1},
    {"counts", counts, 1},
    {"increments", increments, 1},
    {"readers", writes_or_reads, 1},
    {"plain_readers", writes_or_reads_plainly, 1},
    {"last_zero", last_zero, 1},
    {"indexer", inserts, 1},
    {"condition", waits_or_notifies, 1},
    {"semaphore", takes_or_posts, 1},
    {"barrier", meets, 1},
    {"tries", tries, 1},
    {"timed_lock", tries_for_a_while, 1},
    {"read_write_lock", reads_or_writes_locked, 1},
    {"once", does_once, 1},
    {"timed_wait", waits_for_a_while, 1},
    {"allocations", allocates, 1},
    {"no_join", increments, 0},
};

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    pthread_t threads[20];
    long how_many = atoi(arguments[2]);
    last_place = how_many - 1;
    pthread_barrier_init(&barrier, NULL, how_many);
    for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct program *program = &programs[i];
        if (strcmp(program->name, arguments[1]))
            continue;
        for (long thread = 0; thread < how_many; thread++)
            pthread_create(&threads[thread], NULL, program->routine, (void *)thread);
        for (int thread = 0; program->joins && thread < how_many; thread++)
            pthread_join(threads[thread], NULL);
        return 0;
    }
    return 2;
}
