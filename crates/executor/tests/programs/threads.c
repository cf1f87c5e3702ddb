#include "scenario.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key, other_key;
static int flag, found;

static void *leave_by_exit(void *value) {
    pthread_exit(value);
}

static int results(void) {
    void *first, *second;
    pthread_join(start(nothing, (void *)7), &first);
    pthread_join(start(leave_by_exit, (void *)8), &second);
    printf("%ld %ld\n", (long)first, (long)second);
    return 0;
}

static int errors(void) {
    pthread_t thread = start(nothing, NULL);
    int self = pthread_join(pthread_self(), NULL);
    int detached = pthread_detach(thread), joined = pthread_join(thread, NULL);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread, &attributes, nothing, NULL);
    int born = pthread_join(thread, NULL);
    printf("%d %d %d %d\n", self == EDEADLK, detached, joined == EINVAL, born == EINVAL);
    return 0;
}

static void *sleep_a_second(void *nobody) {
    sleep(1);
    return nobody;
}

static int alive(void) {
    pthread_t thread = start(sleep_a_second, NULL);
    int error = pthread_kill(thread, 0);
    pthread_join(thread, NULL);
    printf("%d\n", error);
    return 0;
}

static int joins(void) {
    pthread_t thread = start(nothing, (void *)5);
    void *result = NULL;
    int tried = pthread_tryjoin_np(thread, &result);
    if (tried == EBUSY) {
        struct timespec until = in_seconds(CLOCK_REALTIME, 1);
        int timed = pthread_timedjoin_np(thread, &result, &until);
        puts(timed == ETIMEDOUT ? "timed out" : (long)result == 5 ? "joined in time" : "?");
    } else {
        puts((long)result == 5 ? "joined at once" : "?");
    }
    return 0;
}

static void *say(void *text) {
    write(1, text, strlen(text));
    return NULL;
}

static int main_returns(void) {
    start(say, "x");
    return 0;
}

static int main_leaves(void) {
    start(say, "x");
    start(say, "y");
    pthread_exit(NULL);
}

static void *exit_3(void *nobody) {
    exit(3);
    return nobody;
}

static int exit_in_thread(void) {
    pthread_join(start(exit_3, NULL), NULL);
    return 0;
}

static void destructor(void *value) {
    printf("%s ", (char *)value);
}

static void set_again(void *value) {
    printf("%s ", (char *)value);
    if (!flag++) pthread_setspecific(other_key, "again");
}

static void *with_keys(void *value) {
    pthread_setspecific(key, value);
    pthread_setspecific(other_key, "other");
    return pthread_getspecific(key);
}

static int keys(void) {
    pthread_key_create(&key, destructor);
    pthread_key_create(&other_key, set_again);
    pthread_join(start(with_keys, "first"), NULL);
    pthread_setspecific(key, "main");
    printf("%s\n", pthread_getspecific(other_key) == NULL ? "own" : "shared");
    return 0;
}

static void *exit_with_key(void *value) {
    pthread_setspecific(key, value);
    exit(0);
}

/* `exit` does not run the destructors of keys. */
static int keys_at_exit(void) {
    pthread_key_create(&key, destructor);
    pthread_join(start(exit_with_key, "wrong"), NULL);
    return 0;
}

/* `pthread_exit` does, in the main thread too. */
static int keys_of_main(void) {
    pthread_key_create(&key, destructor);
    pthread_setspecific(key, "main");
    start(nothing, NULL);
    pthread_exit(NULL);
}

static void clean_up(void *text) {
    printf("%s ", (char *)text);
}

static void leave_deeply(int depth) {
    pthread_cleanup_push(clean_up, "inner");
    if (depth == 0) pthread_exit(NULL);
    leave_deeply(depth - 1);
    pthread_cleanup_pop(0);
}

static void *with_handlers(void *nobody) {
    pthread_cleanup_push(clean_up, "outer");
    leave_deeply(1);
    pthread_cleanup_pop(0);
    return nobody;
}

static int cleaning_up(void) {
    pthread_join(start(with_handlers, NULL), NULL);
    puts("joined");
    return 0;
}

static void *grandchild(void *nobody) {
    __atomic_add_fetch(&flag, 1, __ATOMIC_SEQ_CST);
    return nobody;
}

