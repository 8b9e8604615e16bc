// What a system call of a guest costs, in instructions: /init of the lab's machine.
//
// The guest is a loop in ring 3 that makes a system call. Its kernel is a few instructions, another one for each row of
// the table: they answer by themselves, leave the virtual machine for this program to make the call, or have the host's
// kernel make it by a hypercall. The time stamp counter of the machine counts executed instructions, so figures don't
// depend on the load of whoever runs it. Rows with a filter are measured in a process that has installed it.
//
// The last line is `lab: passed` or `lab: failed`.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/kvm.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KVM_CAP_HOST_SYSCALL 1000
#define KVM_EPERM 1
#define KVM_ENOSYS 1000
// Batches are so short that most of them end before the next tick of the machine's timer.
#define CALLS 20
#define BATCHES 101

// Places in the guest's memory, which is mapped one to one.
enum {
    PML4 = 0x1000,
    PDPT = 0x2000,
    PD = 0x3000,
    GDT = 0x4000,
    CODE = 0x8000,
    REGS = 0x10000,
    STACK = 0x20000,
    MEMORY_BYTES = 0x200000,
};

// What the guest's code reads and writes: struct pt_regs of the kernel, then what is only ours.
struct shared {
    uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
    uint64_t regs_address, saved_bx, status, started, ended;
};
_Static_assert(offsetof(struct shared, regs_address) == 168, "struct pt_regs has 21 words");

// The guest. The loop makes r12 calls with the number r14 and the third argument r13, and leaves early with one that
// doesn't return r15.
__asm__(".pushsection .rodata\n.intel_syntax noprefix\n"
        "guest_begin:\n"
        "rdtsc\nshl rdx, 32\nor rax, rdx\nmov ds:[0x10000 + 192], rax\nmov rdx, r13\n"
        "1: mov rax, r14\nsyscall\ncmp rax, r15\njne 2f\ndec r12\njnz 1b\n"
        "2: mov r15, rax\nrdtsc\nshl rdx, 32\nor rax, rdx\nmov ds:[0x10000 + 200], rax\nout 0xf1, al\n"
        "shim_answer: mov rax, 4711\nsysretq\n"
        "shim_null: mov rax, 999\nvmmcall\nsysretq\n"
        "shim_out: out 0xf0, al\nsysretq\n"
        "shim_hlt: hlt\nsysretq\n"
        "shim_hypercall:\n"
        "mov ds:[0x10000 + 56], r10\nmov ds:[0x10000 + 64], r9\nmov ds:[0x10000 + 72], r8\n"
        "mov ds:[0x10000 + 96], rdx\nmov ds:[0x10000 + 104], rsi\nmov ds:[0x10000 + 112], rdi\n"
        "mov ds:[0x10000 + 120], rax\n"
        "mov ds:[0x10000 + 176], rbx\nmov rbx, ds:[0x10000 + 168]\n"
        "mov eax, 13\nvmmcall\n"
        "mov ds:[0x10000 + 184], rax\nmov rax, ds:[0x10000 + 80]\nmov rbx, ds:[0x10000 + 176]\nsysretq\n"
        "guest_end:\n"
        ".att_syntax prefix\n.popsection\n");
extern const char guest_begin[], guest_end[], shim_answer[], shim_null[], shim_out[], shim_hlt[], shim_hypercall[];

static int machine, vcpu;
static char *memory;
static struct kvm_run *run;
static struct shared *shared;
static int has_failed;

static void fatal(const char *what) {
    printf("lab: %s: %s\n", what, strerror(errno));
    exit(1);
}

// Something that has to hold.
static void check(const char *what, int holds) {
    if (!holds) {
        printf("lab: wrong: %s\n", what);
        has_failed = 1;
    }
}

static struct kvm_segment segment(uint16_t selector, int is_code, int ring) {
    return (struct kvm_segment){.base = 0, .limit = 0xffffffff, .selector = selector, .type = is_code ? 11 : 3,
                                .present = 1, .dpl = ring, .db = !is_code, .s = 1, .l = is_code, .g = 1};
}

static void set_msr(uint32_t index, uint64_t value) {
    struct {
        struct kvm_msrs head;
        struct kvm_msr_entry entry;
    } one = {{.nmsrs = 1}, {.index = index, .data = value}};
    if (ioctl(vcpu, KVM_SET_MSRS, &one) != 1)
        fatal("KVM_SET_MSRS");
}

