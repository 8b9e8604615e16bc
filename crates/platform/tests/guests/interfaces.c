// Calls by the 32-bit interface of the kernel, and by the numbers of x32, from 64-bit code.
#include "guest.h"

static uint32_t call_i386(uint32_t nr, uint32_t a, uint32_t b, uint32_t c) {
    uint32_t result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
    return result;
}

int main(int argc, char **argv) {
    (void)argv;
    const uint32_t getpriority = 96, x32 = 0x40000000;
    // With an argument: whether the kernel has the 32-bit interface.
    if (argc > 1)
        return call_i386(20, 0, 0, 0) == (uint32_t)getpid() ? 0 : 2;
    for (uint32_t i = 0; i < 100; i++) {
        CHECK(call_i386(getpriority, i, 2, 3) == ((i + 6 + 15) & 0x3fffffff));
        CHECK((uint64_t)call6(SYS_getpriority | x32, i, 2, 3, 4, 5, 6) == sum6(i, 2, 3, 4, 5, 6));
        ask(i);
    }
    CHECK(call_i386(20, 0, 0, 0) == (uint32_t)getpid());
}
