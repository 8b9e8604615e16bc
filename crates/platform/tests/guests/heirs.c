// Attempts to leave the supervisor: no task gets another tracer, and every created task is traced, or its creation
// fails.
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
    // A request has 64 bits; set upper bits make it a different request.
    CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == -1 && errno == EPERM);
    CHECK(call6(SYS_ptrace, 1UL << 32, 0, 0, 0, 0, 0) < 0);
    CHECK(fork_once() == 7);
    // A stub's signals are turned off; a machine's guest can't have any.
    prctl(DISPATCH, 0, 0, 0, 0);
    CHECK(ptrace(PTRACE_TRACEME, 0, 0, 0) == -1 && errno == EPERM);
    CHECK(fork_once() == 7);
    // An unprivileged supervisor can't trace an undumpable process; tasks traced from the beginning continue.
    CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    int code = fork_once();
    CHECK(code == 7 || (code == -1 && errno == EPERM));
    CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
    CHECK(fork_once() == 7);
    ask(2);
}
