// A guest in a machine and its monitor: inaccessible memory and descriptors, and nonexistent calls.
#include "guest.h"
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static sigjmp_buf place;

static void on_fault(int signal) {
    siglongjmp(place, signal);
}

static int is_readable(const char *address) {
    if (sigsetjmp(place, 1) != 0)
        return 0;
    (void)*(volatile const char *)address;
    return 1;
}

// The monitor's memory can't be read, unmapped or remapped.
static int meet_memory(void) {
    static struct {
        char *first, *end;
    } maps[1024];
    int count = 0, hidden = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512], access[8];
    CHECK(file != NULL);
    while (count < 1024 && fgets(line, sizeof line, file))
        if (sscanf(line, "%p-%p %7s", (void **)&maps[count].first, (void **)&maps[count].end, access) == 3)
            count += access[0] == 'r';
    CHECK(fclose(file) == 0);
    for (int i = 0; i < count; i++) {
        if (is_readable(maps[i].first))
            continue;
        size_t length = (size_t)(maps[i].end - maps[i].first);
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        CHECK(munmap(maps[i].first, length) == -1);
        CHECK(mprotect(maps[i].first, length, PROT_READ) == -1);
        CHECK(mmap(maps[i].first, length, PROT_READ, flags, -1, 0) == MAP_FAILED);
        CHECK(mremap(maps[i].first, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x10000000) == MAP_FAILED);
        hidden++;
    }
    return hidden;
}

