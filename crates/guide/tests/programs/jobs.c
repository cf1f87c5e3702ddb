/* Two workers and one job. Static analysers warn twice here, and only one of the warnings can come true. */
#include <pthread.h>
#include <stddef.h>

struct job {
    int done;
};

struct limit {
    int jobs;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct job jobs[1];
static int waiting = 1;
static struct limit limits[2] = {{1}, {2}};
static int level = 1;

/* A look without the lock. */
static int is_work_left(void) {
    return __atomic_load_n(&waiting, __ATOMIC_SEQ_CST) > 0;
}

static struct job *take(void) {
    struct job *job = NULL;
    pthread_mutex_lock(&lock);
    if (waiting > 0) {
        job = &jobs[0];
        __atomic_store_n(&waiting, waiting - 1, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&lock);
    return job;
}

/* NULL for a level that there is not. Nobody sets one. */
static struct limit *limit_of(int wanted) {
    if (wanted < 2) return &limits[wanted];
    return NULL;
}

static void *work(void *unused) {
    (void)unused;
    if (is_work_left()) {
        struct job *job = take();
        /* True: the other worker took the job after this one had looked. */
        job->done = 1;
    }
    return NULL;
}

static void *report(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    struct limit *limit = limit_of(level);
    /* False: the level is 1 from the start and for ever. */
    limit->jobs++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, work, NULL);
    pthread_create(&threads[1], NULL, work, NULL);
    pthread_create(&threads[2], NULL, report, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return 0;
}
