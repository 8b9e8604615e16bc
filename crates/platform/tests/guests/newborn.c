// A task's first stop is reported before its creator's stop, and a task ends between the two: the creator with the new
// task ("thread"), the creator alone, with the new task reparented to the creator's running parent ("orphan"), or
// another process ("process"). The supervisor controls the order by calls of `getpgid`: the first has the descriptor
// for continuing the others, the creator and the caller of the second; the second has the process to kill; and the
// third has the number of remaining tasks.
#include "guest.h"
#include "filter.h"

static int begun[2], ends[2];
static volatile int *has_run;

// A thread without events for the tracer.
static void *run_meanwhile(void *nothing) {
    while (!*has_run)
        ;
    wait_for_ever();
    return nothing;
}

static void *wait_forever(void *nothing) {
    wait_for_ever();
    return nothing;
}

static __attribute__((noinline)) void ask_often(void) {
    for (uint64_t i = 0; i < 100; i++)
        ask(i);
}

static void wait_to_go_on(void) {
    char byte;
    CHECK(write(begun[1], "b", 1) == 1);
    CHECK(read(ends[0], &byte, 1) == 1);
}

static void create(int is_thread, int is_orphan) {
    wait_to_go_on();
    if (is_thread) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, wait_forever, NULL) == 0);
        wait_for_ever();
    }
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0 && is_orphan) {
        *has_run = 1;
        _exit(0);
    }
    if (child == 0) {
        const int allowed[] = {SYS_getpriority, SYS_exit_group};
        CHECK(allow_only(allowed, sizeof allowed / sizeof *allowed, 0) == 0);
        ask_often();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    _exit(0);
}

int main(int argc, char **argv) {
    const int is_thread = argc > 1 && strcmp(argv[1], "thread") == 0;
    const int is_orphan = argc > 1 && strcmp(argv[1], "orphan") == 0;
    const int is_killed = is_thread || is_orphan;
    int status;
    has_run = mmap(NULL, sizeof *has_run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(has_run != MAP_FAILED);
    CHECK(pipe(begun) == 0 && pipe(ends) == 0);
    ask_often();
    pid_t creator = fork();
    CHECK(creator >= 0);
    if (creator == 0)
        create(is_thread, is_orphan);
    pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0)
        wait_for_ever();
    // The youngest stopped task is reported first.
    pid_t asks = fork();
    CHECK(asks >= 0);
    if (asks == 0) {
        wait_to_go_on();
        CHECK(call6(SYS_getpgid, 2, is_killed ? creator : other, 0, 0, 0, 0) == 2);
        _exit(0);
    }
    if (is_orphan) {
        pthread_t thread;
        CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
        CHECK(pthread_create(&thread, NULL, run_meanwhile, NULL) == 0);
    }
    // From here on neither process needs its tracer before its part is done.
    char byte;
    for (int i = 0; i < 2; i++)
        CHECK(read(begun[0], &byte, 1) == 1);
    CHECK(call6(SYS_getpgid, 1, (uint64_t)ends[1], creator, asks, 0, 0) == 1);
    CHECK(waitpid(asks, &status, 0) == asks && status == 0);
    CHECK(waitpid(creator, &status, 0) == creator && status == (is_killed ? SIGKILL : 0));
    if (is_orphan)
        CHECK(waitpid(-1, &status, __WALL) > 0 && status == 0);
    if (is_killed)
        CHECK(kill(other, SIGKILL) == 0);
    CHECK(waitpid(other, &status, 0) == other && status == SIGKILL);
    CHECK(call6(SYS_getpgid, 3, is_orphan ? 2 : 1, 0, 0, 0, 0) == 3);
    _exit(0);
}
