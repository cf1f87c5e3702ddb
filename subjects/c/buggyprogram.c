/*
 * A lottery. Each user draws a number that nobody has had before, presents it,
 * and enters it in the history. The number drawn stands in one variable that
 * all users share.
 *
 * The bug: every step holds a lock, but each user a lock of its own, so nothing
 * is excluded. If another user draws between the steps of the first, the first
 * presents a number that is not its own. In the fix all users have one lock,
 * and hold it from the draw to the entry.
 *
 * Published: PECAN, 4 threads, 225 events, 9 races and 1 AV predicted, all 10
 * real, 1 with an exception.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_USERS = 400, HIGHEST = 100000 };

static int current_number;
static int generated[MAX_USERS];
static int presented[MAX_USERS];
static int history[MAX_USERS];
static int users;

#ifdef FIXED
static pthread_mutex_t lottery_lock = PTHREAD_MUTEX_INITIALIZER;

static void begin_turn(void) {
    pthread_mutex_lock(&lottery_lock);
}

static void end_turn(void) {
    pthread_mutex_unlock(&lottery_lock);
}

static void begin_step(int user) {
    (void)user;
}

static void end_step(int user) {
    (void)user;
}
#else
static pthread_mutex_t user_locks[MAX_USERS];

static void begin_turn(void) {
}

static void end_turn(void) {
}

static void begin_step(int user) {
    pthread_mutex_lock(&user_locks[user]);
}

static void end_step(int user) {
    pthread_mutex_unlock(&user_locks[user]);
}
#endif

/* A generator for each user, so that what a user draws does not depend on the schedule. */
static int draw(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return 1 + (int)((*state >> 8) % HIGHEST);
}

static void generate(int user, uint32_t *state) {
    begin_step(user);
    current_number = draw(state);
    generated[user] = current_number;
    end_step(user);
}

static bool had_before(int user) {
    begin_step(user);
    bool found = false;
    for (int i = 0; i < users && !found; i++) {
        found = history[i] == current_number;
    }
    end_step(user);
    return found;
}

static void present(int user) {
    begin_step(user);
    presented[user] = current_number;
    end_step(user);
}

static void record(int user) {
    begin_step(user);
    history[user] = current_number;
    end_step(user);
}

static void *play(void *argument) {
    int user = (int)(intptr_t)argument;
    uint32_t state = (uint32_t)user + 1;
    begin_turn();
    do {
        generate(user, &state);
    } while (had_before(user));
    present(user);
    record(user);
    end_turn();
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"users", 2, 2, MAX_USERS}};
    read_sizes(argc, argv, sizes, 1);
    users = sizes[0].value;

    pthread_t threads[MAX_USERS];
#ifndef FIXED
    for (int i = 0; i < users; i++) {
        pthread_mutex_init(&user_locks[i], NULL);
    }
#endif
    for (int i = 0; i < users; i++) {
        pthread_create(&threads[i], NULL, play, (void *)(intptr_t)i);
    }
    for (int i = 0; i < users; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < users; i++) {
        assert(generated[i] == presented[i] && presented[i] == history[i]);
    }
    return 0;
}
