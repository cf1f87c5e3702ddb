/*
 * A growable character buffer in the manner of JDK 1.4, each of whose methods
 * locks the buffer. One thread appends a shared buffer to a private one while
 * another replaces the shared text by a shorter one.
 *
 * The bug: append_buffer asks the other buffer for its length and then for its
 * characters, in two critical sections. If the text is deleted between them,
 * the range asked for no longer exists. There is no data race in it. The fix
 * reads the length and the characters under one hold of the other's lock.
 *
 * Published: PECAN, 3 threads, 86 events, 1 AV, real; schedules to the bug:
 * PERIOD 12-27, POS 18, RFF 15, PCT3 195, SURW 8, Q-learning 1405.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sizes.h"

enum { MAX_ROUNDS = 1000 };

struct string_buffer {
    pthread_mutex_t lock;
    int count;
    int capacity;
    char *chars;
};

static struct string_buffer shared = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct string_buffer private = {.lock = PTHREAD_MUTEX_INITIALIZER};
static int rounds;

/* The caller holds the lock, here and in copy_range. */
static void reserve(struct string_buffer *buffer, int capacity) {
    if (capacity > buffer->capacity) {
        buffer->chars = realloc(buffer->chars, (size_t)capacity);
        if (buffer->chars == NULL) {
            abort();
        }
        buffer->capacity = capacity;
    }
}

static void copy_range(const struct string_buffer *buffer, int begin, int end, char *to) {
    assert(end <= buffer->count);
    memcpy(to, buffer->chars + begin, (size_t)(end - begin));
}

static int get_length(struct string_buffer *buffer) {
    pthread_mutex_lock(&buffer->lock);
    int count = buffer->count;
    pthread_mutex_unlock(&buffer->lock);
    return count;
}

static void delete_range(struct string_buffer *buffer, int begin, int end) {
    pthread_mutex_lock(&buffer->lock);
    memmove(buffer->chars + begin, buffer->chars + end, (size_t)(buffer->count - end));
    buffer->count -= end - begin;
    pthread_mutex_unlock(&buffer->lock);
}

static void append_text(struct string_buffer *buffer, const char *text) {
    int count = (int)strlen(text);
    pthread_mutex_lock(&buffer->lock);
    reserve(buffer, buffer->count + count);
    memcpy(buffer->chars + buffer->count, text, (size_t)count);
    buffer->count += count;
    pthread_mutex_unlock(&buffer->lock);
}

#ifdef FIXED
static void append_buffer(struct string_buffer *self, struct string_buffer *other) {
    pthread_mutex_lock(&self->lock);
    pthread_mutex_lock(&other->lock);
    int count = other->count;
    reserve(self, self->count + count);
    copy_range(other, 0, count, self->chars + self->count);
    pthread_mutex_unlock(&other->lock);
    self->count += count;
    pthread_mutex_unlock(&self->lock);
}
#else
static void get_chars(struct string_buffer *buffer, int begin, int end, char *to) {
    pthread_mutex_lock(&buffer->lock);
    copy_range(buffer, begin, end, to);
    pthread_mutex_unlock(&buffer->lock);
}

static void append_buffer(struct string_buffer *self, struct string_buffer *other) {
    pthread_mutex_lock(&self->lock);
    int count = get_length(other);
    reserve(self, self->count + count);
    get_chars(other, 0, count, self->chars + self->count);
    self->count += count;
    pthread_mutex_unlock(&self->lock);
}
#endif

static void *collector(void *unused) {
    for (int i = 0; i < rounds; i++) {
        append_buffer(&private, &shared);
    }
    return unused;
}

/* The only thread that changes the shared buffer, so its length cannot be outdated here. */
static void *editor(void *unused) {
    for (int i = 0; i < rounds; i++) {
        delete_range(&shared, 0, get_length(&shared));
        append_text(&shared, "x");
    }
    return unused;
}

int main(int argc, char **argv) {
    struct size sizes[] = {{"rounds", 1, 1, MAX_ROUNDS}};
    read_sizes(argc, argv, sizes, 1);
    rounds = sizes[0].value;

    pthread_t threads[2];
    append_text(&shared, "abc");
    pthread_create(&threads[0], NULL, collector, NULL);
    pthread_create(&threads[1], NULL, editor, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    free(private.chars);
    free(shared.chars);
    return 0;
}
