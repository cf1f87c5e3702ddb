/*
 * A password safe with one entry, a user name and the password that goes with
 * it. One thread replaces the entry; others copy it to log in.
 *
 * The bug is the reader's: it copies the name and the password in two critical
 * sections, while the writer replaces both in one. A replacement in between
 * gives the reader the old name with the new password. There is no data race.
 * The fix copies both in one critical section.
 *
 * Published: CorrRT, 16 threads, 5 high-level races in the whole program, 3
 * found.
 */
#include <assert.h>
#include <pthread.h>

#include "sizes.h"

enum { MAX_READERS = 32, MAX_CHANGES = 1000 };

struct credentials {
    int user;
    int password;
};

static pthread_mutex_t safe_lock = PTHREAD_MUTEX_INITIALIZER;
static struct credentials entry;
static int changes;

/* Names and passwords are numbers here, and the same number if they belong together. */
static void *changer(void *unused) {
    for (int i = 1; i <= changes; i++) {
        pthread_mutex_lock(&safe_lock);
        entry.user = i;
        entry.password = i;
        pthread_mutex_unlock(&safe_lock);
    }
    return unused;
}

static struct credentials copy_entry(void) {
    struct credentials copy;
    pthread_mutex_lock(&safe_lock);
    copy.user = entry.user;
#ifndef FIXED
    pthread_mutex_unlock(&safe_lock);
    pthread_mutex_lock(&safe_lock);
#endif
    copy.password = entry.password;
    pthread_mutex_unlock(&safe_lock);
    return copy;
}

static void *reader(void *unused) {
    struct credentials copy = copy_entry();
    assert(copy.user == copy.password);
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"changes", 1, 1, MAX_CHANGES}, {"readers", 1, 1, MAX_READERS}};
    read_sizes(argc, argv, sizes, 2);
    changes = sizes[0].value;
    int readers = sizes[1].value;

    pthread_t changer_thread;
    pthread_t threads[MAX_READERS];
    pthread_create(&changer_thread, NULL, changer, NULL);
    for (int i = 0; i < readers; i++) {
        pthread_create(&threads[i], NULL, reader, NULL);
    }
    pthread_join(changer_thread, NULL);
    for (int i = 0; i < readers; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
