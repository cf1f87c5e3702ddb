#include "scenario.h"

#include <sched.h>
#include <sys/sysinfo.h>

/* Everybody who can be asked. */
static int counts(void) {
    pthread_join(start(nothing, NULL), NULL);
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    FILE *limits = fopen("/proc/self/cgroup", "r");
    printf("%d %ld %ld %d %s\n", CPU_COUNT(&set), sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF),
           get_nprocs(), limits ? "limited" : "no limits");
    return 0;
}

static void *count(void *argument) {
    cpu_set_t set;
    pthread_getaffinity_np(pthread_self(), sizeof set, &set);
    *(int *)argument = CPU_COUNT(&set);
    return NULL;
}

/* A thread begins with the processors of the one that creates it. */
static int pinned(void) {
    int before, after;
    pthread_join(start(count, &before), NULL);
    cpu_set_t third, none;
    CPU_ZERO(&none);
    CPU_ZERO(&third);
    CPU_SET(2, &third);
    int error = sched_setaffinity(0, sizeof third, &third);
    pthread_join(start(count, &after), NULL);
    int refused = pthread_setaffinity_np(pthread_self(), sizeof none, &none);
    printf("%d %d %d %s\n", before, error, after, strerror(refused));
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(counts);
    SCENARIO(pinned);
    return 91;
}
