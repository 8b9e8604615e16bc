/* A program whose own filter denies a call with an error, kills for it, or sends a signal. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile sig_atomic_t trapped;
static void caught(int signal) {
    trapped += signal == SIGSYS;
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "errno";
    unsigned answer = SECCOMP_RET_ERRNO | EAGAIN;
    if (!strcmp(how, "kill")) answer = 0x80000000U;
    if (!strcmp(how, "trap")) answer = SECCOMP_RET_TRAP;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    signal(SIGSYS, caught);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
    if (fork() == 0) {
        for (int i = 0; i < 5; i++) printf("%ld %d\n", syscall(SYS_getsid, 0L) < 0 ? -1L : 0L, errno);
        printf("%d\n", (int)trapped);
        return 0;
    }
    int status;
    wait(&status);
    printf("%d\n", status);
    return 0;
}
