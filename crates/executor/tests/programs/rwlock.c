#include "scenario.h"
#include <assert.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static int inside, most, writing, found, counter;

static void *read_it(void *nobody) {
    pthread_rwlock_rdlock(&lock);
    assert(!writing);
    int now = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    if (now > __atomic_load_n(&most, __ATOMIC_SEQ_CST)) __atomic_store_n(&most, now, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    pthread_rwlock_unlock(&lock);
    return nobody;
}

static void *write_it(void *nobody) {
    pthread_rwlock_wrlock(&lock);
    assert(!writing && inside == 0);
    writing = 1;
    counter++;
    writing = 0;
    pthread_rwlock_unlock(&lock);
    return nobody;
}

static int readers(void) {
    pthread_t writer = start(write_it, NULL);
    both(read_it, read_it);
    pthread_join(writer, NULL);
    printf("%d\n", most);
    return 0;
}

static int writers(void) {
    both(write_it, write_it);
    printf("%d\n", counter);
    return 0;
}

static void *try_both(void *nobody) {
    int read = pthread_rwlock_tryrdlock(&lock);
    if (read == 0) pthread_rwlock_unlock(&lock);
    int write = pthread_rwlock_trywrlock(&lock);
    if (write == 0) pthread_rwlock_unlock(&lock);
    found = (read == EBUSY) * 2 + (write == EBUSY);
    return nobody;
}

static int trying(void) {
    pthread_join(start(try_both, NULL), NULL);
    printf("%d ", found);
    pthread_rwlock_rdlock(&lock);
    pthread_join(start(try_both, NULL), NULL);
    printf("%d ", found);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_wrlock(&lock);
    pthread_join(start(try_both, NULL), NULL);
    printf("%d\n", found);
    pthread_rwlock_unlock(&lock);
    return 0;
}

static void *timed_both(void *nobody) {
    struct timespec until = in_seconds(CLOCK_REALTIME, 1);
    int read = pthread_rwlock_timedrdlock(&lock, &until), write = pthread_rwlock_timedwrlock(&lock, &until);
    found = (read == ETIMEDOUT) * 2 + (write == ETIMEDOUT);
    return nobody;
}

static int timed(void) {
    pthread_rwlock_wrlock(&lock);
    int again = pthread_rwlock_wrlock(&lock), read = pthread_rwlock_rdlock(&lock);
    pthread_join(start(timed_both, NULL), NULL);
    printf("%d %d %d\n", found, again == EDEADLK, read == EDEADLK);
    return 0;
}

static void *read_then_wait(void *nobody) {
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_wrlock(&lock);
    return nobody;
}

/* A reader cannot become the writer. */
static int upgrade(void) {
    pthread_join(start(read_then_wait, NULL), NULL);
    return 0;
}

static pthread_rwlock_t writers_first = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void *read_twice(void *which) {
    pthread_rwlock_rdlock(which);
    pthread_rwlock_rdlock(which);
    pthread_rwlock_unlock(which);
    pthread_rwlock_unlock(which);
    return NULL;
}

static void *write_once(void *which) {
    pthread_rwlock_wrlock(which);
    pthread_rwlock_unlock(which);
    return NULL;
}

static int nested_readers(pthread_rwlock_t *which) {
    pthread_t reads = start(read_twice, which), writes = start(write_once, which);
    pthread_join(reads, NULL);
    pthread_join(writes, NULL);
    puts("done");
    return 0;
}

/* A reader that comes again does not wait for a writer, unless the lock is of the kind where it does. */
static int nested(void) { return nested_readers(&lock); }
static int nested_for_writers(void) { return nested_readers(&writers_first); }

static void *read_or_not(void *nobody) {
    found = pthread_rwlock_tryrdlock(&writers_first);
    if (found == 0) pthread_rwlock_unlock(&writers_first);
    return nobody;
}

static void *write_in_time(void *nobody) {
    struct timespec soon = in_seconds(CLOCK_REALTIME, 1);
    if (pthread_rwlock_timedwrlock(&writers_first, &soon) == 0) pthread_rwlock_unlock(&writers_first);
    return nobody;
}

/* A writer that waits keeps readers out; once it has given up, they may come. */
static int impatient(void) {
    pthread_rwlock_rdlock(&writers_first);
    pthread_t writes = start(write_in_time, NULL), tries = start(read_or_not, NULL);
    pthread_join(tries, NULL);
    pthread_join(writes, NULL);
    printf("%s ", found == EBUSY ? "busy" : "free");
    read_or_not(NULL);
    printf("%s\n", found == EBUSY ? "busy" : "free");
    return 0;
}

static void *spin_increment(void *nobody) {
    pthread_spin_lock(&spin);
    int seen = counter;
    leave('a' + seen);
    counter = seen + 1;
    pthread_spin_unlock(&spin);
    return nobody;
}

static void *spin_try(void *nobody) {
    found = pthread_spin_trylock(&spin);
    if (found == 0) pthread_spin_unlock(&spin);
    return nobody;
}

static int spinning(void) {
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_t tries = start(spin_try, NULL);
    both(spin_increment, spin_increment);
    pthread_join(tries, NULL);
    printf("%s %s\n", letters, found == EBUSY ? "busy" : "free");
    return pthread_spin_destroy(&spin);
}

int main(int argc, char **argv) {
    SCENARIO(readers);
    SCENARIO(writers);
    SCENARIO(trying);
    SCENARIO(timed);
    SCENARIO(upgrade);
    SCENARIO(nested);
    SCENARIO(nested_for_writers);
    SCENARIO(impatient);
    SCENARIO(spinning);
    return 91;
}
