#include "scenario.h"
#include <dlfcn.h>

extern int library_counter;
void library_increment(void);
void library_increment_locked(void);

static void *increment(void *nobody) {
    library_increment();
    return nobody;
}

static void *increment_locked(void *nobody) {
    library_increment_locked();
    return nobody;
}

static int unlocked(void) {
    both(increment, increment);
    printf("%d\n", library_counter);
    return 0;
}

static int locked(void) {
    both(increment_locked, increment_locked);
    printf("%d\n", library_counter);
    return 0;
}

static void *load(void *nobody) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");
    if (cosine(0) != 1) abort();
    sched_yield();
    dlclose(library);
    return nobody;
}

static int loading(void) {
    both(load, load);
    puts("loaded");
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(unlocked);
    SCENARIO(locked);
    SCENARIO(loading);
    return 91;
}
