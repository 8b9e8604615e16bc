// Children by fork and vfork that make calls, and end in all ways.
#include "guest.h"

static int status_of(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static int memory = 1;

// Uses more of the stack than the caller of vfork had.
static int __attribute__((noinline)) use_stack(int depth) {
    volatile char bytes[500];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i + (unsigned)depth);
    return depth ? use_stack(depth - 1) + bytes[depth] : bytes[7];
}

static void *fork_in_thread(void *unused) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        ask(7);
        _exit(9);
    }
    CHECK(WEXITSTATUS(status_of(child)) == 9);
    return unused;
}

int main(void) {
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            memory = 2;
            ask((uint64_t)i);
            CHECK(getppid() > 0);
            _exit(i);
        }
        ask(100);
        int status = status_of(child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i && memory == 1);
    }
    pid_t killed = fork();
    CHECK(killed >= 0);
    if (killed == 0) {
        raise(SIGUSR1);
        _exit(0);
    }
    int status = status_of(killed);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    volatile int shared = 1;
    pid_t borrowed = vfork();
    CHECK(borrowed >= 0);
    if (borrowed == 0) {
        shared = 2 + 0 * use_stack(20);
        call6(SYS_getpgid, 5, 0, 0, 0, 0, 0);
        _exit(4);
    }
    CHECK(shared == 2 && WEXITSTATUS(status_of(borrowed)) == 4);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fork_in_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
}
