#include "scenario.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *text) {
    write(1, text, strlen(text));
}

static void lock_at_exit(void) {
    pthread_mutex_lock(&mutex);
    say("handler ");
    pthread_mutex_unlock(&mutex);
}

static void last_at_exit(void) {
    say("last");
}

static int handlers(void) {
    atexit(last_at_exit);
    atexit(lock_at_exit);
    pthread_join(start(nothing, NULL), NULL);
    return 0;
}

/* The last thread ends the process in order: handlers run from beginning to end. */
static int handlers_after_main(void) {
    atexit(last_at_exit);
    atexit(lock_at_exit);
    start(nothing, NULL);
    pthread_exit(NULL);
}

int main(int argc, char **argv) {
    SCENARIO(handlers);
    SCENARIO(handlers_after_main);
    return 91;
}
