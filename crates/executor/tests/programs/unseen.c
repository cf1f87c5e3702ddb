/* Memory that code without instrumentation uses. With FIXED it is freed when nobody needs it any more. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNSEEN __attribute__((noinline, no_sanitize("thread")))

static char *volatile text;
static size_t size = 40;

UNSEEN static int count(const char *at) {
    int count = 0;
    while (*at++)
        count++;
    return count;
}

UNSEEN static void clear(char *at) {
    at[3] = 0;
}

static void make(void) {
    char *made = malloc(size);
    memset(made, '7', size - 1);
    made[size - 1] = 0;
    text = made;
}

static void *drop(void *unused) {
#ifndef FIXED
    free(text);
#endif
    return unused;
}

static void *read_it(void *unused) {
    return count(text) < 0 ? NULL : unused;
}

static void *write_it(void *unused) {
    clear(text);
    return unused;
}

static void *read_in_libc(void *unused) {
    return strtol(text + 8, NULL, 10) == 0 ? NULL : unused;
}

static void *write_in_libc(void *unused) {
    snprintf(text, 8, "%d", 12);
    return unused;
}

static void *read_in_kernel(void *unused) {
    return write(1, text, 4) == 4 ? unused : NULL;
}

/* The last one has the block from a thread, so it is none from before the first. */
static void *make_and_share(void *use) {
    pthread_t users[2];
    make();
    pthread_create(&users[0], NULL, drop, NULL);
    pthread_create(&users[1], NULL, use == NULL ? read_it : read_in_libc, NULL);
    pthread_join(users[0], NULL);
    pthread_join(users[1], NULL);
#ifdef FIXED
    free(text);
#endif
    return NULL;
}

static void share(void *(*use)(void *)) {
    pthread_t users[2];
    make();
    pthread_create(&users[0], NULL, drop, NULL);
    pthread_create(&users[1], NULL, use, NULL);
    pthread_join(users[0], NULL);
    pthread_join(users[1], NULL);
#ifdef FIXED
    free(text);
#endif
}

/* Memory that was freed is handed out again, many times over. */
static void *churn(void *unused) {
    for (int i = 0; i < 6000; i++) {
        char *block = calloc(1, 24 + i % 5000);
        if (count(block) != 0)
            abort();
        memset(block, 1, 24);
        block = realloc(block, 9000);
        if (block[23] != 1)
            abort();
        free(block);
    }
    return unused;
}

int main(int argc, char **argv) {
    const char *scenario = argc > 1 ? argv[1] : "";
    if (!strcmp(scenario, "read"))
        share(read_it);
    else if (!strcmp(scenario, "written"))
        share(write_it);
    else if (!strcmp(scenario, "libc"))
        share(read_in_libc);
    else if (!strcmp(scenario, "libc_write"))
        share(write_in_libc);
    else if (!strcmp(scenario, "kernel"))
        share(read_in_kernel);
    else if (!strcmp(scenario, "large")) {
        size = 300000;
        share(read_it);
    } else if (!strcmp(scenario, "in_run")) {
        pthread_t maker;
        pthread_create(&maker, NULL, make_and_share, NULL);
        pthread_join(maker, NULL);
    } else if (!strcmp(scenario, "before")) {
        pthread_t user;
        make();
        drop(NULL);
        pthread_create(&user, NULL, read_it, NULL);
        pthread_join(user, NULL);
    } else if (!strcmp(scenario, "alone")) {
        make();
        drop(NULL);
        read_it(NULL);
    } else if (!strcmp(scenario, "churn")) {
        pthread_t other;
        pthread_create(&other, NULL, churn, NULL);
        churn(NULL);
        pthread_join(other, NULL);
    } else
        return 9;
    return 0;
}
