/*
 * Threads that share one pointer to a player. Each calls a method through the
 * pointer, then takes the player out of it (leaving null) and puts it back.
 *
 * The bug is the time in which the pointer is null: a thread that starts its
 * call between the two stores of another dereferences null and crashes. A
 * thread that copies the null instead stores it for good. The fix makes the
 * whole turn of a thread one critical section.
 *
 * Published: RankChecker, 18 threads, 234 schedules at (1,all,2,1).
 */
#include <pthread.h>

#include "sizes.h"

enum { MAX_THREADS = 100 };

struct player {
    int (*score)(const struct player *self);
    int points;
};

static int score_of_player(const struct player *self) {
    return self->points;
}

static struct player only_player = {score_of_player, 1};
struct player *player = &only_player;

#ifdef FIXED
static pthread_mutex_t player_lock = PTHREAD_MUTEX_INITIALIZER;

static void begin_turn(void) {
    pthread_mutex_lock(&player_lock);
}

static void end_turn(void) {
    pthread_mutex_unlock(&player_lock);
}
#else
static void begin_turn(void) {
}

static void end_turn(void) {
}
#endif

static void *play(void *unused) {
    begin_turn();
    struct player *called = player;
    called->score(called);

    struct player *held = player;
    player = NULL;
    /* Keeps an optimising compiler from dropping the store of null. */
    __asm__ volatile("" ::: "memory");
    player = held;
    end_turn();
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"threads", 2, 2, MAX_THREADS}};
    read_sizes(argc, argv, sizes, 1);
    int count = sizes[0].value;

    pthread_t threads[MAX_THREADS];
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, play, NULL);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
