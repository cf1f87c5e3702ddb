// Programs that become other programs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int shared;

static void *add(void *unused) {
    shared++;
    return unused;
}

static void run_threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, add, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
}

static void *becomes_sleep(void *unused) {
    execl("/bin/sleep", "sleep", "600", (char *)0);
    return unused;
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    char *sleep_600[] = {"sleep", "600", 0};
    if (!strcmp(what, "anew") && !getenv("ANEW")) {
        char *environment[] = {"ANEW=1", 0};
        execve(argv[0], argv, environment);
    }
    if (!strcmp(what, "anew_list") && argc == 2)
        execl(argv[0], argv[0], what, "1", "2", "3", "4", "5", "6", (char *)0);
    if (!strcmp(what, "anew_list_environment") && argc == 2)
        execle(argv[0], argv[0], what, "1", "2", "3", "4", "5", "6", (char *)0, (char *[]){"ANEW=1", 0});
    if (!strcmp(what, "anew_descriptor") && !getenv("ANEW")) {
        setenv("ANEW", "1", 1);
        fexecve(open(argv[0], O_RDONLY), argv, environ);
    }
    if (!strcmp(what, "wrapped")) execlp("sh", "sh", "-c", "exec \"$0\" plain", argv[0], (char *)0);
    if (!strcmp(what, "early_sleep")) execvp("sleep", sleep_600);
    if (!strcmp(what, "early_true")) execvp("true", (char *[]){"true", 0});
    if (!strcmp(what, "in_a_thread")) {
        pthread_t thread;
        pthread_create(&thread, 0, becomes_sleep, 0);
        pthread_join(thread, 0);
    }
    run_threads();
    if (!strcmp(what, "late_sleep")) execvp("sleep", sleep_600);
    if (!strcmp(what, "by_number")) syscall(SYS_execve, "/bin/sleep", sleep_600, environ);
    if (!strcmp(what, "nothing_there")) {
        int result = execlp("/nowhere/at-all", "x", (char *)0);
        printf("%d %s ", result, strerror(errno));
    }
    if (!strcmp(what, "child")) {
        if (fork() == 0) execlp("true", "true", (char *)0);
        int status;
        wait(&status);
        printf("%d ", status);
    }
    printf("%d %d", argc, shared);
    return 0;
}
