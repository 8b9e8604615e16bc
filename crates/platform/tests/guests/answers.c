// One answer of the supervisor or filter, selected by the argument.
#include "guest.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    ask(1);
    char byte = 1;
    switch (argv[1][0]) {
    case 'd': {
        // A descriptor of a file of zeros, closed on execution.
        int fd = (int)syscall(SYS_inotify_init1, "", 0);
        CHECK(fd > 2 && read(fd, &byte, 1) == 1 && byte == 0);
        return 0;
    }
    case 'w':
        // Another call instead.
        CHECK(syscall(SYS_getsid, 0) == getpid());
        return 0;
    case 'l': {
        // An answer after 20 ms.
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        CHECK(syscall(SYS_getgid, 20) == 99);
        clock_gettime(CLOCK_MONOTONIC, &end);
        CHECK((end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec >= 20000000);
        return 0;
    }
    case 'r':
        // The result of a forwarded call, replaced.
        CHECK(syscall(SYS_getppid) == 4711);
        return 0;
    case 'k':
        // Killed by the supervisor.
        syscall(SYS_sysinfo, 0);
        return 1;
    case 'e':
        // An error of the filter.
        CHECK(syscall(SYS_acct, 0) == -1 && errno == ENOTTY);
        return 0;
    case 's':
        // Killed by the filter.
        syscall(SYS_swapoff, 0);
        return 1;
    case 't':
        // `trace` without a tracer.
        CHECK(syscall(SYS_sethostname, 0, 0) == -1 && errno == ENOSYS);
        return 0;
    default:
        return atoi(argv[1]);
    }
}
