// A sleep that job control stops continues: the kernel makes it `restart_syscall`.
#include "guest.h"

int main(void) {
    pid_t sleeper = fork();
    CHECK(sleeper >= 0);
    if (sleeper == 0) {
        struct timespec time = {0, 100000000}, start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        CHECK(nanosleep(&time, NULL) == 0);
        clock_gettime(CLOCK_MONOTONIC, &end);
        int64_t ns = (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec;
        _exit(ns >= 100000000 ? 21 : 22);
    }
    int status;
    for (int i = 0; i < 3; i++) {
        ask((uint64_t)i);
        CHECK(kill(sleeper, SIGSTOP) == 0);
        CHECK(waitpid(sleeper, &status, WUNTRACED) == sleeper && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
        CHECK(kill(sleeper, SIGCONT) == 0);
        CHECK(waitpid(sleeper, &status, WCONTINUED) == sleeper && WIFCONTINUED(status));
    }
    CHECK(waitpid(sleeper, &status, 0) == sleeper && WIFEXITED(status) && WEXITSTATUS(status) == 21);
}
