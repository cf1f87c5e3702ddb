/*
 * Steps that have nothing to do with the bug of a subject. They put a distance
 * between the start of one thread and that of the next, as the start of a
 * thread does in a model checker that takes it in several steps.
 */
#ifndef SUBJECTS_STEPS_H
#define SUBJECTS_STEPS_H

#include <stdatomic.h>

/* An optional size of a subject: it takes no such steps unless it is told to. */
#define STEPS {"steps", 0, 0, 16}

static inline void take_steps(int count) {
    static atomic_int taken;
    for (int i = 0; i < count; i++) {
        atomic_fetch_add(&taken, 1);
    }
}

#endif
