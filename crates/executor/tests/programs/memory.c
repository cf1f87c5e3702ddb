#include "scenario.h"
#include <malloc.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/mman.h>

static char shared[64], other[64];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int order;

/* A small random sequence of its own for each thread. */
static unsigned next(unsigned *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

static void check(const unsigned char *block, unsigned char byte, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (block[i] != byte) abort();
}

/* Keeps 32 blocks of all kinds and sizes, each filled with a byte of its own. */
static void *churn(void *seed) {
    unsigned state = (unsigned)(uintptr_t)seed;
    struct {
        unsigned char *start, byte;
        size_t size;
    } blocks[32] = {0};
    for (int i = 0; i < 400; i++) {
        unsigned at = next(&state) % 32;
        size_t size = next(&state) % (i % 50 == 0 ? 200000 : 500);
        unsigned char *start = blocks[at].start;
        if (start) check(start, blocks[at].byte, blocks[at].size);
        switch (next(&state) % 5) {
        case 0:
            free(start);
            start = malloc(size);
            break;
        case 1:
            free(start);
            start = calloc(size, 1);
            check(start, 0, size);
            break;
        case 2:
            free(start);
            start = aligned_alloc(256, (size + 255) / 256 * 256);
            if ((uintptr_t)start % 256 != 0) abort();
            break;
        case 3:
            free(start);
            if (posix_memalign((void **)&start, 64, size) != 0 || (uintptr_t)start % 64 != 0) abort();
            break;
        default:
            size++;
            start = realloc(start, size);
            if (blocks[at].start) check(start, blocks[at].byte, size < blocks[at].size ? size : blocks[at].size);
        }
        if (malloc_usable_size(start) < size || (uintptr_t)start % 16 != 0) abort();
        memset(start, i, size);
        blocks[at].start = start;
        blocks[at].byte = i;
        blocks[at].size = size;
        if (i % 40 == 0) sched_yield();
    }
    for (int i = 0; i < 32; i++) free(blocks[i].start);
    return NULL;
}

static int blocks(void) {
    pthread_t one = start(churn, (void *)1), two = start(churn, (void *)2);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    free(strdup("libc allocates too"));
    free(NULL);
    puts("intact");
    return 0;
}

static void *fill(void *nobody) {
    memset(shared, 'x', 32);
    memcpy(shared + 32, shared, 16);
    memmove(shared + 8, shared, 32);
    return nobody;
}

static void *read_all(void *nobody) {
    memcpy(other, shared, 64);
    return nobody;
}

static int copies(void) {
    both(fill, read_all);
    printf("%c%c\n", other[0] ? other[0] : '-', other[47] ? other[47] : '-');
    return 0;
}

static int overlapping(void) {
    pthread_join(start(nothing, NULL), NULL);
    char text[100] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", copy[100];
    for (int length = 0; length < 40; length++)
        for (int to = 0; to < 12; to++)
            for (int from = 0; from < 12; from++) {
                memcpy(copy, text, 100);
                memmove(copy + to, copy + from, length);
                for (int i = 0; i < 60; i++)
                    if (copy[i] != (i >= to && i < to + length ? text[i - to + from] : text[i])) abort();
            }
    puts("right");
    return 0;
}

static void *print_lines(void *letter) {
    for (int i = 0; i < 2; i++) {
        printf("%c%c%c\n", *(char *)letter, *(char *)letter, *(char *)letter);
        sched_yield();
    }
    return NULL;
}

/* Lines from several threads are never torn. */
static int printing(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    pthread_t x = start(print_lines, "x"), y = start(print_lines, "y");
    pthread_join(x, NULL);
    pthread_join(y, NULL);
    return 0;
}

static void *jump(void *nobody) {
    jmp_buf place;
    volatile int count = 0;
    if (setjmp(place) < 3) {
        pthread_mutex_lock(&mutex);
        count++;
        order++;
        pthread_mutex_unlock(&mutex);
        longjmp(place, count);
    }
    if (count != 3) abort();
    return nobody;
}

static int jumps(void) {
    both(jump, jump);
    printf("%d\n", order);
    return 0;
}

static int compare(const void *a, const void *b) {
    __atomic_add_fetch(&order, 1, __ATOMIC_SEQ_CST);
    return *(const int *)a - *(const int *)b;
}

static void *sort(void *nobody) {
    int numbers[8] = {5, 3, 8, 1, 7, 2, 6, 4};
    qsort(numbers, 8, sizeof(int), compare);
    for (int i = 0; i < 8; i++)
        if (numbers[i] != i + 1) abort();
    int key = 3;
    if (*(int *)bsearch(&key, numbers, 8, sizeof(int), compare) != 3) abort();
    return nobody;
}

static int sorting(void) {
    both(sort, sort);
    puts(order > 0 ? "sorted" : "?");
    return 0;
}

static char *page;

static void *write_page(void *nobody) {
    *page = 1;
    return nobody;
}

/* Memory may go away as soon as it was written to. */
static int guarded(void) {
    char *own = page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_join(start(write_page, NULL), NULL);
    *own = 2;
    mprotect(own, 4096, PROT_NONE);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    mprotect(own, 4096, PROT_READ | PROT_WRITE);
    *own = 3;
    own = mremap(own, 4096, 1 << 20, MREMAP_MAYMOVE);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    printf("%d\n", *own);
    return 0;
}

static volatile size_t length = 64;

static void *copy_all(void *nobody) {
    memcpy(other, shared, length);
    return nobody;
}

static void *fill_all(void *nobody) {
    memset(shared, 'x', length);
    return nobody;
}

static int copy_order(void) {
    both(copy_all, fill_all);
    puts(other[0] == 'x' ? "after" : "before");
    return 0;
}

static int shallow(int depth);
static int (*volatile step)(int) = shallow;
static volatile int *volatile deepest;

static int shallow(int depth) {
    return depth == 0 ? *deepest : step(depth - 1) + 1;
}

static void *recurse(void *depth) {
    deepest = &order;
    return (void *)(long)shallow((long)depth);
}

/* As deep as 8 MiB allow with the smallest frames there are. */
static int deep_recursion(void) {
    void *first, *second;
    pthread_t one = start(recurse, (void *)380000L), two = start(recurse, (void *)380000L);
    pthread_join(one, &first);
    pthread_join(two, &second);
    printf("%ld %ld\n", (long)first, (long)second);
    return 0;
}

static char text[8] = "aa", other_text[] = "bb";

static void *write_text(void *nobody) {
    strcpy(text, other_text);
    return nobody;
}

/* A string is copied as a whole, before or after it changes. */
static int strings(void) {
    pthread_t other = start(write_text, NULL);
    char *copy = strdup(text);
    pthread_join(other, NULL);
    printf("%s %d\n", copy, strcmp(text, "bb"));
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(blocks);
    SCENARIO(copies);
    SCENARIO(strings);
    SCENARIO(overlapping);
    SCENARIO(printing);
    SCENARIO(jumps);
    SCENARIO(sorting);
    SCENARIO(deep_recursion);
    SCENARIO(guarded);
    SCENARIO(copy_order);
    return 91;
}
