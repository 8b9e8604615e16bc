// Children of a guest in a machine that attack their monitor: by stores, which must fault; by the kernel's writes to
// its memory, found by its shim; by jumps into the shim; and by their own code in the monitor's code, outside of the
// machine. A denied call stays denied: a child with another result ends with 9. Its parent continues.
#include "guest.h"
#include <fcntl.h>

enum { PAGE = 4096, SHIM = 1 << 20, RUNS = 4 << 20, STACKS = 8 << 20, TABLES = 24 << 20, EVADED = 9 };
static int memory;
static char *base;
static sigjmp_buf place;

static void on_fault(int signal) {
    siglongjmp(place, signal);
}

static int is_writable(volatile char *address) {
    if (sigsetjmp(place, 1) != 0)
        return 0;
    *address = 0x5a;
    return 1;
}

// Finds the monitor's memory by the stub of its first exception, and its code by the bytes of a function.
static char *find(const char *wanted, const void *pattern, size_t size) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], access[8], *first, *end, *found = NULL;
    CHECK(maps != NULL);
    while (!found && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%p-%p %7s", (void **)&first, (void **)&end, access) != 3 || strcmp(access, wanted) != 0)
            continue;
        if (access[2] == 'x') {
            char *text = malloc(end - first), *at;
            ssize_t count = pread(memory, text, end - first, (off_t)(uintptr_t)first);
            if (count > 0 && (at = memmem(text, count, pattern, size)))
                found = first + (at - text);
            free(text);
            continue;
        }
        enum { STEP = 1 << 16 };
        char bytes[16], *one = (char *)(((uintptr_t)first + STEP - 1) & -(uintptr_t)STEP);
        for (; end - first > SHIM && one < end && !found; one += STEP)
            if (pread(memory, bytes, size, (off_t)(uintptr_t)one + 64) == (ssize_t)size && memcmp(bytes, pattern, size) == 0)
                found = one;
    }
    fclose(maps);
    return found;
}

static void overwrite(uint64_t at, size_t size) {
    static char noise[PAGE];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)(i * 0x9e3779b1u >> 13);
    for (size_t done = 0; done < size; done += PAGE)
        pwrite(memory, noise, PAGE, (off_t)((uintptr_t)base + at + done));
}

static void stay_denied(void) {
    for (int i = 0; i < 20; i++)
        if (call6(SYS_acct, 0, 0, 0, 0, 0, 0) != -ENOTTY)
            _exit(EVADED);
}

static volatile int is_done;

static void *forge_frames(void *nothing) {
    // Frames of the first thread, in its writable page: with selectors of the monitor.
    volatile uint64_t *frame = (uint64_t *)(base + SHIM + 3 * PAGE + 0x800);
    while (!is_done) {
        frame[1] = 0x08;
        frame[4] = 0x10;
    }
    return nothing;
}

// Code that makes a call of the 32-bit interface, or one of the monitor's calls, at the place where the monitor returns
// from signals.
static void run_in_monitor(int is_i386) {
    static const unsigned char returns[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b};
    static const unsigned char calls[] = {0x48, 0x89, 0xf8, 0x49, 0x89, 0xf3, 0x48, 0x89, 0xd1, 0x49, 0x8b, 0x3b};
    unsigned char there[] = {0xcd, 0x80, 0xc3, 0x90};
    unsigned char code[] = {0x53, 0x8b, 0x06, 0x8b, 0x5e, 0x08, 0x8b, 0x4e, 0x10, 0x8b, 0x56, 0x18, 0x49, 0xbb,
                            0,    0,    0,    0,    0,    0,    0,    0,    0x41, 0xff, 0xd3, 0x5b, 0xc3};
    char *at = find("r-xp", returns, sizeof returns), *entry = find("r-xp", calls, sizeof calls);
    CHECK(at != NULL && entry != NULL);
    uint64_t target = (uintptr_t)at + 5;
    memcpy(code + 14, &target, sizeof target);
    if (!is_i386)
        there[0] = 0x0f, there[1] = 0x05;
    CHECK(pwrite(memory, there, sizeof there, (off_t)target) == sizeof there);
    CHECK(pwrite(memory, code, sizeof code, (off_t)(uintptr_t)entry) == sizeof code);
    if (!is_i386)
        // `openat`, for which the filter kills here.
        call6(SYS_getuid, SYS_openat, 0, 0, 0, 0, 0);
    // Each of the monitor's numbers is a different call of that interface; the last ends the process.
    static const int own[] = {16, 28, 11, 14, 13, 15, 3, 72, 9, 272, 186, 200};
    int code_of_exit = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (call6(SYS_getuid, own[i], 0, 0, 0, 0, 0) != -EXDEV)
            code_of_exit = EVADED;
    call6(SYS_getuid, 252, code_of_exit, 0, 0, 0, 0);
}

static void attack(int how) {
    alarm(3);
    pthread_t thread;
    // The file is the memory of the process that has opened it.
    memory = open("/proc/self/mem", O_RDWR);
    CHECK(memory >= 0);
    switch (how) {
    case 0: overwrite(SHIM, PAGE); break;
    case 1: overwrite(SHIM + PAGE, PAGE); break;
    case 2: overwrite(SHIM + 2 * PAGE, 4 * PAGE); break;
    case 3: overwrite(TABLES, 16 * PAGE); break;
    case 4: overwrite(RUNS, 4 * PAGE); break;
    case 5: overwrite(STACKS, 16 * PAGE); break;
    case 6: overwrite(0, 4 * PAGE); break;
    case 7:
        pthread_create(&thread, NULL, forge_frames, NULL);
        break;
    case 8: run_in_monitor(0); _exit(EVADED);
    case 9: run_in_monitor(1); _exit(EVADED);
    default: ((void (*)(void))(base + SHIM + (how - 10)))();
    }
    stay_denied();
}

int main(int argc, char **argv) {
    (void)argv;
    struct sigaction action = {.sa_handler = on_fault};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
    memory = open("/proc/self/mem", O_RDWR);
    CHECK(memory >= 0);
    char *shim = find("rw-p", "\x6a\x00\xe6\x11\x0f\x0b", 6);
    CHECK(shim != NULL);
    base = shim - SHIM;
    // Stores to the monitor's memory fault, except in the page of frames.
    static const int kept[] = {0, SHIM, SHIM + PAGE, SHIM + 2 * PAGE, RUNS, STACKS, TABLES};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        CHECK(!is_writable(base + kept[i]));
    action.sa_handler = SIG_DFL;
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
    enum { HOWS = 10 + 20 };
    for (int how = 0; how < HOWS; how++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            attack(how);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != EVADED);
        if (how == 8)
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
        if (how == 9 && argc > 1)
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        ask(how);
        CHECK(call6(SYS_acct, 0, 0, 0, 0, 0, 0) == -ENOTTY);
    }
}
