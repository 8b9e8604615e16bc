// The filter's actions for calls that create and end tasks, and for signals that can't be ignored: one scene, selected
// by the argument. The filter is the same in all scenes except `h` (kills the process at rt_sigreturn) and `e` (returns
// EINTR for fork).
//   clone(CLONE_VM | SIGCHLD)   kills the process      exit(31)   kills the process
//   fork                        kills the thread       exit(32)   is trapped
//   vfork                       is trapped             acct       is trapped
//   clone(CLONE_VM | CLONE_VFORK | SIGUSR1)   fails with ENOTTY
#include "guest.h"
#include <fcntl.h>
#include <stdatomic.h>

static volatile sig_atomic_t trapped;

static void on_trap(int signal) {
    CHECK(signal == SIGSYS);
    trapped++;
}

static void handle(void) {
    struct sigaction action = {.sa_handler = on_trap};
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
}

static void ignore(int signal) { (void)signal; }

static void *end(void *code) {
    call6(SYS_exit, (uint64_t)(intptr_t)code, 0, 0, 0, 0, 0);
    CHECK(trapped == 1 && code == (void *)32);
    return NULL;
}

static void *fork_once(void *nothing) {
    call_fork();
    CHECK(0);
    return nothing;
}

static atomic_int go;

static void *end_together(void *nothing) {
    atomic_store(&go, 1);
    while (atomic_load(&go) != 2)
        ;
    call6(SYS_exit, 0, 0, 0, 0, 0, 0);
    return nothing;
}

static void *end_alone(void *nothing) {
    ask(5);
    return nothing;
}

