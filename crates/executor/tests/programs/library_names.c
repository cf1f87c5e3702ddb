/* A library with functions of its own under names of libc's. */
int send(int value) {
    return value + 1;
}

int accept(int value) {
    return value + 2;
}
