/* Programs that handle the signals they would die of. */
#include "scenario.h"
#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static int *volatile null;
static __thread sigjmp_buf out;
static char *page;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int caught;

static void install(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, NULL);
}

static void jump(int signal) {
    siglongjmp(out, signal);
}

static void repair(int signal, siginfo_t *info, void *context) {
    if (info->si_addr == page) mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void reset(int number) {
    signal(number, SIG_DFL);
}

static void raise_again(int number) {
    signal(number, SIG_DFL);
    raise(number);
}

static void note(int signal) {
    write(1, "noted ", 6);
}

static void leave_process(int number) {
    _exit(1);
}

static void crash(int number) {
    *null = 1;
}

static void *fault_here(void *nobody) {
    *null = 1;
    return nobody;
}

static int endless(int depth) {
    volatile char local[1000];
    local[0] = depth;
    return endless(depth + 1) + local[0];
}

static int in_thread(routine_t routine) {
    pthread_join(start(routine, NULL), NULL);
    return 0;
}

static void *fault_twice(void *nobody) {
    for (volatile int i = 0; i < 2; i++)
        if (sigsetjmp(out, 1) == 0) *null = 1;
        else printf("out ");
    return nobody;
}

static int jumps_out(void) {
    install(SIGSEGV, jump, 0);
    return in_thread(fault_twice);
}

static int both_jump_out(void) {
    signal(SIGSEGV, jump);
    both(fault_twice, fault_twice);
    return 0;
}

static void *fault_twice_unsaved(void *nobody) {
    for (volatile int i = 0; i < 2; i++)
        if (sigsetjmp(out, 0) == 0) *null = 1;
        else printf("out ");
    return nobody;
}

/* The signal is still blocked the second time. */
static int jumps_out_once(void) {
    install(SIGSEGV, jump, 0);
    return in_thread(fault_twice_unsaved);
}

static void *write_page(void *nobody) {
    page[0] = 'r';
    putchar(page[0]);
    return nobody;
}

static int repairs(void) {
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    return in_thread(write_page);
}

static int faulting(void (*handler)(int), int flags) {
    install(SIGSEGV, handler, flags);
    return in_thread(fault_here);
}

static int resets(void) { return faulting(reset, 0); }
static int ignored_fault(void) { return faulting(SIG_IGN, 0); }
static int one_shot(void) { return faulting(note, SA_RESETHAND); }
static int raises_again(void) { return faulting(raise_again, 0); }
static int exits(void) { return faulting(leave_process, 0); }
static int crashes_again(void) { return faulting(crash, 0); }

static void *overflow_on_own_stack(void *nobody) {
    stack_t stack = {.ss_sp = malloc(SIGSTKSZ), .ss_size = SIGSTKSZ}, old;
    sigaltstack(&stack, NULL);
    if (sigsetjmp(out, 1) == 0) endless(0);
    sigaltstack(NULL, &old);
    puts(old.ss_sp == stack.ss_sp ? "survived" : "another's stack");
    return nobody;
}

static int own_stack(void) {
    install(SIGSEGV, jump, SA_ONSTACK);
    return in_thread(overflow_on_own_stack);
}

static void *overflow_without(void *nobody) {
    void *memory = malloc(SIGSTKSZ);
    stack_t stack = {.ss_sp = memory, .ss_size = SIGSTKSZ}, none = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    sigaltstack(&none, NULL);
    free(memory);
    endless(0);
    return nobody;
}

static int stack_taken_back(void) {
    return in_thread(overflow_without);
}

static void lock_and_jump(int signal) {
    pthread_mutex_lock(&mutex);
    caught++;
    pthread_mutex_unlock(&mutex);
    siglongjmp(out, 1);
}

static void *fault_on_own_stack(void *nobody) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    for (volatile int i = 0; i < 2; i++)
        if (sigsetjmp(out, 1) == 0) *null = 1;
    return nobody;
}

/* Handlers that other threads run in between. */
static int switches(void) {
    install(SIGSEGV, lock_and_jump, SA_ONSTACK);
    both(fault_on_own_stack, fault_on_own_stack);
    printf("%d", caught);
    return 0;
}

static void *block_and_fault(void *nobody) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    return fault_here(nobody);
}

/* What is blocked is not handled. */
static int blocked(void) {
    install(SIGSEGV, jump, 0);
    return in_thread(block_and_fault);
}

static int is_blocked(int signal) {
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, signal);
}

static void *block_one(void *nobody) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigaddset(&one, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    sched_yield();
    if (!is_blocked(SIGUSR1) || !is_blocked(SIGSEGV)) abort();
    return nobody;
}

static void *block_nothing(void *nobody) {
    sched_yield();
    if (is_blocked(SIGUSR1) || is_blocked(SIGSEGV) || !is_blocked(SIGUSR2)) abort();
    return nobody;
}

/* Each thread has a mask of its own, which begins as that of the one who made it. */
static int masks(void) {
    sigset_t other;
    sigemptyset(&other);
    sigaddset(&other, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &other, NULL);
    both(block_one, block_nothing);
    puts(is_blocked(SIGUSR1) ? "leaked" : "apart");
    return 0;
}

static void *abort_and_go_on(void *nobody) {
    if (sigsetjmp(out, 1) == 0) abort();
    if (sigsetjmp(out, 1) == 0) assert(!"holds");
    puts("survived");
    return nobody;
}

static int aborts(void) {
    install(SIGABRT, jump, 0);
    return in_thread(abort_and_go_on);
}

static void *assert_here(void *nobody) {
    assert(null != NULL);
    return nobody;
}

static int asserts(void) {
    install(SIGABRT, note, 0);
    return in_thread(assert_here);
}

static int ignores(void) {
    signal(SIGTRAP, SIG_IGN);
    in_thread(nothing);
    raise(SIGTRAP);
    puts(signal(SIGTRAP, SIG_DFL) == SIG_IGN ? "ignored" : "?");
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(jumps_out);
    SCENARIO(both_jump_out);
    SCENARIO(jumps_out_once);
    SCENARIO(repairs);
    SCENARIO(resets);
    SCENARIO(ignored_fault);
    SCENARIO(one_shot);
    SCENARIO(raises_again);
    SCENARIO(exits);
    SCENARIO(crashes_again);
    SCENARIO(own_stack);
    SCENARIO(stack_taken_back);
    SCENARIO(switches);
    SCENARIO(blocked);
    SCENARIO(masks);
    SCENARIO(aborts);
    SCENARIO(asserts);
    SCENARIO(ignores);
    return 91;
}
