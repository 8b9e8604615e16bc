// A guest's own filter sends SIGSYS with the default action: the process with the filter dies, and no other.
#include "guest.h"

#include "filter.h"

static void trap_geteuid(void) {
    struct sock_filter insns[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_geteuid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, insns};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static int in_child(int ignores) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (ignores)
            signal(SIGSYS, SIG_IGN);
        trap_geteuid();
        call6(SYS_geteuid, 0, 0, 0, 0, 0, 0);
        _exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

int main(void) {
    ask(1);
    for (int ignores = 0; ignores < 2; ignores++) {
        int status = in_child(ignores);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    }
    ask(2);
    // A child with this process's handler, which gets the signal from another process.
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        for (;;)
            pause();
    int status;
    CHECK(kill(child, SIGSYS) == 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    ask(3);
}
