// What leaves its supervisor: no task has another tracer than it, and what it makes is traced, unless it isn't made.
#include "guest.h"
#include <sys/prctl.h>
#include <sys/ptrace.h>

#define DISPATCH 59

static int is_traced(void) {
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    int tracer = 0;
    CHECK(status);
    while (fgets(line, sizeof line, status))
        sscanf(line, "TracerPid: %d", &tracer);
    fclose(status);
    return tracer != 0;
}

// The child's code, or -1 if there was none.
static int fork_once(void) {
    pid_t child = fork();
    if (child == 0)
        _exit(is_traced() ? 7 : 8);
    if (child < 0)
        return -1;
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(void) {
    ask(1);
    // A request is a number of 64 bits; its upper half makes it another one.
    CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == -1 && errno == EPERM);
    CHECK(call6(SYS_ptrace, 1UL << 32, 0, 0, 0, 0, 0) < 0);
    CHECK(fork_once() == 7);
    // A stub's signals go away; a machine's guest can't have any.
    prctl(DISPATCH, 0, 0, 0, 0);
    CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == -1 && errno == EPERM);
    CHECK(fork_once() == 7);
    // A supervisor without privileges can't trace this; who has been traced from the beginning goes on.
    CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    int code = fork_once();
    CHECK(code == 7 || (code == -1 && errno == EPERM));
    CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
    CHECK(fork_once() == 7);
    ask(2);
}
