/*
 * A web spider, after JoBo. The robot goes from page to page until a window
 * tells it to stop, and counts the pages; the window shows the count.
 *
 * It exemplifies, as netmap does, a loop without an end of its own: what counts
 * is whether the window's write comes before the robot's next look, so two test
 * cases are enough where every read of another value counts as a new one
 * elsewhere. The accesses race, but nothing fails. The fix has a lock for both
 * variables. With 0 pages their number is not limited.
 *
 * Published test cases: TPAIR infinitely many, race-equivalent 2.
 */
#include <pthread.h>
#include <stdbool.h>

#include "sizes.h"

enum { MAX_PAGES = 10000 };

/* Volatile so that an optimising compiler, too, loads and stores them for every page. */
static volatile bool stop;
static volatile int visited;
static int pages;

#ifdef FIXED
static pthread_mutex_t robot_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_robot(void) {
    pthread_mutex_lock(&robot_lock);
}

static void unlock_robot(void) {
    pthread_mutex_unlock(&robot_lock);
}
#else
static void lock_robot(void) {
}

static void unlock_robot(void) {
}
#endif

static bool visit_next(void) {
    lock_robot();
    bool go_on = !stop;
    if (go_on) {
        visited += 1;
    }
    unlock_robot();
    return go_on;
}

static void *robot(void *unused) {
    for (int i = 0; pages == 0 || i < pages; i++) {
        if (!visit_next()) {
            break;
        }
    }
    return unused;
}

static void *window(void *shown) {
    lock_robot();
    *(int *)shown = visited;
    stop = true;
    unlock_robot();
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"pages", 2, 0, MAX_PAGES}};
    read_sizes(argc, argv, sizes, 1);
    pages = sizes[0].value;

    int shown;
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, robot, NULL);
    pthread_create(&threads[1], NULL, window, &shown);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
