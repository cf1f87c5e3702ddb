#include "scenario.h"
#include <threads.h>

static mtx_t mutex;
static cnd_t condition;
static once_flag once = ONCE_FLAG_INIT;
static tss_t key;
static int ready, calls;

static int add_letter(void *letter) {
    mtx_lock(&mutex);
    leave(*(char *)letter);
    mtx_unlock(&mutex);
    return *(char *)letter;
}

static int threads(void) {
    mtx_init(&mutex, mtx_plain);
    thrd_t x, y;
    int first, second;
    thrd_create(&x, add_letter, "x");
    thrd_create(&y, add_letter, "y");
    thrd_join(x, &first);
    thrd_join(y, &second);
    printf("%s %c%c\n", letters, first, second);
    return 0;
}

static int set_ready(void *nobody) {
    mtx_lock(&mutex);
    ready = 1;
    cnd_signal(&condition);
    mtx_unlock(&mutex);
    return nobody == NULL;
}

static int conditions(void) {
    mtx_init(&mutex, mtx_plain);
    cnd_init(&condition);
    thrd_t other;
    thrd_create(&other, set_ready, NULL);
    mtx_lock(&mutex);
    while (!ready) cnd_wait(&condition, &mutex);
    mtx_unlock(&mutex);
    thrd_join(other, NULL);
    puts("ready");
    return 0;
}

static void call(void) {
    calls++;
}

static void forget(void *value) {
    printf("%s ", (char *)value);
}

static int enter(void *nobody) {
    call_once(&once, call);
    tss_set(key, "key");
    thrd_yield();
    thrd_exit(nobody == NULL ? 3 : 4);
}

static int once_and_keys(void) {
    tss_create(&key, forget);
    thrd_t x, y;
    int result;
    thrd_create(&x, enter, NULL);
    thrd_create(&y, enter, NULL);
    thrd_join(x, &result);
    thrd_join(y, NULL);
    printf("%d %d\n", calls, result);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(threads);
    SCENARIO(conditions);
    SCENARIO(once_and_keys);
    return 91;
}
