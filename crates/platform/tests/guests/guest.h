// What guests share: calls as the instruction, and checks. The supervisor of the tests answers
//   getpriority  a sum over its six arguments
//   getpgid      its first argument; 0x0badc0de has patched sites rolled back
//   personality  reads the number at its first argument, writes the next one to its second; returns the byte count
//   getppid      as the kernel
//   getgid       99, after a delay of its first argument in milliseconds
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Prints the failure and ends, by calls that guests' own filters allow: `dprintf` would check the file first.
static inline void fail(const char *file, int line, const char *condition) {
    char text[256];
    int len = snprintf(text, sizeof text, "%s:%d: %s, errno %d\n", file, line, condition, errno);
    write(2, text, len < (int)sizeof text ? (size_t)len : sizeof text - 1);
    _exit(1);
}

#define CHECK(condition)                                                                                                 \
    do {                                                                                                                 \
        if (!(condition))                                                                                                \
            fail(__FILE__, __LINE__, #condition);                                                                        \
    } while (0)

#if defined(__x86_64__)
static inline long call6(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    register uint64_t r10 __asm__("r10") = d;
    register uint64_t r8 __asm__("r8") = e;
    register uint64_t r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline long call6(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    register uint64_t x8 __asm__("x8") = (uint64_t)nr;
    register uint64_t x0 __asm__("x0") = a;
    register uint64_t x1 __asm__("x1") = b;
    register uint64_t x2 __asm__("x2") = c;
    register uint64_t x3 __asm__("x3") = d;
    register uint64_t x4 __asm__("x4") = e;
    register uint64_t x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return (long)x0;
}
#endif

// The base of a thread's own data: FS on x86-64, where it is set by a call, TPIDR_EL0 on AArch64.
#if defined(__x86_64__)
#include <asm/prctl.h>
static inline uint64_t thread_base(void) {
    uint64_t base = 0;
    CHECK(call6(SYS_arch_prctl, ARCH_GET_FS, (uint64_t)&base, 0, 0, 0, 0) == 0);
    return base;
}

static inline void set_thread_base(uint64_t base) {
    CHECK(call6(SYS_arch_prctl, ARCH_SET_FS, base, 0, 0, 0, 0) == 0);
}
#elif defined(__aarch64__)
static inline uint64_t thread_base(void) {
    uint64_t base;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(base));
    return base;
}

static inline void set_thread_base(uint64_t base) {
    __asm__ volatile("msr tpidr_el0, %0" ::"r"(base) : "memory");
}
#endif

// `fork` and `vfork`, which the filters of tasks decide about. AArch64 has neither: there they are calls of `clone` with
// another signal at their end, by which the filters tell them from others.
static inline long call_fork(void) {
#ifdef SYS_fork
    return syscall(SYS_fork);
#else
    return syscall(SYS_clone, SIGUSR2, 0, 0, 0, 0);
#endif
}

static inline long call_vfork(void) {
#ifdef SYS_vfork
    return syscall(SYS_vfork);
#else
    return syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGUSR2, 0, 0, 0, 0);
#endif
}

static inline uint64_t sum6(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    return (a + 3 * b + 5 * c + 7 * d + 9 * e + 11 * f) & 0x3fffffffffffffff;
}

// One call with a known answer.
static inline void ask(uint64_t seed) {
    uint64_t a = seed * 0x9e3779b97f4a7c15, b = a ^ seed, c = ~a, d = a << 7, e = seed, f = a >> 3;
    CHECK((uint64_t)call6(SYS_getpriority, a, b, c, d, e, f) == sum6(a, b, c, d, e, f));
}

// Waits for a millisecond, or forever.
static inline void wait_a_moment(void) {
    const struct timespec moment = {0, 1000000};
    call6(SYS_ppoll, 0, 0, (uintptr_t)&moment, 0, 0, 0);
}

static inline void wait_for_ever(void) {
    for (;;)
        call6(SYS_ppoll, 0, 0, 0, 0, 0, 0);
}
