/* A library that the program is linked with; instrumented like the program itself. */
#include <pthread.h>

int library_counter;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void library_increment(void) {
    library_counter = library_counter + 1;
}

void library_increment_locked(void) {
    pthread_mutex_lock(&mutex);
    library_increment();
    pthread_mutex_unlock(&mutex);
}
