// Filters that guests install themselves.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

// The threads that get a filter, and the interface of its installation.
enum { FOR_ONE = 0, FOR_ALL = 1, FOR_ALL_I386 = 2 };

#if defined(__x86_64__)
static inline long seccomp_i386(const struct sock_filter *insns, unsigned short len) {
    struct {
        uint32_t len, insns;
    } *program;
    char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK(low != MAP_FAILED);
    program = (void *)low;
    memcpy(low + 64, insns, len * sizeof *insns);
    program->len = len;
    program->insns = (uint32_t)(uintptr_t)(low + 64);
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(354), "b"(SECCOMP_SET_MODE_FILTER), "c"(SECCOMP_FILTER_FLAG_TSYNC), "d"(program)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)result;
}
#else
static inline long seccomp_i386(const struct sock_filter *insns, unsigned short len) {
    (void)insns, (void)len;
    return -ENOSYS;
}
#endif

// Installs a filter that allows these calls and kills the process for others, for all threads or for this one.
static inline long allow_only(const int *numbers, size_t count, int for_all) {
    struct sock_filter insns[64] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short len = 1;
    CHECK(count <= 30);
    for (size_t i = 0; i < count; i++) {
        insns[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
        insns[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    insns[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {len, insns};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (for_all == FOR_ALL_I386)
        return seccomp_i386(insns, len);
    if (!for_all)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}