static void *child(void *nobody) {
    both(grandchild, grandchild);
    return nobody;
}

static int nested(void) {
    both(child, child);
    printf("%d\n", flag);
    return 0;
}

static int many(void) {
    static pthread_t threads[200];
    for (int i = 0; i < 200; i++) threads[i] = start(grandchild, NULL);
    for (int i = 0; i < 200; i++) pthread_join(threads[i], NULL);
    printf("%d\n", flag);
    return 0;
}

static int recursion(int depth) {
    volatile char local[1000];
    local[0] = 1;
    return depth == 0 ? 0 : recursion(depth - 1) + local[0];
}

static void *recurse(void *depth) {
    found = recursion((long)depth);
    return NULL;
}

static int with_stack(size_t bytes, void *memory, long depth) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int error = memory ? pthread_attr_setstack(&attributes, memory, bytes)
                       : pthread_attr_setstacksize(&attributes, bytes);
    pthread_t thread;
    if (error == 0) error = pthread_create(&thread, &attributes, recurse, (void *)depth);
    if (error == 0) error = pthread_join(thread, NULL);
    printf("%s %d\n", strerror(error), found);
    return 0;
}

static int default_stack(void) {
    return with_stack(8 << 20, NULL, 5000);
}

static int small_stack(void) {
    return with_stack(64 << 10, NULL, 10);
}

static int large_stack(void) {
    return with_stack(12 << 20, NULL, 10000);
}

static int huge_stack(void) {
    return with_stack(64 << 20, NULL, 50000);
}

static int impossible_stack(void) {
    return with_stack((size_t)1 << 62, NULL, 10);
}

static int own_stack(void) {
    void *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return with_stack(1 << 20, memory, 500);
}

static void *set_errno(void *value) {
    errno = (int)(long)value;
    pthread_mutex_lock(&mutex);
    found++;
    pthread_mutex_unlock(&mutex);
    sched_yield();
    if (errno != (int)(long)value) abort();
    return NULL;
}

static int errnos(void) {
    errno = 1;
    pthread_t x = start(set_errno, (void *)2), y = start(set_errno, (void *)3);
    pthread_join(x, NULL);
    pthread_join(y, NULL);
    printf("%d\n", errno);
    return 0;
}

static __thread int own = 4;

static void *count_own(void *nobody) {
    for (int i = 0; i < 3; i++) {
        own++;
        sched_yield();
    }
    if (own != 7) abort();
    return nobody;
}

static int thread_variables(void) {
    both(count_own, count_own);
    printf("%d\n", own);
    return 0;
}

static void *do_nothing(void *nobody) {
    return nobody;
}

/* From now on there is room for a few stacks only. */
static void limit_memory(void) {
    long pages;
    FILE *sizes = fopen("/proc/self/statm", "r");
    if (fscanf(sizes, "%ld", &pages) != 1) abort();
    fclose(sizes);
    rlim_t bytes = pages * 4096 + (40 << 20);
    setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
}

/* More threads than there is room for, one after the other. */
static int too_many_in_turn(void) {
    pthread_join(start(do_nothing, NULL), NULL);
    limit_memory();
    for (int i = 0; i < 20; i++) {
        pthread_join(start(do_nothing, NULL), NULL);
    }
    return 0;
}

static int too_many_at_once(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    start((routine_t)(void *)pthread_mutex_lock, &lock);
    limit_memory();
    for (int i = 0; i < 20; i++) {
        start((routine_t)(void *)pthread_mutex_lock, &lock);
    }
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(results);
    SCENARIO(errors);
    SCENARIO(alive);
    SCENARIO(joins);
    SCENARIO(main_returns);
    SCENARIO(main_leaves);
    SCENARIO(exit_in_thread);
    SCENARIO(keys);
    SCENARIO(keys_at_exit);
    SCENARIO(keys_of_main);
    SCENARIO(cleaning_up);
    SCENARIO(nested);
    SCENARIO(many);
    SCENARIO(too_many_in_turn);
    SCENARIO(too_many_at_once);
    SCENARIO(default_stack);
    SCENARIO(small_stack);
    SCENARIO(large_stack);
    SCENARIO(huge_stack);
    SCENARIO(impossible_stack);
    SCENARIO(own_stack);
    SCENARIO(errnos);
    SCENARIO(thread_variables);
    return 91;
}
