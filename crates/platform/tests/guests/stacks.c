// Signal stacks: the memory below a stack is unchanged for every size, and a read-only stack isn't written to. A
// program with a stack of the kernel's advised size makes calls in handlers.
#include "guest.h"

#include <sys/auxv.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

enum { HALF = 1 << 19, PATTERN = 0xa5 };

static unsigned char *memory;

static void calls(void) {
    for (uint64_t i = 0; i < 100; i++)
        ask(i);
}

static volatile sig_atomic_t handled;

static void on_user(int signal) {
    (void)signal;
    calls();
    handled++;
}

// Sets a stack of this size with these flags; false if that fails.
static int set(unsigned char *first, size_t size, int flags) {
    stack_t stack = {.ss_sp = first, .ss_size = size, .ss_flags = flags};
    return sigaltstack(&stack, NULL) == 0;
}

static void check_below(size_t size) {
    memset(memory, PATTERN, 2 * HALF);
    set(memory + HALF, size, 0);
    calls();
    for (size_t i = 0; i < HALF; i++)
        CHECK(memory[i] == PATTERN);
    CHECK(set(NULL, 0, SS_DISABLE));
}


int main(int argc, char **argv) {
    size_t least = getauxval(AT_MINSIGSTKSZ);
    memory = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    calls();
    // First a size for all platforms: afterwards a thread may continue in another way.
    if (least < 2048)
        least = 1 << 15;
    CHECK(set(memory + HALF, least + 4096, 0));
    struct sigaction action = {.sa_handler = on_user, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    CHECK(handled == 1);
    check_below(least);
    for (size_t size = argc > 1 ? (size_t)atol(argv[1]) : 2048; size < least; size += 256)
        check_below(size);
    // Natively nothing is written to the stack before the first signal.
    CHECK(mprotect(memory + HALF, HALF, PROT_READ) == 0);
    set(memory + HALF, HALF, 0);
    calls();
}