// A machine whose only page maps its memory, in ring 3 and long mode.
static void make_machine(int has_hypercall) {
    int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (kvm < 0)
        fatal("/dev/kvm");
    machine = ioctl(kvm, KVM_CREATE_VM, 0);
    struct kvm_enable_cap cap = {.cap = KVM_CAP_HOST_SYSCALL};
    if (has_hypercall && ioctl(machine, KVM_ENABLE_CAP, &cap))
        fatal("KVM_CAP_HOST_SYSCALL");
    memory = mmap(0, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct kvm_userspace_memory_region region = {.memory_size = MEMORY_BYTES, .userspace_addr = (uintptr_t)memory};
    if (memory == MAP_FAILED || ioctl(machine, KVM_SET_USER_MEMORY_REGION, &region))
        fatal("memory");
    vcpu = ioctl(machine, KVM_CREATE_VCPU, 0);
    run = mmap(0, ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
    if (vcpu < 0 || run == MAP_FAILED)
        fatal("KVM_CREATE_VCPU");

    static char cpuid_bytes[sizeof(struct kvm_cpuid2) + 200 * sizeof(struct kvm_cpuid_entry2)];
    struct kvm_cpuid2 *cpuid = (struct kvm_cpuid2 *)cpuid_bytes;
    cpuid->nent = 200;
    if (ioctl(kvm, KVM_GET_SUPPORTED_CPUID, cpuid) || ioctl(vcpu, KVM_SET_CPUID2, cpuid))
        fatal("KVM_SET_CPUID2");
    *(uint64_t *)(memory + PML4) = PDPT | 7;
    *(uint64_t *)(memory + PDPT) = PD | 7;
    *(uint64_t *)(memory + PD) = 0x87;
    memcpy(memory + CODE, guest_begin, guest_end - guest_begin);
    shared = (struct shared *)(memory + REGS);
    shared->regs_address = (uintptr_t)shared;

    struct kvm_sregs sregs;
    ioctl(vcpu, KVM_GET_SREGS, &sregs);
    sregs.cr0 = 0x80050033;
    sregs.cr3 = PML4;
    sregs.cr4 = 0x620;
    sregs.efer = 0xd01;
    sregs.cs = segment(0x2b, 1, 3);
    sregs.ds = sregs.es = sregs.fs = sregs.gs = sregs.ss = segment(0x23, 0, 3);
    sregs.gdt.base = GDT;
    sregs.gdt.limit = 0;
    if (ioctl(vcpu, KVM_SET_SREGS, &sregs))
        fatal("KVM_SET_SREGS");
    set_msr(0xc0000081, (uint64_t)0x1b << 48 | (uint64_t)8 << 32);
    set_msr(0xc0000084, 0x700);
    run->kvm_valid_regs = KVM_SYNC_X86_REGS;
    close(kvm);
}

static long make_call(const struct kvm_regs *regs) {
    long result = syscall(regs->rax, regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9);
    return result < 0 ? -errno : result;
}

// Has the guest make this call so often, as long as it returns what is expected; what the last call returned.
static long make_calls(const char *shim, long nr, const long args[3], long expected, long count) {
    set_msr(0xc0000082, CODE + (shim - guest_begin));
    struct kvm_regs *regs = &run->s.regs.regs;
    *regs = (struct kvm_regs){.rip = CODE, .rsp = STACK, .rflags = 0x3002, .r12 = count, .r14 = nr, .r15 = expected,
                              .r13 = args[2], .rdi = args[0], .rsi = args[1]};
    run->kvm_dirty_regs = KVM_SYNC_X86_REGS;
    for (;;) {
        if (ioctl(vcpu, KVM_RUN, 0))
            fatal("KVM_RUN");
        if (run->exit_reason == KVM_EXIT_IO && run->io.port == 0xf1)
            return regs->r15;
        if (run->exit_reason != KVM_EXIT_HLT && !(run->exit_reason == KVM_EXIT_IO && run->io.port == 0xf0)) {
            printf("lab: exit %u of the guest at %#llx\n", run->exit_reason, regs->rip);
            exit(1);
        }
        regs->rax = make_call(regs);
        run->kvm_dirty_regs = KVM_SYNC_X86_REGS;
    }
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

// Prints the least and the median of all batches.
static void row(const char *what, uint64_t batches[BATCHES]) {
    qsort(batches, BATCHES, sizeof *batches, compare);
    printf("row\t%s\t%lu\t%lu\n", what, batches[0] / CALLS, batches[BATCHES / 2] / CALLS);
}

// Instructions of a call in the guest, over several batches.
static void in_guest(const char *what, const char *shim, long nr, long expected) {
    static const long none[3];
    uint64_t batches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        check(what, make_calls(shim, nr, none, expected, CALLS) == expected);
        batches[batch] = shared->ended - shared->started;
    }
    row(what, batches);
}

// One system call without a wrapper.
static long raw(long nr) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(nr) : "rcx", "r11", "memory");
    return result;
}

static void natively(const char *what, long nr, long expected) {
    uint64_t batches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t started = __builtin_ia32_rdtsc();
        for (int i = 0; i < CALLS; i++)
            if (raw(nr) != expected)
                check(what, 0);
        batches[batch] = __builtin_ia32_rdtsc() - started;
    }
    row(what, batches);
}

// A call by the hypercall: what the hypercall says, and what the call returned.
static long by_hypercall(long nr, const long args[3], long *result) {
    static const long NOTHING = 0x5a5a5a5a;
    shared->ax = NOTHING;
    long returned = make_calls(shim_hypercall, nr, args, NOTHING + 1, 1);
    *result = returned == NOTHING ? NOTHING : returned;
    return shared->status;
}

