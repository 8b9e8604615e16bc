// A call preserves everything except its result and, on x86-64, rcx and r11: the red zone there, flags, vector registers.
#include "guest.h"

#if defined(__x86_64__)
static long call_with(long nr, uint64_t flags, uint64_t *after, uint64_t zone[16], uint8_t vectors[16 * 16]) {
    long result = nr;
    __asm__ volatile("movdqu (%[v]), %%xmm0\n movdqu 16(%[v]), %%xmm1\n movdqu 112(%[v]), %%xmm7\n"
                     "movdqu 240(%[v]), %%xmm15\n"
                     "mov (%[z]), %%rdi\n mov %%rdi, -8(%%rsp)\n"
                     "mov 8(%[z]), %%rdi\n mov %%rdi, -64(%%rsp)\n"
                     "mov 16(%[z]), %%rdi\n mov %%rdi, -128(%%rsp)\n"
                     "lea -256(%%rsp), %%rsp\n pushf\n pop %%r8\n and $~0x8d5, %%r8\n or %[f], %%r8\n push %%r8\n popf\n"
                     "lea 256(%%rsp), %%rsp\n"
                     "mov $77, %%rdi\n"
                     "syscall\n"
                     "lea -256(%%rsp), %%rsp\n pushf\n pop %%r8\n mov %%r8, (%[a])\n"
                     "and $~0x40400, %%r8\n push %%r8\n popf\n lea 256(%%rsp), %%rsp\n"
                     "mov -8(%%rsp), %%rdi\n mov %%rdi, (%[z])\n"
                     "mov -64(%%rsp), %%rdi\n mov %%rdi, 8(%[z])\n"
                     "mov -128(%%rsp), %%rdi\n mov %%rdi, 16(%[z])\n"
                     "movdqu %%xmm0, (%[v])\n movdqu %%xmm1, 16(%[v])\n movdqu %%xmm7, 112(%[v])\n"
                     "movdqu %%xmm15, 240(%[v])\n"
                     : "+a"(result)
                     : [v] "r"(vectors), [z] "r"(zone), [f] "r"(flags), [a] "r"(after)
                     : "rdi", "r8", "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm7", "xmm15");
    return result;
}

__attribute__((target("avx"))) static void upper_halves(void) {
    uint8_t before[32], after[32];
    for (int i = 0; i < 32; i++)
        before[i] = (uint8_t)(i * 7 + 1);
    long result = SYS_getpgid;
    __asm__ volatile("vmovdqu (%[b]), %%ymm5\n mov $5, %%rdi\n syscall\n vmovdqu %%ymm5, (%[c])\n vzeroupper\n"
                     : "+a"(result)
                     : [b] "r"(before), [c] "r"(after)
                     : "rdi", "rcx", "r11", "memory", "xmm5");
    CHECK(result == 5 && memcmp(before, after, 32) == 0);
}

int main(void) {
    // The flags of a computation, and two that don't change by themselves.
    const uint64_t status = 0x8d5, direction = 0x400, alignment = 0x40000, all = status | direction | alignment;
    const uint64_t flags[] = {0, direction, alignment, 0x1, 0x4, 0x10, 0x40, 0x80, 0x800, 0x855, 0x880, all};
    for (int round = 0; round < 20; round++)
        for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
            uint64_t zone[16] = {0x1111222233334444, 0x5555666677778888, 0x9999aaaabbbbcccc}, after = 0;
            uint8_t vectors[256], expected[256];
            for (int j = 0; j < 256; j++)
                expected[j] = vectors[j] = (uint8_t)(j ^ round);
            CHECK(call_with(SYS_getpgid, flags[i], &after, zone, vectors) == 77);
            CHECK(zone[0] == 0x1111222233334444 && zone[1] == 0x5555666677778888 && zone[2] == 0x9999aaaabbbbcccc);
            CHECK((after & all) == flags[i]);
            CHECK(memcmp(vectors, expected, 256) == 0);
        }
    for (int round = 0; round < 20 && __builtin_cpu_supports("avx"); round++)
        upper_halves();
}
#elif defined(__aarch64__)
// Makes a call with these flags and registers, and stores what they are behind it. The first two and x8 are the call's.
static long call_with(uint64_t flags, uint64_t *after, uint64_t general[8], uint8_t vectors[4 * 16]) {
    register uint64_t x0 __asm__("x0") = 77;
    register uint64_t x8 __asm__("x8") = SYS_getpgid;
    __asm__ volatile("ldp x1, x2, [%[g]]\n ldp x7, x9, [%[g], #16]\n ldp x15, x17, [%[g], #32]\n"
                     "ldp x10, x11, [%[g], #48]\n"
                     "ldp q0, q7, [%[v]]\n ldp q15, q31, [%[v], #32]\n"
                     "msr nzcv, %[f]\n"
                     "svc #0\n"
                     "mrs %[f], nzcv\n str %[f], [%[a]]\n"
                     "stp x1, x2, [%[g]]\n stp x7, x9, [%[g], #16]\n stp x15, x17, [%[g], #32]\n"
                     "stp x10, x11, [%[g], #48]\n"
                     "stp q0, q7, [%[v]]\n stp q15, q31, [%[v], #32]\n"
                     : "+r"(x0), [f] "+r"(flags)
                     : "r"(x8), [v] "r"(vectors), [g] "r"(general), [a] "r"(after)
                     : "x1", "x2", "x7", "x9", "x10", "x11", "x15", "x17", "memory", "cc", "v0", "v7", "v15", "v31");
    return (long)x0;
}

int main(void) {
    for (int round = 0; round < 20; round++)
        for (uint64_t flags = 0; flags < 16; flags++) {
            uint64_t general[8], expected_general[8], after = 0;
            uint8_t vectors[64], expected[64];
            for (int j = 0; j < 8; j++)
                expected_general[j] = general[j] = (uint64_t)(j + 1) * 0x9e3779b97f4a7c15;
            for (int j = 0; j < 64; j++)
                expected[j] = vectors[j] = (uint8_t)(j ^ round);
            CHECK(call_with(flags << 28, &after, general, vectors) == 77);
            CHECK(after == flags << 28 && memcmp(general, expected_general, sizeof general) == 0);
            CHECK(memcmp(vectors, expected, sizeof vectors) == 0);
        }
}
#endif
