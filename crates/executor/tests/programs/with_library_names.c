/* A program that calls the functions of `library_names.c`, and talks over a socket with `write`. */
#include "scenario.h"

extern int send(int value);
extern int accept(int value);
extern int socketpair(int domain, int type, int protocol, int ends[2]);

static int ends[2];

static void *talk(void *argument) {
    if (write(ends[0], "x", send(0)) != 1) abort();
    return argument;
}

static void *listen_to(void *argument) {
    char letter;
    if (read(ends[1], &letter, 1) != 1) abort();
    return argument;
}

static int calls(void) {
    socketpair(1, 1, 0, ends);
    both(talk, listen_to);
    printf("%d %d\n", send(1), accept(1));
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(calls);
    return 2;
}
