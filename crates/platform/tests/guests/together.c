// A guest installs a filter for all its threads while they make calls: it allows only the guest's own calls after that.
// One thread waits long meanwhile, in a call with a signal set.
#include "guest.h"
#include "filter.h"
#include <poll.h>

enum { THREADS = 4, CALLS = 3000 };
static volatile int asked[THREADS], has_begun, is_confined, is_done[THREADS + 1];
static int ends[2];

static void confine(void) {
    const int allowed[] = {SYS_getpriority, SYS_write, SYS_exit_group, SYS_rt_sigreturn, SYS_ppoll,
                           // A waiting call that was interrupted.
                           SYS_restart_syscall,
                           // The number that a filter sees for a call skipped at its entry, on the platform
                           // ptrace-syscall.
                           -1};
    CHECK(allow_only(allowed, sizeof allowed / sizeof *allowed, 1) == 0);
}

static void *call_often(void *number) {
    int own = (int)(intptr_t)number;
    while (!is_confined)
        ask((uint64_t)asked[own]++);
    for (int i = 0; i < CALLS; i++)
        ask((uint64_t)i);
    is_done[own] = 1;
    wait_for_ever();
    return number;
}

static void *wait_for_long(void *nothing) {
    sigset_t none;
    sigemptyset(&none);
    struct pollfd fd = {ends[0], POLLIN, 0};
    has_begun = 1;
    CHECK(ppoll(&fd, 1, NULL, &none) == 1);
    ask(5);
    is_done[THREADS] = 1;
    wait_for_ever();
    return nothing;
}

int main(void) {
    pthread_t thread;
    CHECK(pipe(ends) == 0);
    CHECK(pthread_create(&thread, NULL, wait_for_long, NULL) == 0);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread, NULL, call_often, (void *)i) == 0);
    // The first calls of a thread aren't allowed by the filter.
    while (!has_begun)
        sched_yield();
    for (int i = 0; i < THREADS; i++)
        while (asked[i] < 100)
            sched_yield();
    confine();
    is_confined = 1;
    CHECK(write(ends[1], "", 1) == 1);
    for (int i = 0; i <= THREADS; i++)
        while (!is_done[i])
            wait_a_moment();
    ask(6);
    _exit(0);
}
