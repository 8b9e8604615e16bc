// A guest's own filters don't hide calls from the supervisor if their actions have the precedence of the platform's or
// less. Actions with more precedence may deny calls, but no call is made without the supervisor. A call that only such
// a filter traces fails as without a tracer.
#include "guest.h"
#include "filter.h"

enum { ANSWER = 77, SECCOMP_I386 = 354, PRCTL_I386 = 172 };

static int has_i386, has_vsyscall;

static long call_i386(uint32_t nr, uint32_t a, uint32_t b, uint32_t c) {
    int result = -ENOSYS;
#ifdef __x86_64__
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
#else
    (void)nr, (void)a, (void)b, (void)c;
#endif
    return result;
}

// Installs a filter with this action for the calls below, of either interface.
static void hide(uint32_t action) {
    const unsigned numbers[] = {
        SYS_getpriority, SYS_getpgid, SYS_seccomp,
#ifdef __x86_64__
        SYS_time, SECCOMP_I386, PRCTL_I386,
#endif
    };
    struct sock_filter insns[32] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short len = 1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        insns[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i], 0, 1);
        insns[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    // `prctl` alone with the argument of the call below.
    insns[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3);
    insns[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]));
    insns[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x77, 0, 1);
    insns[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    insns[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {len, insns};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

// Whether a result is the supervisor's, or that of a filter with more precedence.
static int is_either(long result, long answer, long denied) {
    return result == answer || result == denied;
}

static void try_all(uint32_t action, long denied, int is_stricter) {
    const long answer = is_stricter ? denied : ANSWER;
    hide(action);
    CHECK(is_either(call6(SYS_getpriority, 1, 2, 3, 4, 5, 6), (long)sum6(1, 2, 3, 4, 5, 6), answer));
    if (!is_stricter)
        ask(1);
    CHECK(is_either(call6(SYS_seccomp, 0x77, 0, 0, 0, 0, 0), ANSWER, answer));
    CHECK(is_either(call6(SYS_prctl, PR_SET_SECCOMP, 0x77, 0, 0, 0, 0), ANSWER, answer));
    if (has_i386) {
        CHECK(is_either(call_i386(SECCOMP_I386, 0x77, 0, 0), ANSWER, answer));
        CHECK(is_either(call_i386(PRCTL_I386, PR_SET_SECCOMP, 0x77, 0), ANSWER, answer));
    }
    if (has_vsyscall)
        CHECK(is_either(((long (*)(uintptr_t))0xffffffffff600400)(0x71e), 99, is_stricter ? denied : 99));
    // The supervisor doesn't get this call.
    const long own = call6(SYS_getpgid, 0, 0, 0, 0, 0, 0);
    CHECK(denied ? own == denied : own == getpgid(0));
}

static const struct {
    uint32_t action;
    long denied;
    int is_stricter;
} KINDS[] = {
    {SECCOMP_RET_ALLOW, 0, 0},
    {SECCOMP_RET_LOG, 0, 0},
    // Other data, and the data of the platforms.
    {SECCOMP_RET_TRACE | 0x1234, -ENOSYS, 0},
    {SECCOMP_RET_TRACE | 0x7a75, -ENOSYS, 0},
    {SECCOMP_RET_TRACE | 0x7a77, -ENOSYS, 0},
    {SECCOMP_RET_USER_NOTIF, -ENOSYS, 1},
    {SECCOMP_RET_ERRNO | ENOTTY, -ENOTTY, 1},
};

int main(int argc, char **argv) {
    CHECK(argc == 3);
    has_i386 = *argv[1], has_vsyscall = *argv[2];
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            // Enough calls for the site to be patched.
            for (int often = 0; often < 100; often++)
                ask(often);
            try_all(KINDS[i].action, KINDS[i].denied, KINDS[i].is_stricter);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    // A listener's answers would have precedence over tracing.
    struct sock_filter insns[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)};
    struct sock_fprog program = {1, insns};
    CHECK(call6(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, (uintptr_t)&program, 0, 0, 0) == -EBUSY);
    ask(2);
}
