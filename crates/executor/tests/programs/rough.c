/* Programs that are hard on whoever runs them. */
#include "scenario.h"
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *add(void *nobody) {
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_mutex_unlock(&mutex);
    return nobody;
}

/* All of them alive at once. */
static int thousand(void) {
    pthread_t threads[1000];
    for (int i = 0; i < 1000; i++) threads[i] = start(add, NULL);
    for (int i = 0; i < 1000; i++) pthread_join(threads[i], NULL);
    printf("%d", counter);
    return 0;
}

static void *add_often(void *nobody) {
    for (int i = 0; i < 250000; i++) add(NULL);
    return nobody;
}

static int events(void) {
    both(add_often, add_often);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%d, program is %s", counter, usage.ru_maxrss < 32 << 10 ? "small" : "large");
    return 0;
}

static void *spin_here(void *nobody) {
    for (volatile long i = 0;; i++) {}
    return nobody;
}

static int spinning(void) {
    both(spin_here, nothing);
    return 0;
}

static void *print_much(void *nobody) {
    char line[1000];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < 10000; i++) fwrite(line, 1, sizeof line, stdout);
    return nobody;
}

static int ten_megabytes(void) {
    both(print_much, nothing);
    printf("end");
    return 0;
}

static void *print_for_ever(void *nobody) {
    while (1) print_much(nobody);
    return nobody;
}

static int endless_output(void) {
    both(print_for_ever, nothing);
    return 0;
}

/* A process that has its own session and no parent. */
static void *start_daemon(void *nobody) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        while (1) pause();
    }
    waitpid(child, &status, 0);
    return nobody;
}

static int daemons(void) {
    pthread_join(start(start_daemon, NULL), NULL);
    printf("started");
    return 0;
}

static int daemon_and_spin(void) {
    pthread_join(start(start_daemon, NULL), NULL);
    spin_here(NULL);
    return 0;
}

static void close_all(void) {
    for (int i = 0; i < 1024; i++) close(i);
    close_range(3, ~0U, 0);
    closefrom(0);
    dup2(open("/dev/null", O_RDWR), 199);
}

static void *close_in_thread(void *nobody) {
    close_all();
    return add(nobody);
}

static int closes(void) {
    both(close_in_thread, add);
    return counter == 2 ? 0 : 93;
}

static int closes_early(void) {
    close_all();
    both(add, add);
    return counter == 2 ? 0 : 93;
}

static void *move_away(void *nobody) {
    if (chdir("/") != 0) abort();
    return add(nobody);
}

static int moves(void) {
    both(move_away, add);
    printf("%d", counter);
    return 0;
}

static int moves_early(void) {
    move_away(NULL);
    both(add, add);
    printf("%d", counter);
    return 0;
}

static void drop(void) {
    if (getuid() == 0 && (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0)) abort();
}

static void *drop_and_add(void *nobody) {
    drop();
    return add(nobody);
}

static int drops(void) {
    both(drop_and_add, add);
    printf("%d %d", getuid() != 0, counter);
    return 0;
}

static int early_file;
static char line[4];

static void *read_early_file(void *nobody) {
    read(early_file, line, 3);
    return nobody;
}

/* Becomes another before there are threads; a file from before is still read from its start in every run. */
static int drops_early(void) {
    early_file = open("/proc/version", O_RDONLY);
    drop();
    both(read_early_file, nothing);
    printf("%d %s", getuid() != 0, line);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(thousand);
    SCENARIO(events);
    SCENARIO(spinning);
    SCENARIO(ten_megabytes);
    SCENARIO(endless_output);
    SCENARIO(daemons);
    SCENARIO(daemon_and_spin);
    SCENARIO(closes);
    SCENARIO(closes_early);
    SCENARIO(moves);
    SCENARIO(moves_early);
    SCENARIO(drops);
    SCENARIO(drops_early);
    return 91;
}
