// A processor exception becomes its signal, with its code and address, and the guest continues.
#include "guest.h"

static sigjmp_buf place;
static siginfo_t got;

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)context;
    got = *info;
    siglongjmp(place, signal);
}

#define EXPECT(expected, code, address, statement)                                                                       \
    do {                                                                                                                 \
        ask(expected);                                                                                                   \
        int signal = sigsetjmp(place, 1);                                                                                \
        if (signal == 0) {                                                                                               \
            statement;                                                                                                   \
            CHECK(!"an exception");                                                                                      \
        }                                                                                                                \
        CHECK(signal == expected && got.si_code == code && (address == NULL || got.si_addr == address));                 \
    } while (0)

enum { BY_KERNEL = 0x80 };

static long PAGE;

// A function's only instruction: it returns.
#if defined(__x86_64__)
static const uint8_t RETURN[] = {0xc3};
#elif defined(__aarch64__)
static const uint8_t RETURN[] = {0xc0, 0x03, 0x5f, 0xd6};
#endif

// Memory without access, or without the attempted access.
static void use_memory(void) {
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    void (*function)(void) = (void (*)(void))page;
    memcpy(page, RETURN, sizeof RETURN);
    __builtin___clear_cache(page, page + sizeof RETURN);
    EXPECT(SIGSEGV, SEGV_ACCERR, page, function());
    CHECK(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
    function();
    EXPECT(SIGSEGV, SEGV_ACCERR, page, *(volatile char *)page = 1);
    CHECK(mprotect(page, PAGE, PROT_READ) == 0 && memcmp(page, RETURN, sizeof RETURN) == 0);
    EXPECT(SIGSEGV, SEGV_ACCERR, page, function());
    CHECK(mprotect(page, PAGE, PROT_NONE) == 0);
    EXPECT(SIGSEGV, SEGV_ACCERR, page, (void)*(volatile char *)page);
    CHECK(munmap(page, PAGE) == 0);
    EXPECT(SIGSEGV, SEGV_MAPERR, page, (void)*(volatile char *)page);
    int file = memfd_create("pages", 0);
    CHECK(file >= 0 && ftruncate(file, 2 * PAGE) == 0);
    char *shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared != MAP_FAILED);
    *(volatile char *)(shared + PAGE) = 1;
    CHECK(ftruncate(file, PAGE) == 0);
    EXPECT(SIGBUS, BUS_ADRERR, (shared + PAGE), *(volatile char *)(shared + PAGE) = 2);
    CHECK(mremap(shared, 2 * PAGE, PAGE, 0) == shared);
    *(volatile char *)shared = 3;
    CHECK(pread(file, &got, 1, 0) == 1 && *(char *)&got == 3);
    CHECK(munmap(shared, PAGE) == 0 && close(file) == 0);
    char *end = sbrk(2 * PAGE);
    *(volatile char *)(end + PAGE) = 1;
    CHECK(sbrk(-2 * PAGE) == end + 2 * PAGE);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        CHECK(sigaction(signals[i], &action, NULL) == 0);
    PAGE = sysconf(_SC_PAGESIZE);
    char *none = NULL;
#if defined(__x86_64__)
    EXPECT(SIGILL, ILL_ILLOPN, none, __asm__ volatile("ud2"));
    EXPECT(SIGFPE, FPE_INTDIV, none, __asm__ volatile("xor %%ecx, %%ecx\n div %%ecx" ::: "eax", "ecx", "edx"));
    EXPECT(SIGTRAP, BY_KERNEL, none, __asm__ volatile("int3"));
    EXPECT(SIGSEGV, BY_KERNEL, none, __asm__ volatile("hlt"));
    EXPECT(SIGSEGV, BY_KERNEL, none, __asm__ volatile("inb $0x60, %%al" ::: "eax"));
    EXPECT(SIGSEGV, BY_KERNEL, none, *(volatile int *)0x8000000000000000 = 1);
    EXPECT(SIGTRAP, TRAP_TRACE, none,
           __asm__ volatile("lea -128(%%rsp), %%rsp\n pushf\n orl $0x100, (%%rsp)\n popf\n nop\n nop" ::: "cc"));
#elif defined(__aarch64__)
    EXPECT(SIGILL, ILL_ILLOPC, none, __asm__ volatile("udf #7"));
    EXPECT(SIGTRAP, TRAP_BRKPT, none, __asm__ volatile("brk #7"));
    EXPECT(SIGSEGV, SEGV_MAPERR, none, *(volatile int *)0x8000000000000000 = 1);
#endif
    EXPECT(SIGSEGV, SEGV_MAPERR, (void *)8, *(volatile int *)8 = 1);
    for (int round = 0; round < 20; round++)
        use_memory();
}