// The kernel reads the lower 32 bits of a call's number, and so does the monitor.
static void call_by_long_numbers(void) {
    const uint64_t high = 1UL << 32;
    static const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3}; // mov eax, 42; ret
    const int access = PROT_READ | PROT_WRITE | PROT_EXEC, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *memory = (char *)call6((long)(high | SYS_mmap), 0, 4096, (uint64_t)access, (uint64_t)flags, -1UL, 0);
    CHECK((uint64_t)memory < -4095UL);
    memcpy(memory, code, sizeof code);
    int (*function)(void);
    memcpy(&function, &memory, sizeof function);
    CHECK(function() == 42);
    // A child with its exit code on its new stack.
    uint64_t *stack = (uint64_t *)(memory + 2048);
    *stack = 5;
    register uint64_t r10 __asm__("r10") = 0;
    register uint64_t r8 __asm__("r8") = 0;
    long child;
    __asm__ volatile("syscall\n test %%eax, %%eax\n jnz 1f\n pop %%rdi\n mov %3, %%eax\n syscall\n 1:"
                     : "=a"(child)
                     : "a"(high | SYS_clone), "D"(SIGCHLD), "i"(SYS_exit_group), "S"(stack), "d"(0), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory", "cc");
    int status;
    CHECK(waitpid((pid_t)child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    child = call6((long)(high | SYS_vfork), 0, 0, 0, 0, 0, 0);
    if (child == 0)
        call6(SYS_exit_group, 6, 0, 0, 0, 0, 0);
    CHECK(waitpid((pid_t)child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 6);
    CHECK(call6((long)(high | SYS_munmap), (uint64_t)memory, 4096, 0, 0, 0, 0) == 0);
}

static void *end_at_once(void *nothing) {
    return nothing;
}

static void start_thread(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, end_at_once, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

// A descriptor that can't be closed belongs to an empty file, which stays empty, except for a device and the monitor's
// code.
static void meet_descriptors(void) {
    enum { SOME = 40 };
    int empty = 0, others = 0;
    for (int fd = 1023; fd > 2 && empty < SOME; fd--) {
        struct stat status;
        char path[32];
        if (fcntl(fd, F_GETFD) != -1 || fstat(fd, &status) != 0)
            continue;
        sprintf(path, "/proc/self/fd/%d", fd);
        int again = open(path, O_RDWR);
        if (status.st_nlink == 0 && status.st_size == 0 && again >= 0) {
            CHECK(S_ISREG(status.st_mode) && write(again, "x", 1) == -1 && errno == EPERM);
            empty++;
        } else {
            others++;
        }
        if (again >= 0)
            CHECK(close(again) == 0);
    }
    CHECK(empty == SOME && others < 8);
}

// A guest that takes all descriptors gets none of the monitor's, not even its unused ones.
static void take_all_descriptors(void) {
    enum { USUAL = 1024 };
    static int taken[USUAL];
    struct rlimit limit;
    int count = 0;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlim_t soft = limit.rlim_cur;
    limit.rlim_cur = soft < USUAL ? soft : USUAL;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (count < USUAL && (taken[count] = dup(1)) >= 0)
        count++;
    CHECK(count < USUAL && errno == EMFILE);
    start_thread();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(dup(1) == -1 && errno == EMFILE);
        start_thread();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    while (count > 0)
        CHECK(close(taken[--count]) == 0);
    limit.rlim_cur = soft;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

enum { LENT = 50 };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_mutex(void *nothing) {
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return nothing;
}

// A thread of a multithreaded process can't get its own descriptor table.
static void part_with_descriptors(void) {
    enum { UNSHARE = 2 };
    pthread_t thread;
    pthread_mutex_lock(&held);
    CHECK(pthread_create(&thread, NULL, wait_for_mutex, NULL) == 0);
    CHECK(syscall(SYS_close_range, 900, ~0u, UNSHARE) == -1 && errno == EINVAL);
    pid_t child = vfork();
    if (child == 0)
        _exit(syscall(SYS_close_range, 900, ~0u, UNSHARE) != 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    pthread_mutex_unlock(&held);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(syscall(SYS_close_range, 900, ~0u, UNSHARE) == 0);
    start_thread();
}

static void *start_many(void *started) {
    pthread_t *threads = started;
    for (int i = 0; i < LENT; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_for_mutex, NULL) == 0);
    return NULL;
}

// A limit raised for a new thread isn't inherited by a process that another thread creates meanwhile.
static void lend_limit(void) {
    static pthread_t threads[LENT];
    struct rlimit limit, lent;
    pthread_t starter;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlim_t soft = limit.rlim_cur;
    limit.rlim_cur = 256;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    pthread_mutex_lock(&held);
    CHECK(pthread_create(&starter, NULL, start_many, threads) == 0);
    for (int i = 0; i < LENT; i++) {
        pid_t child = vfork();
        if (child == 0) {
            _exit(getrlimit(RLIMIT_NOFILE, &lent) != 0 || lent.rlim_cur != limit.rlim_cur);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    CHECK(pthread_join(starter, NULL) == 0);
    pthread_mutex_unlock(&held);
    for (int i = 0; i < LENT; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    limit.rlim_cur = soft;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

int main(int argc, char **argv) {
    (void)argv;
    struct sigaction action = {.sa_handler = on_fault};
    CHECK(argc == 1 && sigaction(SIGSEGV, &action, NULL) == 0 && sigaction(SIGBUS, &action, NULL) == 0);
    CHECK(meet_memory() > 4);
    ask(1);
    call_by_long_numbers();
    CHECK(syscall(SYS_seccomp, 0, 0, 0) == -1 && errno == ENOSYS);
    CHECK(prctl(PR_SET_SECCOMP, 1) == -1 && errno == ENOSYS);
    CHECK(syscall(SYS_rseq, 0, 0, 0, 0) == -1 && errno == ENOSYS);
    // A mapping fails with more executable memory than the tables cover; less is allowed.
    const size_t large = (size_t)65 << 30;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    CHECK(mmap(NULL, large, PROT_READ | PROT_EXEC, flags, -1, 0) == MAP_FAILED && errno == ENOMEM);
    char *data = mmap(NULL, large, PROT_READ, flags, -1, 0);
    CHECK(data != MAP_FAILED && mprotect(data, large, PROT_READ | PROT_EXEC) == -1 && errno == ENOMEM);
    CHECK(mprotect(data, 1 << 20, PROT_READ | PROT_EXEC) == 0 && munmap(data, large) == 0);
    // Above the user address space.
    char *beyond = (char *)-4096;
    CHECK(mmap(beyond, 4096, PROT_READ, flags | MAP_FIXED, -1, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(munmap(beyond, 4096) == -1 && errno == EINVAL);
    int other = dup(1);
    CHECK(other > 2 && syscall(SYS_close_range, 3, ~0u, 0) == 0 && fcntl(other, F_GETFD) == -1);
    for (int fd = 3; fd < 1024; fd++) {
        CHECK(close(fd) == -1 && errno == EBADF);
        if (dup2(1, fd) == fd)
            close(fd);
    }
    ask(2);
    meet_descriptors();
    take_all_descriptors();
    part_with_descriptors();
    lend_limit();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        ask(3);
        _exit(5);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
}
