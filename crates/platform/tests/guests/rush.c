// Races between threads: all install a filter for all threads at once, while others set the first signal handlers
// (argument "filters"); a handler leaves another thread's calls by longjmp before a filter is installed for all threads
// ("jumps"); a second thread installs a filter for all threads while the first waits for a third ("second"), which the
// supervisor delays in a `getpgid` of another process, with the number of this process and the address for the
// supervisor's progress; a thread installs a filter for all threads after processes with the same memory have been
// killed ("ended"); or first handlers run in threads that are about to make calls ("handlers").
#include "guest.h"
#include "filter.h"
#include <stdatomic.h>

enum { THREADS = 4, JUMPS = 300, LOCAL = 0x5eed };

static atomic_int ready, is_done;
static atomic_long handled;
static __thread int local = LOCAL;
static __thread sigjmp_buf back;

static void confine(void) {
    const int allowed[] = {SYS_getpriority, SYS_write, SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigaction, SYS_prctl, SYS_seccomp,
                           SYS_ppoll, SYS_restart_syscall, SYS_wait4, SYS_getpid,
                           // The number that a filter sees for a call skipped at its entry, on the platform
                           // ptrace-syscall.
                           -1};
    CHECK(allow_only(allowed, sizeof allowed / sizeof *allowed, 1) == 0);
}

static void meet(int count) {
    atomic_fetch_add(&ready, 1);
    while (atomic_load(&ready) < count)
        ;
}

static void on_signal(int signal) {
    (void)signal;
    CHECK(local == LOCAL);
    atomic_fetch_add(&handled, 1);
}

static void handle(int signal) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK(sigaction(signal, &action, NULL) == 0);
}

static void *install(void *number) {
    int own = (int)(intptr_t)number;
    meet(THREADS + 1);
    if (own % 2)
        handle(SIGUSR1 + own / 2);
    confine();
    for (int i = 0; i < 20; i++)
        ask((uint64_t)i);
    atomic_fetch_add(&is_done, 1);
    wait_for_ever();
    return number;
}

static void jump(int signal) {
    (void)signal;
    CHECK(local == LOCAL);
    siglongjmp(back, 1);
}

static void *be_interrupted(void *number) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    for (volatile int i = 0; i < JUMPS; i++) {
        if (sigsetjmp(back, 1) == 0) {
            CHECK(pthread_sigmask(SIG_UNBLOCK, &mask, NULL) == 0);
            atomic_fetch_add(&ready, 1);
            for (;;)
                ask((uint64_t)i);
        }
    }
    CHECK(pthread_sigmask(SIG_BLOCK, &mask, NULL) == 0);
    atomic_store(&is_done, 1);
    // Without calls until a filter is installed.
    while (atomic_load(&is_done) == 1)
        ;
    ask(3);
    atomic_store(&is_done, 3);
    wait_for_ever();
    return number;
}

static void jumps(void) {
    pthread_t thread;
    struct sigaction action = {.sa_handler = jump};
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &mask, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, be_interrupted, NULL) == 0);
    for (int i = 1; i <= JUMPS; i++) {
        while (atomic_load(&ready) < i)
            ;
        // At an arbitrary point of its calls.
        for (volatile int j = 0; j < i * 7; j++)
            ;
        CHECK(pthread_kill(thread, SIGUSR1) == 0);
    }
    while (!atomic_load(&is_done))
        ;
    confine();
    atomic_store(&is_done, 2);
    while (atomic_load(&is_done) != 3)
        wait_a_moment();
}

// The supervisor's progress: it answers no other call; then a thread also waits for an answer.
static _Atomic uint64_t *steps;
enum { HOLDS = 1, WAITS = 2 };

static void await_step(uint64_t step) {
    while (atomic_load(steps) < step)
        ;
}

static void *ask_first(void *nothing) {
    meet(4);
    await_step(HOLDS);
    ask(5);
    atomic_fetch_add(&is_done, 1);
    wait_for_ever();
    return nothing;
}

// The thread with some calls before is the second to install the filter.
static void *confine_all(void *calls) {
    meet(4);
    await_step(WAITS);
    for (intptr_t i = 0; i < (intptr_t)calls; i++)
        call6(SYS_getpid, 0, 0, 0, 0, 0, 0);
    confine();
    atomic_fetch_add(&is_done, 1);
    wait_for_ever();
    return NULL;
}

static void second(void) {
    enum { CALLS = 200 };
    pthread_t thread;
    int status;
    steps = mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(steps != MAP_FAILED);
    // With a handler, leaving the stub needs a call.
    handle(SIGUSR1);
    CHECK(pthread_create(&thread, NULL, ask_first, NULL) == 0);
    for (intptr_t calls = 0; calls <= CALLS; calls += CALLS)
        CHECK(pthread_create(&thread, NULL, confine_all, (void *)calls) == 0);
    pid_t own = getpid(), holds = fork();
    CHECK(holds >= 0);
    if (holds == 0) {
        CHECK(call6(SYS_getpgid, 1, (uint64_t)own, (uintptr_t)steps, 0, 0, 0) == 1);
        _exit(0);
    }
    meet(4);
    CHECK(waitpid(holds, &status, 0) == holds && status == 0);
    while (atomic_load(&is_done) != 3)
        wait_a_moment();
}

static char of_child[1 << 12];

static int ask_for_ever(void *nothing) {
    for (;;)
        ask((uint64_t)(uintptr_t)nothing);
    return 0;
}

// Processes with shared memory are killed at arbitrary points of their calls.
static void ended(void) {
    enum { TIMES = 60, STACK = 1 << 16, FLAGS = CLONE_VM | CLONE_SETTLS | SIGCHLD };
    void **base = (void **)(of_child + sizeof of_child / 2);
    *base = base;
    for (int i = 0; i < TIMES; i++) {
        char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(stack != MAP_FAILED);
        pid_t child = clone(ask_for_ever, stack + STACK, FLAGS, NULL, NULL, base);
        CHECK(child > 0);
        wait_a_moment();
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
        CHECK(munmap(stack, STACK) == 0);
    }
    confine();
    ask(6);
}

static void *ask_on(void *number) {
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&is_done)) {
        ask((uint64_t)(uintptr_t)number);
        CHECK(local == LOCAL);
    }
    return number;
}

static pthread_t others[THREADS];

static void *signal_others(void *signal) {
    meet(THREADS + 2);
    handle((int)(intptr_t)signal);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_kill(others[i], (int)(intptr_t)signal) == 0);
    return NULL;
}

static void handlers(void) {
    pthread_t threads[2];
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&others[i], NULL, ask_on, (void *)i) == 0);
    for (intptr_t i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, signal_others, (void *)(intptr_t)(i ? SIGUSR1 : SIGUSR2)) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    while (atomic_load(&handled) == 0)
        ask(4);
    atomic_store(&is_done, 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(others[i], NULL) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    pthread_t threads[THREADS];
    switch (argv[1][0]) {
    case 'f':
        for (intptr_t i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, install, (void *)i) == 0);
        meet(THREADS + 1);
        while (atomic_load(&is_done) != THREADS)
            wait_a_moment();
        break;
    case 'j':
        jumps();
        break;
    case 's':
        second();
        break;
    case 'e':
        ended();
        break;
    default:
        handlers();
    }
    _exit(0);
}
