// Each scenario fails on its line, in a thread of its own, while another thread waits elsewhere.
#include <atomic>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

static char *volatile wild = (char *)0x10;
static void *volatile null;
static volatile size_t count = 100;
static char buffer[1000];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
struct Shape {
    virtual int area() { return 1; }
};
static int wild_compare(const void *, const void *) {
    return *(volatile int *)wild; // callback
}

// What fails there, by the name of the scenario.
static void fail(const std::string &scenario) {
    auto is = [&](const char *name) { return scenario == name; };
    if (is("read")) count = *(int *)wild; // read
    if (is("write")) *wild = 1; // write
    if (is("atomic_load")) count = ((std::atomic<long> *)wild)->load(); // atomic_load
    if (is("atomic_rmw")) ((std::atomic<int> *)null)->fetch_add(1); // atomic_rmw
    if (is("memcpy")) memcpy(buffer, wild, count); // memcpy
    if (is("memmove")) memmove(wild, buffer, count); // memmove
    if (is("memset")) memset(wild, 0, count); // memset
    if (is("strlen")) count = strlen(wild); // strlen
    if (is("strcpy")) strcpy(buffer, wild); // strcpy
    if (is("strcmp")) count = strcmp(wild, buffer); // strcmp
    if (is("memchr")) count = (size_t)memchr(wild, 3, count); // memchr
    if (is("mutex_lock")) pthread_mutex_lock((pthread_mutex_t *)null); // mutex_lock
    if (is("mutex_unlock")) pthread_mutex_unlock((pthread_mutex_t *)wild); // mutex_unlock
    if (is("mutex_destroy")) pthread_mutex_destroy((pthread_mutex_t *)null); // mutex_destroy
    if (is("timedlock")) pthread_mutex_timedlock(&mutex, (timespec *)wild); // timedlock
    if (is("cond_wait")) pthread_cond_wait((pthread_cond_t *)null, &mutex); // cond_wait
    if (is("sem_post")) sem_post((sem_t *)null); // sem_post
    if (is("barrier")) pthread_barrier_wait((pthread_barrier_t *)null); // barrier
    if (is("rdlock")) pthread_rwlock_rdlock((pthread_rwlock_t *)null); // rdlock
    if (is("once")) pthread_once((pthread_once_t *)null, [] {}); // once
    if (is("create")) pthread_create((pthread_t *)null, nullptr, nullptr, nullptr); // create
    if (is("free")) free(wild); // free
    if (is("callback")) qsort(buffer, 2, sizeof(int), wild_compare);
    if (is("printf")) printf("%s\n", wild); // printf
    if (is("strtol")) count = strtol(wild, nullptr, 10); // strtol
    if (is("wild_call")) ((void (*)())wild)(); // wild_call
    if (is("wild_object")) count = ((Shape *)wild)->area(); // wild_object
    if (is("bad_table")) *(void **)buffer = wild, count = ((Shape *)buffer)->area(); // bad_table
    if (is("divide")) count = (int)count / (int)(size_t)null; // divide
    if (is("abort")) abort(); // abort
    if (is("raise")) raise(SIGSEGV); // raise
    if (is("assertion")) assert(count == 1); // assertion
    if (is("exception")) throw std::runtime_error("thrown"); // exception
    if (is("exit_code")) exit(3); // exit_code
    if (is("exit_now")) _exit(3); // exit_now
}

static void *run(void *scenario) {
    fail(*(std::string *)scenario);
    return nullptr;
}

static void *wait(void *) {
    pthread_mutex_lock(&mutex);
    usleep(1);
    pthread_mutex_unlock(&mutex);
    return nullptr;
}

int main(int, char **arguments) {
    static std::string scenario;
    scenario = arguments[1];
    pthread_t failing, waiting;
    pthread_create(&waiting, nullptr, wait, nullptr);
    pthread_create(&failing, nullptr, run, &scenario);
    pthread_join(failing, nullptr);
    pthread_join(waiting, nullptr);
}
