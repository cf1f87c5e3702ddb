// Memory that goes away right after it was written to, in ways other than munmap.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

static char *page;

static void *write_first(void *unused) {
    page[0] = 1;
    return NULL;
}

static void *do_nothing(void *unused) { return NULL; }

static void run(void *(*routine)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, routine, NULL);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    run(write_first);
    page[0] = 2;
    if (!strcmp(argv[1], "mmap_fixed"))
        mmap(page, PAGE, PROT_NONE, flags | MAP_FIXED, -1, 0);
    else if (!strcmp(argv[1], "raw_mmap_fixed"))
        syscall(SYS_mmap, page, PAGE, PROT_NONE, flags | MAP_FIXED, -1, 0);
    else if (!strcmp(argv[1], "raw_munmap"))
        syscall(SYS_munmap, page, PAGE);
    else if (!strcmp(argv[1], "raw_mprotect"))
        syscall(SYS_mprotect, page, PAGE, PROT_NONE);
    run(do_nothing);
    printf("gone");
    return 0;
}
