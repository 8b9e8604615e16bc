// Writes the results of calls to the file of the argument, in sequence, until the filter ends the process.
#include "guest.h"
#include <fcntl.h>

int main(int argc, char **argv) {
    static const uint64_t calls[][7] = {
        {SYS_getpriority, 1, 2, 3, 4, 5, 6},
        {SYS_getpgid, 7, 0, 0, 0, 0, 0},
        {SYS_getpgid, (uint64_t)1 << 32 | 7, 0, 0, 0, 0, 0},
        {SYS_lseek, ~(uint64_t)0, 5, 0, 0, 0, 0},
        {SYS_lseek, 1000, 0xffffffff00000001, 2, 0, 0, 0},
        {SYS_personality, 0xffffffff, 0, 0, 0, 0, 0},
        {SYS_dup, 1000, 0, 0, 0, 0, 0},
        {SYS_umask, 022, 0, 0, 0, 0, 0},
        {SYS_brk, ~(uint64_t)0 >> 1, 0, 0, 0, 0, 0},
        {SYS_mmap, 0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, ~(uint64_t)0, 0},
        {SYS_mprotect, 1, 0, 0, 0, 0, 0},
        {SYS_rt_sigaction, 65, 0, 0, 8, 0, 0},
        {SYS_rt_sigprocmask, 0, 0, 0, 8, 0, 0},
        {SYS_sigaltstack, 1, 0, 0, 0, 0, 0},
        {SYS_close, 1000, 0, 0, 0, 0, 0},
        {100000, 1, 2, 3, 4, 5, 6},
        {SYS_futex, 1, FUTEX_WAKE_PRIVATE, 0, 0, 0, 0},
        {SYS_munmap, 1, 1, 0, 0, 0, 0},
        {SYS_madvise, 1, 1, MADV_DONTNEED, 0, 0, 0},
        {SYS_sched_yield, 0, 0, 0, 0, 0, 0},
        {SYS_close_range, 1001, 1000, 0, 0, 0, 0},
        {SYS_sethostname, 0, 0, 0, 0, 0, 0},
        {SYS_acct, 0, 0, 0, 0, 0, 0},
        {SYS_swapoff, 0, 0, 0, 0, 0, 0},
        {SYS_setdomainname, 0, 0, 0, 0, 0, 0},
    };
    CHECK(argc == 2);
    int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const uint64_t *call = calls[i];
        long result = call6((long)call[0], call[1], call[2], call[3], call[4], call[5], call[6]);
        // Addresses differ between runs.
        if (call[0] == SYS_brk || call[0] == SYS_mmap)
            result = result < 0;
        CHECK(write(file, &result, sizeof result) == sizeof result);
    }
}
