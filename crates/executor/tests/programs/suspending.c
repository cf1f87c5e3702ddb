#include "scenario.h"

#include <signal.h>

static volatile sig_atomic_t handled;

static void handle(int signal) {
    handled = signal;
}

/* Blocks the signal and gives the mask without it. */
static sigset_t blocked(int signal) {
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    return before;
}

static void *signal_process(void *signal) {
    kill(getpid(), (int)(long)signal);
    return NULL;
}

/* A signal to the process, sent before or during the wait, ends it with its handler called. */
static int suspend(void) {
    sigset_t before = blocked(SIGUSR2);
    signal(SIGUSR2, handle);
    pthread_t sender = start(signal_process, (void *)SIGUSR2);
    int result = sigsuspend(&before);
    printf("%d %d %d\n", result, errno == EINTR, handled == SIGUSR2);
    pthread_join(sender, NULL);
    return 0;
}

/* Only one of two threads that wait for it gets a signal to the process. */
static void *wait_for_signal(void *set) {
    int signal;
    sigwait(set, &signal);
    write(1, "x", 1);
    return NULL;
}

static int one_gets_it(void) {
    static sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    blocked(SIGUSR1);
    start(wait_for_signal, &set);
    start(wait_for_signal, &set);
    signal_process((void *)SIGUSR1);
    pthread_exit(NULL);
}

static void *pausing(void *nobody) {
    pause();
    printf("%d %d\n", errno == EINTR, handled == SIGUSR1);
    return nobody;
}

/* The signal comes while the thread pauses, or before: then nothing ends the pause. */
static int pause_(void) {
    signal(SIGUSR1, handle);
    pthread_t thread = start(pausing, NULL);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(suspend);
    SCENARIO(one_gets_it);
    SCENARIO(pause_);
    return 91;
}
