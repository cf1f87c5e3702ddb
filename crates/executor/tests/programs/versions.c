#include "scenario.h"

#include <sched.h>

/* The oldest version refuses a clock. */
static int conditions(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_t condition;
    int error = pthread_cond_init(&condition, &attributes);
    pthread_join(start(nothing, NULL), NULL);
    printf("%d\n", error);
    return 0;
}

/* The oldest version allocates nothing. */
static int paths(void) {
    pthread_join(start(nothing, NULL), NULL);
    char *path = realpath("/..", NULL);
    puts(path ? path : "none");
    free(path);
    return 0;
}

/* The oldest version takes the size for the address. */
static int processors(void) {
    pthread_join(start(nothing, NULL), NULL);
    cpu_set_t set;
    int error = sched_getaffinity(0, sizeof set, &set);
    puts(error == 0 && CPU_COUNT(&set) > 0 ? "some" : "none");
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(conditions);
    SCENARIO(paths);
    SCENARIO(processors);
    return 91;
}