// The status of a child that has a thread, closes all descriptors that it doesn't need, and executes this program
// again, by its path: on some platforms `/proc/self/exe` is the supervisor.
static int execute_in_child(const char *program) {
    pthread_t thread;
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(pthread_create(&thread, NULL, end_alone, NULL) == 0 && pthread_join(thread, NULL) == 0);
        for (int fd = 3; fd < 32; fd++)
            close(fd);
        CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0);
        execl(program, "decided", "n", (char *)NULL);
        CHECK(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static void limit_descriptors(rlim_t soft, rlim_t hard) {
    const struct rlimit limit = {soft, hard};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

enum { FEW = 24 };

// Takes all descriptors below the limit, and returns the last.
static int take_descriptors(int flags) {
    int taken, last = -1;
    while ((taken = fcntl(1, flags, 0)) >= 0)
        last = taken;
    CHECK(errno == EMFILE && last > 2);
    return last;
}

// The status of a child without free descriptors. A program is executed all the same, or fails with an error that the
// kernel may return, too. The filter also decides about calls that lack resources.
static int execute_without_room(const char *program) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        limit_descriptors(FEW, FEW);
        int last = take_descriptors(F_DUPFD);
        CHECK(call6(SYS_clone, CLONE_VM | CLONE_VFORK | SIGUSR1, 0, 0, 0, 0, 0) == -ENOTTY);
        execl(program, "decided", "n", (char *)NULL);
        CHECK(errno == EMFILE && close(last) == 0 && close(last - 1) == 0);
        take_descriptors(F_DUPFD_CLOEXEC);
        execl(program, "decided", "n", (char *)NULL);
        CHECK(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

// A thread that waits for its child of vfork while another one creates threads. The child has its own descriptor table.
static void *lend(void *nothing) {
    int status, last;
    pid_t child = (pid_t)call6(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) {
        atomic_store(&go, 1);
        while (atomic_load(&go) != 2)
            sched_yield();
        last = take_descriptors(F_DUPFD);
        CHECK(close(last) == 0 && dup(1) == last);
        // Descriptors for a machine.
        CHECK(close(3) == 0 && close(4) == 0);
        pid_t copy = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        CHECK(copy >= 0);
        if (copy == 0) {
            for (int fd = 5; fd <= last; fd++)
                CHECK(fcntl(fd, F_GETFD) == 0 && close(fd) == 0);
            _exit(0);
        }
        CHECK(waitpid(copy, &status, 0) == copy && status == 0);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return nothing;
}

static void *stay(void *nothing) {
    atomic_fetch_add(&go, 1);
    wait_for_ever();
    return nothing;
}

static void *make_one(void *nothing) {
    pthread_t thread;
    atomic_store(&go, 1);
    CHECK(pthread_create(&thread, NULL, stay, NULL) == 0);
    while (atomic_load(&go) != 2)
        sched_yield();
    return nothing;
}

// Limits that are set during the creation of other threads are kept. They may differ for a moment.
static void set_limits(void) {
    enum { THREADS = 20, LOOKS = 1000000 };
    struct rlimit limit, now;
    pthread_t thread;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int i = 0; i < THREADS; i++) {
        atomic_store(&go, 0);
        CHECK(pthread_create(&thread, NULL, make_one, NULL) == 0);
        while (atomic_load(&go) != 2) {
            limit.rlim_cur = limit.rlim_cur == 16 ? 17 : 16;
            CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
            int looks = 0;
            do
                CHECK(getrlimit(RLIMIT_NOFILE, &now) == 0 && looks++ < LOOKS);
            while (now.rlim_cur != limit.rlim_cur || now.rlim_max != limit.rlim_max);
        }
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    pthread_t thread;
    switch (argv[1][0]) {
    case 'k':
        // A thread ends that isn't the last.
        CHECK(pthread_create(&thread, NULL, end, (void *)31) == 0 && pthread_join(thread, NULL) == 0);
        return 1;
    case 't':
        handle();
        CHECK(pthread_create(&thread, NULL, end, (void *)32) == 0 && pthread_join(thread, NULL) == 0);
        return 21;
    case 'l':
        // The last thread doesn't end.
        handle();
        call6(SYS_exit, 32, 0, 0, 0, 0, 0);
        CHECK(trapped == 1);
        ask(1);
        return 22;
    case 'i':
        CHECK(signal(SIGSYS, SIG_IGN) == SIG_DFL);
        syscall(SYS_acct, 0);
        return 1;
    case 'v':
        handle();
        call_vfork();
        CHECK(trapped == 1);
        ask(2);
        return 23;
    case 'f':
        // A thread that the filter kills while it creates a process.
        CHECK(pthread_create(&thread, NULL, fork_once, NULL) == 0 && pthread_join(thread, NULL) == 0);
        ask(3);
        return 24;
    case 'h':
        CHECK(signal(SIGUSR1, ignore) == SIG_DFL && raise(SIGUSR1) == 0);
        return 1;
    case 'e':
        alarm(20);
        CHECK(call_fork() == -1 && errno == EINTR);
        ask(4);
        return 26;
    case 'm': {
        // Fewer descriptors than a machine needs: threads, children and programs continue.
        struct rlimit few, now;
        CHECK(getrlimit(RLIMIT_NOFILE, &few) == 0);
        few.rlim_cur = 16;
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        CHECK(pthread_create(&thread, NULL, end_alone, NULL) == 0 && pthread_join(thread, NULL) == 0);
        CHECK(execute_in_child(argv[0]) == 0);
        CHECK(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 16 && now.rlim_max == few.rlim_max);
        // They don't fail either if the limit can't be raised any more.
        few.rlim_max = 16;
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        CHECK(pthread_create(&thread, NULL, end_alone, NULL) == 0 && pthread_join(thread, NULL) == 0);
        CHECK(execute_in_child(argv[0]) == 0);
        CHECK(raise(SIGTERM) == 0);
        return 1;
    }
    case 'n':
        ask(6);
        return 0;
    case 'o':
        return execute_without_room(argv[0]) == 0 ? 27 : 1;
    case 'b':
        limit_descriptors(FEW, FEW);
        CHECK(pthread_create(&thread, NULL, lend, NULL) == 0);
        while (atomic_load(&go) != 1)
            sched_yield();
        CHECK(pthread_create(&(pthread_t){0}, NULL, end_alone, NULL) == 0);
        atomic_store(&go, 2);
        CHECK(pthread_join(thread, NULL) == 0);
        return 28;
    case 'w':
        set_limits();
        return 29;
    case 'c':
        syscall(SYS_clone, CLONE_VM | SIGCHLD, 0, 0, 0, 0);
        return 1;
    case 's': {
        // The process ends during signals.
        struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART};
        struct itimerval often = {{0, 500}, {0, 500}};
        CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
        for (int i = 0; i < 20; i++)
            ask((uint64_t)i);
        call6(SYS_exit, 25, 0, 0, 0, 0, 0);
        return 1;
    }
    default:
        // The last two threads end at the same time; if the process doesn't end, the alarm ends it.
        alarm(20);
        CHECK(pthread_create(&thread, NULL, end_together, NULL) == 0);
        while (atomic_load(&go) != 1)
            ;
        atomic_store(&go, 2);
        call6(SYS_exit, 0, 0, 0, 0, 0, 0);
        return 1;
    }
}
