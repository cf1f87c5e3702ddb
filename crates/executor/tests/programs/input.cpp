/* Standard input, read in every way there is. */
#include "scenario.h"
#include <iostream>
#include <string>

static void *by_read(void *) {
    char bytes[100];
    size_t count = 0;
    for (ssize_t got; (got = read(0, bytes + count, 3)) > 0;) count += got;
    printf("%.*s", (int)count, bytes);
    return NULL;
}

static void *by_fgets(void *) {
    char line[100];
    while (fgets(line, sizeof line, stdin)) printf("%s", line);
    return NULL;
}

static void *by_scanf(void *) {
    int number;
    while (scanf("%d", &number) == 1) printf("%d\n", number);
    return NULL;
}

static void *by_cin(void *) {
    for (std::string line; std::getline(std::cin, line);) std::cout << line << std::endl;
    return NULL;
}

static int in_thread(routine_t routine) {
    pthread_join(start(routine, NULL), NULL);
    return 0;
}

static int reading(void) { return in_thread(by_read); }
static int lines(void) { return in_thread(by_fgets); }
static int numbers(void) { return in_thread(by_scanf); }
static int streams(void) { return in_thread(by_cin); }

/* The first line before there are threads, with more of it in the stream's buffer than that. */
static int early(void) {
    char line[100];
    printf("%s", fgets(line, sizeof line, stdin));
    return in_thread(by_fgets);
}

/* The same without a buffer: only the file knows where it stands. */
static int early_unbuffered(void) {
    char line[4] = "";
    printf("%s", read(0, line, 3) == 3 ? line : "?");
    return in_thread(by_read);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *take_line(void *name) {
    char line[100];
    pthread_mutex_lock(&mutex);
    printf("%s%s", (char *)name, fgets(line, sizeof line, stdin));
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Each of two threads takes a line: which one is up to the schedule. */
static int shared(void) {
    pthread_t x = start(take_line, (void *)"x"), y = start(take_line, (void *)"y");
    pthread_join(x, NULL);
    pthread_join(y, NULL);
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(reading);
    SCENARIO(lines);
    SCENARIO(numbers);
    SCENARIO(streams);
    SCENARIO(early);
    SCENARIO(early_unbuffered);
    SCENARIO(shared);
    return 91;
}
