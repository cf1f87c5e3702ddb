/*
 * The screen of a telnet client, after JTelnet. A receiver writes characters at
 * the cursor and moves it on; a painter draws the cursor, for which it reads
 * its column five times.
 *
 * It exemplifies interleavings that change what is read but no branch: the only
 * branch is the receiver's, which wraps a full line, and it depends on the
 * receiver alone. So there is nothing to test though the accesses race. The
 * race causes no failure, only a cursor drawn in two places at once. The fix
 * has a lock for the screen.
 *
 * Published test cases: TPAIR 66, race-equivalent 0.
 */
#include <pthread.h>

#include "sizes.h"

enum { MAX_CHARACTERS = 10000, MAX_REPAINTS = 10000, COLUMNS = 80, CELL = 8 };

/* One cell more than a line has: the cursor may stand behind the last column. */
static char screen[COLUMNS + 1];
static int foreground[COLUMNS + 1];
static int background[COLUMNS + 1];
static int xloc;
static int characters;
static int repaints;
/* Where the painter draws to. Volatile so that an optimising compiler keeps its reads. */
static volatile int drawn;

#ifdef FIXED
static pthread_mutex_t screen_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_screen(void) {
    pthread_mutex_lock(&screen_lock);
}

static void unlock_screen(void) {
    pthread_mutex_unlock(&screen_lock);
}
#else
static void lock_screen(void) {
}

static void unlock_screen(void) {
}
#endif

static void *painter(void *unused) {
    for (int i = 0; i < repaints; i++) {
        lock_screen();
        drawn = background[xloc];
        drawn = 3 + xloc * CELL;
        drawn = foreground[xloc];
        drawn = screen[xloc];
        drawn = 3 * xloc * CELL;
        unlock_screen();
    }
    return unused;
}

static void *receiver(void *unused) {
    for (int i = 0; i < characters; i++) {
        lock_screen();
        if (xloc >= COLUMNS) {
            xloc = 0;
        }
        screen[xloc] = 'x';
        foreground[xloc] = 1;
        background[xloc] = 2;
        xloc += 1;
        unlock_screen();
    }
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"characters", 2, 1, MAX_CHARACTERS}, {"repaints", 2, 1, MAX_REPAINTS}};
    read_sizes(argc, argv, sizes, 2);
    characters = sizes[0].value;
    repaints = sizes[1].value;

    pthread_t threads[2];
    pthread_create(&threads[0], NULL, painter, NULL);
    pthread_create(&threads[1], NULL, receiver, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
