#include "scenario.h"
#include <assert.h>
#include <signal.h>

static int *volatile null;
static volatile int zero;

static void *abort_here(void *nobody) {
    abort();
    return nobody;
}

static void *assert_here(void *nobody) {
    assert(zero == 1);
    return nobody;
}

static void *read_null(void *nobody) {
    return *null ? nobody : NULL;
}

static void *divide(void *nobody) {
    zero = 7 / zero;
    return nobody;
}

static int endless(int depth) {
    volatile char local[1000];
    local[0] = depth;
    return endless(depth + 1) + local[0];
}

static void *overflow(void *nobody) {
    endless(0);
    return nobody;
}

static void *raise_abort(void *nobody) {
    raise(SIGABRT);
    return nobody;
}

static void *call_null(void *nobody) {
    ((void (*)(void))(void *)null)();
    return nobody;
}

static void *measure_null(void *nobody) {
    return strlen((char *)null) > 0 ? nobody : NULL;
}

static void *exit_3(void *nobody) {
    _exit(3);
    return nobody;
}

static void *free_twice(void *nobody) {
    int *volatile block = malloc(16);
    free(block);
    free(block);
    return nobody;
}

static int in_thread(routine_t routine) {
    pthread_join(start(routine, NULL), NULL);
    return 0;
}

static int aborts(void) { return in_thread(abort_here); }
static int asserts(void) { return in_thread(assert_here); }
static int null_read(void) { return in_thread(read_null); }
static int division(void) { return in_thread(divide); }
static int stack_overflow(void) { return in_thread(overflow); }
static int raised(void) { return in_thread(raise_abort); }
static int null_call(void) { return in_thread(call_null); }
static int null_in_library(void) { return in_thread(measure_null); }
static int exit_now(void) { return in_thread(exit_3); }
static int double_free(void) { return in_thread(free_twice); }

static int code(void) {
    in_thread(nothing);
    return 3;
}

static int main_crashes(void) {
    in_thread(nothing);
    return *null;
}

int main(int argc, char **argv) {
    SCENARIO(aborts);
    SCENARIO(asserts);
    SCENARIO(null_read);
    SCENARIO(division);
    SCENARIO(stack_overflow);
    SCENARIO(raised);
    SCENARIO(null_call);
    SCENARIO(null_in_library);
    SCENARIO(exit_now);
    SCENARIO(double_free);
    SCENARIO(code);
    SCENARIO(main_crashes);
    return 91;
}
