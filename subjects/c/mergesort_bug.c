/*
 * A merge sort that gives the left half of a range to a thread if a slot is
 * left for one. The new thread takes the slot when it begins to run and gives
 * it back in the end.
 *
 * The bug: between the parent's look at the slots and the child's taking one,
 * another parent finds the same slot free, and more threads run than there are
 * slots. The number of slots has no lock either, so updates are lost and it
 * drifts. In the fix the parent takes the slot, in one critical section with
 * the look.
 *
 * Published: RankChecker, 29 threads, 89 schedules at (1,all,2,1).
 */
#include <assert.h>
#include <pthread.h>

#include "merging.h"
#include "sizes.h"

enum { MAX_LIMIT = 64 };

struct range {
    int low;
    int high;
};

static int slots;
static int fewest_slots;

static void change_slots(int difference) {
    slots += difference;
    if (slots < fewest_slots) {
        fewest_slots = slots;
    }
}

#ifdef FIXED
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

static bool find_slot(void) {
    pthread_mutex_lock(&slots_lock);
    bool found = slots > 0;
    if (found) {
        change_slots(-1);
    }
    pthread_mutex_unlock(&slots_lock);
    return found;
}

/* The slot was taken by find_slot already. */
static void begin_thread(void) {
}

static void end_thread(void) {
    pthread_mutex_lock(&slots_lock);
    change_slots(1);
    pthread_mutex_unlock(&slots_lock);
}
#else
static bool find_slot(void) {
    return slots > 0;
}

static void begin_thread(void) {
    change_slots(-1);
}

static void end_thread(void) {
    change_slots(1);
}
#endif

static void sort(int low, int high);

static void *sort_in_thread(void *argument) {
    struct range *range = argument;
    begin_thread();
    sort(range->low, range->high);
    end_thread();
    return NULL;
}

static void sort(int low, int high) {
    if (high - low < 2) {
        return;
    }
    int middle = (low + high) / 2;
    struct range left = {low, middle};
    pthread_t thread;
    bool in_thread = find_slot();
    if (in_thread) {
        pthread_create(&thread, NULL, sort_in_thread, &left);
    } else {
        sort(low, middle);
    }
    sort(middle, high);
    if (in_thread) {
        pthread_join(thread, NULL);
    }
    merge(low, middle, high);
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"elements", 3, 3, MAX_ELEMENTS}, {"limit", 2, 2, MAX_LIMIT}};
    read_sizes(argc, argv, sizes, 2);
    int count = sizes[0].value;
    int limit = sizes[1].value;
    slots = limit - 1;
    fewest_slots = slots;

    fill_descending(count);
    sort(0, count);
    assert(fewest_slots >= 0 && slots == limit - 1);
    assert(holds_one_to(count));
    return 0;
}
