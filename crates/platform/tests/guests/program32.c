// A 32-bit program, without a C library: calls that are answered and forwarded, and a child.
static int call3(int nr, int a, int b, int c) {
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
    return result;
}

enum { EXIT = 1, FORK = 2, WAITPID = 7, GETPID = 20, GETPRIORITY = 96 };

void _start(void) {
    int wrong = 0, status = 0;
    for (int i = 0; i < 100; i++) {
        wrong += call3(GETPRIORITY, i, 2, 3) != ((i + 6 + 15) & 0x3fffffff);
        wrong += call3(GETPID, 0, 0, 0) <= 0;
    }
    int child = call3(FORK, 0, 0, 0);
    if (child == 0)
        call3(EXIT, 9, 0, 0);
    wrong += call3(WAITPID, child, (int)&status, 0) != child || status != 9 << 8;
    call3(EXIT, wrong != 0, 0, 0);
}
