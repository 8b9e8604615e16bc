// A forked process shares no memory with its parent, not even the platform's, and a signal handler that has interrupted
// a call may fork.
#include "guest.h"

static pid_t parent;
static volatile sig_atomic_t forks;

// The last word of the memory that a platform shares with the guest; null without such a mapping.
static volatile uint32_t *find(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], *end = NULL;
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "memfd:tamis"))
            CHECK(sscanf(line, "%*p-%p", (void **)&end) == 1);
    if (maps)
        fclose(maps);
    return end ? (uint32_t *)end - 1 : NULL;
}

static void check_end(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void set_alarm(void) {
    const struct itimerval soon = {{0, 0}, {0, 5000}};
    CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
}

// The program and the handler call from the same site, so that both are patched.
static __attribute__((noinline)) void ask_here(uint64_t seed) {
    ask(seed);
}

// A child's actions in the handler, before it returns: calls, a process of its own, both or nothing.
static void in_child(void) {
    const int calls = forks & 1, has_child = forks & 2;
    if (calls)
        ask_here(~0ull);
    pid_t child = has_child ? fork() : 0;
    if (child != 0)
        check_end(child);
    else if (calls)
        ask_here(~1ull);
}

static void on_alarm(int signal) {
    (void)signal;
    pid_t child = fork();
    if (child == 0) {
        in_child();
        return;
    }
    check_end(child);
    forks++;
    // Not earlier, or a slow fork would leave no time for other work.
    set_alarm();
}

int main(void) {
    parent = getpid();
    for (int i = 0; i < 100; i++)
        ask(i);
    volatile uint32_t *word = find();
    if (word)
        *word = 4711;
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(find() == word && (!word || *word == 0));
            for (int j = 0; j < 100; j++)
                ask(j);
            if (word)
                *word = 815;
            _exit(0);
        }
        check_end(child);
        CHECK(!word || *word == 4711);
        for (int j = 0; j < 100; j++)
            ask(j);
    }
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    const struct itimerval never = {{0, 0}, {0, 0}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    set_alarm();
    for (uint64_t i = 0; forks < 16; i++) {
        ask_here(i);
        // A child that has returned from the handler, and from the call.
        if (getpid() != parent)
            _exit(0);
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}
