/*
 * A singly linked list with a header node, to which several builder threads
 * append at the same time.
 *
 * The bug: finding the last node and linking a new one behind it is not
 * atomic. If two builders find the same last node, the second link replaces
 * the first, and a node is missing from the list at the end. The fix holds one
 * lock from the start of the walk until the new node is linked.
 *
 * Published: RankChecker, 3 threads, 23 schedules at (1,all,2,1).
 */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "sizes.h"

enum { MAX_APPENDS = 1000, MAX_BUILDERS = 32 };

struct node {
    int value;
    struct node *next;
};

static struct node header;
static int appends;

#ifdef FIXED
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_list(void) {
    pthread_mutex_lock(&list_lock);
}

static void unlock_list(void) {
    pthread_mutex_unlock(&list_lock);
}
#else
static void lock_list(void) {
}

static void unlock_list(void) {
}
#endif

static struct node *new_node(int value) {
    struct node *node = malloc(sizeof *node);
    if (node == NULL) {
        abort();
    }
    node->value = value;
    node->next = NULL;
    return node;
}

static void add_last(int value) {
    struct node *node = new_node(value);
    lock_list();
    struct node *last = &header;
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = node;
    unlock_list();
}

static void *builder(void *argument) {
    int first_value = (int)(intptr_t)argument;
    for (int i = 0; i < appends; i++) {
        add_last(first_value + i);
    }
    return NULL;
}

static int take_apart(void) {
    int length = 0;
    while (header.next != NULL) {
        struct node *node = header.next;
        header.next = node->next;
        free(node);
        length += 1;
    }
    return length;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"appends", 1, 1, MAX_APPENDS}, {"builders", 2, 1, MAX_BUILDERS}};
    read_sizes(argc, argv, sizes, 2);
    appends = sizes[0].value;
    int builders = sizes[1].value;

    pthread_t threads[MAX_BUILDERS];
    for (int i = 0; i < builders; i++) {
        pthread_create(&threads[i], NULL, builder, (void *)(intptr_t)(i * appends));
    }
    for (int i = 0; i < builders; i++) {
        pthread_join(threads[i], NULL);
    }
    int length = take_apart();
    assert(length == builders * appends);
    return 0;
}
