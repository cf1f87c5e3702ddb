/* Threads that access memory here and there, and say so: whoever reads it can tell what is shared. */
#include "scenario.h"

#include <stdint.h>

enum { THREADS = 4, ACCESSES = 150, AREAS = 8, AREA = 1 << 16, AREA_USED = 48, BLOCK = 64 };

static unsigned char field[AREAS * AREA];
static unsigned char *block;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned seed;

static void access_bytes(unsigned char *at, int size, int write) {
    unsigned char copy[16];
    switch (write ? -size : size) {
    case 1: (void)*(volatile uint8_t *)at; break;
    case 2: (void)*(volatile uint16_t *)at; break;
    case 4: (void)*(volatile uint32_t *)at; break;
    case 8: (void)*(volatile uint64_t *)at; break;
    case -1: *(volatile uint8_t *)at = 1; break;
    case -2: *(volatile uint16_t *)at = 1; break;
    case -4: *(volatile uint32_t *)at = 1; break;
    case -8: *(volatile uint64_t *)at = 1; break;
    case 13: memcpy(copy, at, size); break;
    case -13: memset(at, 1, size); break;
    }
}

static void *accesses(void *argument) {
    static const int sizes[] = {1, 2, 4, 8, 13};
    int thread = (int)(intptr_t)argument;
    unsigned random = seed * THREADS + thread;
    for (int i = 0; i < ACCESSES; i++) {
        int size = sizes[rand_r(&random) % 5], write = rand_r(&random) % 4 == 0;
        pthread_mutex_lock(&mutex);
        if (rand_r(&random) % 16 == 0) {
            free(block);
            /* What was freed is handed out again once that is many bytes. */
            if (thread == 0) free(malloc(100 << 20));
            block = malloc(BLOCK);
            printf("renew %d\n", thread);
        } else if (rand_r(&random) % 3 == 0) {
            int offset = rand_r(&random) % (BLOCK - size);
            access_bytes(block + offset, size, write);
            printf("block %d %d %d %d\n", thread, offset, size, write);
        } else {
            int offset = rand_r(&random) % AREAS * AREA + rand_r(&random) % (AREA_USED - size);
            access_bytes(field + offset, size, write);
            printf("field %d %d %d %d\n", thread, offset, size, write);
        }
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(int argc, char **argv) {
    seed = argc > 1 ? atoi(argv[1]) : 0;
    printf("%lu\n", (unsigned long)field);
    /* Before there are threads, nothing is shared. */
    memset(field, 0, sizeof field);
    block = malloc(BLOCK);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) threads[i] = start(accesses, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}
