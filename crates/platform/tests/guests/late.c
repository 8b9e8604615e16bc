// A filter for all threads is installed while one thread waits long for an answer; it allows only the guest's calls
// after that.
#include "guest.h"
#include "filter.h"
#include <stdatomic.h>

enum { OFTEN = 20, LONG_MS = 300 };
static atomic_int stage, waiter;

static int is_running(int tid) {
    char path[64], state = 'R';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *stat = fopen(path, "r");
    CHECK(stat != NULL && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1);
    fclose(stat);
    return state == 'R';
}

// From one site, so that it is patched.
__attribute__((noinline)) static void wait_for_answer(int time_ms) {
    CHECK(call6(SYS_getgid, (uint64_t)time_ms, 0, 0, 0, 0, 0) == 99);
}

static void *wait_long(void *nothing) {
    for (int i = 0; i < OFTEN; i++)
        wait_for_answer(1);
    atomic_store(&waiter, (int)syscall(SYS_gettid));
    atomic_store(&stage, 1);
    wait_for_answer(LONG_MS);
    ask(1);
    atomic_store(&stage, 2);
    wait_for_ever();
    return nothing;
}

// With an argument: the filter is installed by the 32-bit interface.
int main(int argc, char **argv) {
    (void)argv;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_long, NULL) == 0);
    while (atomic_load(&stage) == 0)
        sched_yield();
    while (atomic_load(&stage) == 1 && is_running(atomic_load(&waiter)))
        sched_yield();
    const int allowed[] = {SYS_getpriority, SYS_getgid, SYS_write, SYS_exit_group, SYS_rt_sigreturn, SYS_ppoll, SYS_restart_syscall,
                           // The number that a filter sees for a call skipped at its entry, on the platform
                           // ptrace-syscall.
                           -1};
    CHECK(allow_only(allowed, sizeof allowed / sizeof *allowed, argc > 1 ? FOR_ALL_I386 : FOR_ALL) == 0);
    while (atomic_load(&stage) != 2)
        wait_a_moment();
    ask(2);
    _exit(0);
}
