/*
 * The sizes of a subject, read from its command line. Every subject takes its
 * sizes as optional numbers in a fixed order, so that a run without arguments
 * is the smallest one that can show the bug.
 */
#ifndef SUBJECTS_SIZES_H
#define SUBJECTS_SIZES_H

#include <stdio.h>
#include <stdlib.h>

struct size {
    const char *name;
    int value; /* the default, until an argument replaces it */
    int low;
    int high;
};

/* Replaces defaults by arguments, in order; a bad argument ends the program with exit code 2. */
static inline void read_sizes(int argc, char **argv, struct size *sizes, int count) {
    if (argc - 1 > count) {
        fprintf(stderr, "%s: too many arguments: %d given, at most %d used\n", argv[0], argc - 1, count);
        exit(2);
    }
    for (int i = 1; i < argc; i++) {
        struct size *size = &sizes[i - 1];
        char *end;
        long value = strtol(argv[i], &end, 10);
        if (end == argv[i] || *end != '\0' || value < size->low || value > size->high) {
            fprintf(stderr, "%s: %s must be a number from %d to %d, not '%s'\n", argv[0], size->name, size->low,
                    size->high, argv[i]);
            exit(2);
        }
        size->value = (int)value;
    }
}

#endif
