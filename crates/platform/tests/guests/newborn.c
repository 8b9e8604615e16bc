// A task's first stop is reported before that of its creator, and between the two somebody ends: its creator with it ("thread"), or
// another process ("process"). The supervisor sees to that order by calls of `getpgid`: the first tells it by which descriptor it lets
// others go on, who creates and who asks; the second whom to kill; and the third that only this process is left.
#include "guest.h"
#include "filter.h"

static int begun[2], ends[2];

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

static void create(int is_thread) {
    wait_to_go_on();
    if (is_thread) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, wait_forever, NULL) == 0);
        wait_for_ever();
    }
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
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
    int status;
    CHECK(pipe(begun) == 0 && pipe(ends) == 0);
    ask_often();
    pid_t creator = fork();
    CHECK(creator >= 0);
    if (creator == 0)
        create(is_thread);
    pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0)
        wait_for_ever();
    // Of tasks that have stopped, the youngest is reported first.
    pid_t asks = fork();
    CHECK(asks >= 0);
    if (asks == 0) {
        wait_to_go_on();
        CHECK(call6(SYS_getpgid, 2, is_thread ? creator : other, 0, 0, 0, 0) == 2);
        _exit(0);
    }
    // From here on neither needs its tracer before it has done its part.
    char byte;
    for (int i = 0; i < 2; i++)
        CHECK(read(begun[0], &byte, 1) == 1);
    CHECK(call6(SYS_getpgid, 1, (uint64_t)ends[1], creator, asks, 0, 0) == 1);
    CHECK(waitpid(asks, &status, 0) == asks && status == 0);
    CHECK(waitpid(creator, &status, 0) == creator && status == (is_thread ? SIGKILL : 0));
    if (is_thread)
        CHECK(kill(other, SIGKILL) == 0);
    CHECK(waitpid(other, &status, 0) == other && status == SIGKILL);
    CHECK(call6(SYS_getpgid, 3, 0, 0, 0, 0, 0) == 3);
    _exit(0);
}
