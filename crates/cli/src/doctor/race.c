/* Two threads take the same number, unless they lock. */
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int numbers;

static void *take(void *number) {
#ifdef FIXED
    pthread_mutex_lock(&lock);
#endif
    int next = numbers;
    numbers = next + 1;
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    *(int *)number = next;
    return 0;
}

int main(void) {
    int mine, theirs;
    pthread_t thread;
    pthread_create(&thread, 0, take, &theirs);
    take(&mine);
    pthread_join(thread, 0);
    (void)lock;
    assert(mine != theirs);
}
