/* Two threads add to shared counters, and do something of their own in between:
   `working N W` adds N times in each thread, with W rounds of private work before each. */
#include <pthread.h>
#include <stdlib.h>

static long count, rounds;
static volatile long shared[2];

static void *work(void *unused) {
    volatile long own = 0;
    for (long i = 0; i < count; i++) {
        for (long j = 0; j < rounds; j++)
            own += j;
        shared[i & 1] += own;
    }
    return unused;
}

int main(int argc, char **argv) {
    count = argc > 1 ? atol(argv[1]) : 10;
    rounds = argc > 2 ? atol(argv[2]) : 10;
    pthread_t other;
    pthread_create(&other, NULL, work, NULL);
    work(NULL);
    pthread_join(other, NULL);
    return shared[0] < 0 || shared[1] < 0;
}
