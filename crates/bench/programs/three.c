/* Three threads that each take a lock a few times: what a run costs when the program itself costs little.
   With an argument, forks and runs that many times by itself, as a measure to compare with. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void *add(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        total++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static int run(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return total != THREADS * ROUNDS;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return run();
    for (int i = atoi(argv[1]); i > 0; i--) {
        pid_t child = fork();
        if (child == 0)
            _exit(run());
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return 0;
}
