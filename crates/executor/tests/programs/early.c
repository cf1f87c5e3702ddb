// What goes too far before the first thread.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "scenario.h"


int main(int argc, char **argv) {
    const char *what = argv[argc - 1];
    // A block at a time, for as long as there is any.
    if (!strcmp(what, "allocates"))
        for (;;) memset(malloc(1 << 24), 1, 1 << 24);
    if (!strcmp(what, "children_allocate")) {
        for (int i = 0; i < 8; i++) {
            if (fork() != 0) continue;
            memset(malloc(100 << 20), 1, 100 << 20);
            for (;;) pause();
        }
        while (wait(0) > 0) {}
    }
    if (!strcmp(what, "forks"))
        for (;;) {
            if (fork() == 0)
                for (;;) pause();
            usleep(1000);
        }
    if (!strcmp(what, "prints"))
        for (;;) fwrite(letters, 1, sizeof letters, stdout);
    if (!strcmp(what, "spins"))
        for (volatile int i = 0;;) i = 1;
    pthread_join(start(nothing, NULL), NULL);
    return 0;
}