// The calls that the patch never makes.
static const struct {
    const char *name;
    long nr;
} NEVER[] = {
#define NEVER_MADE(name) {#name, SYS_##name}
    NEVER_MADE(clone),          NEVER_MADE(exit),           NEVER_MADE(exit_group),     NEVER_MADE(ioctl),
    NEVER_MADE(rt_sigreturn),   NEVER_MADE(mmap),           NEVER_MADE(arch_prctl),     NEVER_MADE(rt_sigprocmask),
    NEVER_MADE(clone3),         NEVER_MADE(fork),           NEVER_MADE(vfork),          NEVER_MADE(execve),
    NEVER_MADE(execveat),       NEVER_MADE(ptrace),         NEVER_MADE(io_uring_setup), NEVER_MADE(io_uring_enter),
    NEVER_MADE(io_uring_register),
};

// The filter that the file `/filter` has.
static void install_filter(void) {
    static struct sock_filter insns[4096];
    int file = open("/filter", O_RDONLY);
    ssize_t len_bytes = read(file, insns, sizeof insns);
    struct sock_fprog program = {.len = len_bytes / sizeof *insns, .filter = insns};
    if (len_bytes <= 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        fatal("the filter");
    close(file);
}

static void without_filter(void) {
    static const long none[3];
    long result;
    make_machine(1);
    long pid = getpid();
    natively("native", SYS_getpid, pid);
    in_guest("KVM: the guest's kernel answers", shim_answer, SYS_getpid, 4711);
    in_guest("KVM: a hypercall that does nothing", shim_null, SYS_getpid, -KVM_ENOSYS);
    in_guest("KVM: exit by `hlt`, VMM makes the call", shim_hlt, SYS_getpid, pid);
    in_guest("KVM: exit by `out`, VMM makes the call", shim_out, SYS_getpid, pid);
    in_guest("KVM: hypercall makes the call", shim_hypercall, SYS_getpid, pid);

    check("the hypercall made the call", by_hypercall(SYS_getppid, none, &result) == 0 && result == getppid());
    int ends[2];
    if (pipe2(ends, O_NONBLOCK))
        fatal("pipe");
    long args[3] = {ends[1], (long)"all", 3};
    check("arguments arrive", by_hypercall(SYS_write, args, &result) == 0 && result == 3);
    char text[4] = "";
    check("what was written is there", read(ends[0], text, 3) == 3 && !strcmp(text, "all"));
    args[0] = -1;
    check("errors come back", by_hypercall(SYS_write, args, &result) == 0 && result == -EBADF);
    check("a number that no kernel has", by_hypercall(100000, none, &result) == -KVM_EPERM);
    for (size_t i = 0; i < sizeof NEVER / sizeof *NEVER; i++)
        check(NEVER[i].name, by_hypercall(NEVER[i].nr, none, &result) == -KVM_EPERM);
}

static void without_capability(void) {
    static const long none[3];
    long result;
    make_machine(0);
    check("no hypercall without the capability", by_hypercall(SYS_getppid, none, &result) == -KVM_ENOSYS);
}

static void with_filter(void) {
    static const long none[3];
    long result, pid = getpid();
    make_machine(1);
    install_filter();
    check("the filter is installed", raw(SYS_getppid) == -EPERM);
    natively("native, filter allows", SYS_getpid, pid);
    natively("native, filter denies", SYS_getppid, -EPERM);
    in_guest("KVM: exit by `out`, filter denies", shim_out, SYS_getppid, -EPERM);
    in_guest("KVM: hypercall, filter allows", shim_hypercall, SYS_getpid, pid);
    in_guest("KVM: hypercall, filter denies", shim_hypercall, SYS_getppid, -EPERM);
    check("the filter decides calls of the hypercall", by_hypercall(SYS_getppid, none, &result) == 0 && result == -EPERM);
    check("what both lists allow", by_hypercall(SYS_gettid, none, &result) == 0 && result == pid);
}

static int in_process(void (*part)(void)) {
    fflush(stdout);
    if (fork() == 0) {
        part();
        fflush(stdout);
        exit(has_failed);
    }
    int status = -1;
    wait(&status);
    return status == 0;
}

static void load(const char *path) {
    int file = open(path, O_RDONLY);
    if (file < 0 || syscall(SYS_finit_module, file, "", 0))
        fatal(path);
    close(file);
}

static void shut_down(void) {
    if (getpid() == 1)
        reboot(RB_POWER_OFF);
}

int main(void) {
    setvbuf(stdout, 0, _IOFBF, 1 << 16);
    atexit(shut_down);
    mkdir("/dev", 0755);
    if (mount("dev", "/dev", "devtmpfs", 0, 0))
        fatal("/dev");
    load("/irqbypass.ko");
    load("/kvm.ko");
    load("/kvm-amd.ko");
    int has_passed = in_process(without_filter) & in_process(with_filter) & in_process(without_capability);
    printf("lab: %s\n", has_passed ? "passed" : "failed");
    fflush(stdout);
    return 0;
}
