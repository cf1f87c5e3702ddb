/* Two threads that each write the same variable so many times; what it is at the end is printed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int value;
static int times;

static void *write_often(void *number) {
    for (int i = 0; i < times; i++) {
        value = value * 3 + *(int *)number;
    }
    return NULL;
}

int main(int argc, char **argv) {
    times = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[2];
    static int numbers[2] = {1, 2};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, write_often, &numbers[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d\n", value);
    return 0;
}
