// The guest's own handler for SIGSYS: for sent signals, and for its own filter, with a handler that sets the call's
// result.
#include "guest.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

// si_code of a filter: SYS_SECCOMP, which not all C libraries name.
#define BY_FILTER 1

static volatile sig_atomic_t count, code, data, nr;

static void on_sys(int signal, siginfo_t *info, void *context) {
    CHECK(signal == SIGSYS);
    count++;
    code = info->si_code;
    ask((uint64_t)count);
    if (info->si_code == BY_FILTER) {
        data = info->si_errno;
        nr = info->si_syscall;
#if defined(__x86_64__)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 55;
#elif defined(__aarch64__)
        ((ucontext_t *)context)->uc_mcontext.regs[0] = 55;
#endif
    }
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO}, old;
    sigaddset(&action.sa_mask, SIGUSR1);
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    CHECK(sigaction(SIGSYS, NULL, &old) == 0 && old.sa_sigaction == on_sys && old.sa_flags & SA_SIGINFO);
    CHECK(sigismember(&old.sa_mask, SIGUSR1) == 1);
    for (int i = 1; i <= 50; i++) {
        ask(i);
        CHECK(kill(getpid(), SIGSYS) == 0);
        CHECK(count == i && code == SI_USER);
    }
    sigset_t mask;
    CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGUSR1) == 0);
    struct sock_filter insns[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_umask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP | 7),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof insns / sizeof *insns, insns};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    for (int i = 51; i <= 100; i++) {
        CHECK(call6(SYS_umask, 0, 0, 0, 0, 0, 0) == 55);
        CHECK(count == i && code == BY_FILTER && data == 7 && nr == SYS_umask);
        ask(i);
    }
    action.sa_handler = SIG_IGN;
    CHECK(sigaction(SIGSYS, &action, &old) == 0 && old.sa_sigaction == on_sys);
    CHECK(kill(getpid(), SIGSYS) == 0 && count == 100);
    ask(3);
}
