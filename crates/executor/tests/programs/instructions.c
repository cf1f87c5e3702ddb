/* Instructions that tell of the machine and of real time. */
#include "scenario.h"
#include <cpuid.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <x86intrin.h>

extern char **environ;

static void *looks(void *nobody) {
    unsigned processor;
    unsigned long long first = __rdtsc(), second = __rdtsc(), third = __rdtscp(&processor);
    printf("%d %d %u %llu\n", first < second, second < third, processor, third);
    return nobody;
}

static int counters(void) {
    both(looks, looks);
    return 0;
}

static void *sleeps(void *nobody) {
    unsigned long long before = __rdtsc();
    sleep(3600);
    printf("%llu h\n", (__rdtsc() - before) / 1000000000 / 3600);
    return nobody;
}

static int sleeping(void) {
    both(sleeps, nothing);
    return 0;
}

static int features(void) {
    unsigned a, b, c, d, words[3];
    pthread_join(start(nothing, NULL), NULL);
    int there = __get_cpuid(1, &a, &b, &c, &d), random = (c & bit_RDRND) != 0;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    random |= (b & bit_RDSEED) != 0;
    __get_cpuid(0, &a, &words[0], &words[2], &words[1]);
    printf("%d %d %zu %lu\n", there, random, strnlen((char *)words, 12), getauxval(AT_SYSINFO_EHDR));
    return 0;
}

/* Other programs, and copies of this one, have the instructions as they are. */
static int children(void) {
    int status[2];
    pid_t child;
    char *arguments[] = {"/proc/self/exe", "child", NULL};
    pthread_join(start(nothing, NULL), NULL);
    posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ);
    waitpid(child, &status[0], 0);
    child = fork();
    if (child == 0) _exit(__rdtsc() > 0 && __get_cpuid_max(0, NULL) > 0 ? 8 : 1);
    waitpid(child, &status[1], 0);
    child = fork();
    if (child == 0) {
        execv(arguments[0], arguments);
        _exit(1);
    }
    int last;
    waitpid(child, &last, 0);
    printf("%d %d %d %d\n", WEXITSTATUS(status[0]), WEXITSTATUS(status[1]), WEXITSTATUS(last), system("exit 0"));
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "child") == 0) return __rdtsc() > 0 && __get_cpuid_max(0, NULL) > 0 ? 7 : 1;
    SCENARIO(counters);
    SCENARIO(sleeping);
    SCENARIO(features);
    SCENARIO(children);
    return 2;
}
