/* What every test program needs: threads, and a main that does the scenario named by its argument. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void *(*routine_t)(void *);

static inline pthread_t start(routine_t routine, void *argument) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, routine, argument);
    if (error != 0) {
        printf("pthread_create: %s\n", strerror(error));
        exit(90);
    }
    return thread;
}

/* Runs two routines side by side. */
static inline void both(routine_t one, routine_t two) {
    pthread_t first = start(one, NULL), second = start(two, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
}

static inline struct timespec in_seconds(clockid_t clock, int seconds) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += seconds;
    return time;
}

/* The letters that threads leave, in the order they leave them; to be used under a lock. */
static char letters[1000];
static inline void leave(char letter) {
    letters[strlen(letters)] = letter;
}

static inline void *nothing(void *argument) {
    return argument;
}

#define SCENARIO(name) \
    if (argc > 1 && strcmp(argv[1], #name) == 0) return name()
