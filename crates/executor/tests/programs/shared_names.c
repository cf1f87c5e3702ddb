// Memory and semaphores that outlive their process, unless somebody removes their names.
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "scenario.h"

static const char *name;

static void *make(void *unused) {
    char directory[] = "/tmp/threadbare-test-XXXXXX";
    int fresh = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600) >= 0;
    int counted = sem_open(name, O_CREAT | O_EXCL, 0600, 1) != SEM_FAILED;
    printf("%d %d %d", fresh, counted, mkdtemp(directory) != 0);
    fflush(stdout);
    return unused;
}

int main(int argc, char **argv) {
    name = argv[argc - 1];
    pthread_join(start(make, NULL), NULL);
    return 0;
}
