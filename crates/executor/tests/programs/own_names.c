/* A race, in a program that is linked with functions or variables of its own under the names of libc's. It prints
   nothing: `stdout` may be one of them. */
#include <assert.h>
#include <pthread.h>

static int counter;

static void *increment(void *argument) {
    counter = counter + 1;
    return argument;
}

int main(void) {
    pthread_t one, other;
    pthread_create(&one, NULL, increment, NULL);
    pthread_create(&other, NULL, increment, NULL);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    assert(counter == 2);
    return 0;
}
