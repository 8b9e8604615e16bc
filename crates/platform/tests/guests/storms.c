// Signals at any point of calls that they don't end natively: a timer with a handler that doesn't restart calls, and
// children that end all the time. `storms SEED FILE` writes the results of a mixture of calls to the file: the same on
// every run.
#include "guest.h"

#include <fcntl.h>
#include <sys/epoll.h>

static int out, empty[2];
static uint64_t seed;

static void on_signal(int signal) {
    int before = errno;
    if (signal == SIGCHLD)
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    errno = before;
}

static void set(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK(sigaction(signal, &action, NULL) == 0);
}

static uint64_t next(uint64_t limit) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (seed >> 33) % limit;
}

static void say(const char *what, long number) {
    char text[80];
    int len = snprintf(text, sizeof text, "%s %ld\n", what, number);
    CHECK(write(out, text, (size_t)len) == len);
}

// Counts the calls that fail.
#define FAILED(what, count, call)                                                                                        \
    do {                                                                                                                 \
        long failed = 0;                                                                                                 \
        for (int i = 0; i < (count); i++)                                                                                \
            failed += (call) < 0;                                                                                        \
        say(what, failed);                                                                                               \
    } while (0)

static int copy_and_close(void) {
    int copy = dup(0);
    return copy < 0 || close(copy) < 0 ? -1 : 0;
}

static int open_and_close(void) {
    int file = open("/proc/self/stat", O_RDONLY);
    return file < 0 || close(file) < 0 ? -1 : 0;
}

static int write_byte(int fd) { return write(fd, "x", 1) == 1 ? 0 : -1; }

// A byte that is available.
static int through_pipe(int ends[2]) {
    static char byte;
    return write(ends[1], "x", 1) == 1 && read(ends[0], &byte, 1) == 1 ? 0 : -1;
}

static int map(void) {
    void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? -1 : munmap(memory, 4096);
}

// The sleep is interrupted each time, and returns the remaining time, which may be longer by the timer's slack.
static int sleep_for(long ns) {
    enum { UNSET = -1, SLACK_NS = 1000000 };
    struct timespec rest = {0, ns};
    for (;;) {
        struct timespec left = {0, UNSET};
        if (nanosleep(&rest, &left) == 0)
            return 0;
        if (errno != EINTR || left.tv_sec != 0 || left.tv_nsec < 0 || left.tv_nsec > ns + SLACK_NS)
            return -1;
        rest = left;
    }
}

static void end_at_once(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(0);
}

// A read that waits until a signal arrives must end.
static int wait_for_signal(void) {
    char byte;
    return read(empty[0], &byte, 1) == -1 && errno == EINTR ? 0 : -1;
}

static void mixture(int rounds) {
    int null = open("/dev/null", O_WRONLY), ends[2];
    CHECK(null >= 0 && pipe(ends) == 0);
    for (int round = 0; round < rounds; round++) {
        int count = 40 + (int)next(40);
        switch (next(7)) {
        case 0: FAILED("dup, close", count, copy_and_close()); break;
        case 1: FAILED("open, close", count, open_and_close()); break;
        case 2: FAILED("getppid", count, call6(SYS_getppid, 0, 0, 0, 0, 0, 0)); break;
        case 3: FAILED("write", count, write_byte(null)); break;
        case 4: FAILED("pipe", count, through_pipe(ends)); break;
        case 5: FAILED("map", count, map()); break;
        case 6: FAILED("nanosleep", 3, sleep_for(2000000)); break;
        }
    }
    close(null);
    close(ends[0]);
    close(ends[1]);
}

int main(int argc, char **argv) {
    CHECK(argc == 3 && pipe(empty) == 0);
    seed = strtoull(argv[1], NULL, 10);
    out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(out >= 0);
    long us = 200 + (long)next(800);
    struct itimerval often = {{0, us}, {0, us}}, never = {{0, 0}, {0, 0}};
    int has_timer = next(3) != 0, has_children = !has_timer || next(2);
    set(SIGALRM, on_signal, 0);
    set(SIGCHLD, on_signal, 0);
    if (has_timer)
        CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; has_children && i < 3; i++)
            end_at_once();
        mixture(2);
    }
    if (has_timer)
        FAILED("wait", 3, wait_for_signal());
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    say("done", 0);
}
