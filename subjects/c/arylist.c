/*
 * Two array lists, each behind a synchronising wrapper. One thread compares the
 * lists while others add to the second; more threads work on lists of their
 * own. The comparer may fill both lists before it compares them, which takes it
 * further from its start to the bug.
 *
 * The bug: equals locks its receiver and walks over the other list with no lock
 * at all, since an iterator goes past the wrapper. If an element is added
 * meanwhile, the fail-fast iterator fails. The fix, in synchronised.h, compares
 * with a copy that was made under the lock of the other list.
 *
 * Published: guided test, (1,10) found in every trial after 14044 states; by
 * random depth-first search never from (1,8) on.
 */
#include <pthread.h>

#include "array_elements.h"
#include "sizes.h"
#include "synchronised.h"

enum { MAX_ADDERS = 32, MAX_BYSTANDERS = 32, MAX_FILLED = 16, ELEMENTS = 1 };

static struct collection first = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct collection second = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct collection others[MAX_BYSTANDERS];

static void *comparer(void *filled) {
    collection_fill(&first, *(int *)filled);
    collection_fill(&second, *(int *)filled);
    collection_equals(&first, &second);
    return NULL;
}

static void *adder(void *unused) {
    collection_add(&second, ELEMENTS);
    return unused;
}

static void *bystander(void *own) {
    collection_add(own, ELEMENTS);
    return NULL;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"adders", 1, 1, MAX_ADDERS},
                           {"bystanders", 0, 0, MAX_BYSTANDERS},
                           {"filled", 0, 0, MAX_FILLED}};
    read_sizes(argc, argv, sizes, 3);
    int adders = sizes[0].value;
    int bystanders = sizes[1].value;

    collection_fill(&first, ELEMENTS);
    collection_fill(&second, ELEMENTS);
    pthread_t comparer_thread;
    pthread_t adder_threads[MAX_ADDERS];
    pthread_t bystander_threads[MAX_BYSTANDERS];
    pthread_create(&comparer_thread, NULL, comparer, &sizes[2].value);
    for (int i = 0; i < adders; i++) {
        pthread_create(&adder_threads[i], NULL, adder, NULL);
    }
    for (int i = 0; i < bystanders; i++) {
        pthread_mutex_init(&others[i].lock, NULL);
        pthread_create(&bystander_threads[i], NULL, bystander, &others[i]);
    }
    pthread_join(comparer_thread, NULL);
    for (int i = 0; i < adders; i++) {
        pthread_join(adder_threads[i], NULL);
    }
    for (int i = 0; i < bystanders; i++) {
        pthread_join(bystander_threads[i], NULL);
    }
    return 0;
}
