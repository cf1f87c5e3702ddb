/*
 * A petri dish in which bugs move from cell to cell while an observer counts
 * them. The number of bugs is also kept in a variable.
 *
 * The bug in the program: a move leaves the old cell in one critical section
 * and enters the new one in another. An observer who counts in between misses
 * the one that moves. There is no data race. The fix moves in one critical
 * section.
 *
 * Published: CorrRT, 7 threads, 2 high-level races in the whole program, both
 * found.
 */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

#include "sizes.h"

enum { MAX_BUGS = 32, MAX_MOVES = 1000, CELLS = 2 };

static pthread_mutex_t dish_lock = PTHREAD_MUTEX_INITIALIZER;
static int bugs_in_cell[CELLS];
static int population;
static int moves_each;

static void move_bug(int from, int to) {
    pthread_mutex_lock(&dish_lock);
    bugs_in_cell[from] -= 1;
#ifndef FIXED
    pthread_mutex_unlock(&dish_lock);
    pthread_mutex_lock(&dish_lock);
#endif
    bugs_in_cell[to] += 1;
    pthread_mutex_unlock(&dish_lock);
}

static void *live(void *argument) {
    int cell = (int)(intptr_t)argument;
    for (int i = 0; i < moves_each; i++) {
        int next = (cell + 1) % CELLS;
        move_bug(cell, next);
        cell = next;
    }
    return NULL;
}

static void *observe(void *unused) {
    int counted = 0;
    pthread_mutex_lock(&dish_lock);
    for (int i = 0; i < CELLS; i++) {
        counted += bugs_in_cell[i];
    }
    assert(counted == population);
    pthread_mutex_unlock(&dish_lock);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"bugs", 1, 1, MAX_BUGS}, {"moves", 1, 1, MAX_MOVES}};
    read_sizes(argc, argv, sizes, 2);
    population = sizes[0].value;
    moves_each = sizes[1].value;

    pthread_t observer;
    pthread_t threads[MAX_BUGS];
    for (int i = 0; i < population; i++) {
        bugs_in_cell[i % CELLS] += 1;
    }
    for (int i = 0; i < population; i++) {
        pthread_create(&threads[i], NULL, live, (void *)(intptr_t)(i % CELLS));
    }
    pthread_create(&observer, NULL, observe, NULL);
    for (int i = 0; i < population; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_join(observer, NULL);
    return 0;
}
