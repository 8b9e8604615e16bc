// Signals between calls, in them, and on a stack of their own.
#include "guest.h"

static volatile sig_atomic_t count;
static int ends[2];

static void on_alarm(int signal) {
    (void)signal;
    count++;
    ask((uint64_t)count);
}

static void on_user(int signal) {
    (void)signal;
    char byte = 1;
    count++;
    CHECK(write(ends[1], &byte, 1) == 1);
}

static void set(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK(sigaction(signal, &action, NULL) == 0);
}

int main(void) {
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    set(SIGALRM, on_alarm, SA_RESTART);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (uint64_t i = 0; count < 20; i++)
        ask(i);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    // A blocked signal waits.
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    CHECK(sigprocmask(SIG_BLOCK, &mask, NULL) == 0);
    int before = count;
    raise(SIGALRM);
    ask(1);
    CHECK(count == before);
    CHECK(sigprocmask(SIG_UNBLOCK, &mask, NULL) == 0 && count == before + 1);
    // A blocked call fails with EINTR, or continues if it is to be restarted.
    char byte = 0;
    CHECK(pipe(ends) == 0);
    struct itimerval once = {{0, 0}, {0, 20000}};
    set(SIGALRM, on_alarm, 0);
    CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
    CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR);
    set(SIGALRM, on_user, SA_RESTART);
    CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 1);
    // On another stack.
    stack_t other = {.ss_sp = malloc(65536), .ss_size = 65536};
    CHECK(sigaltstack(&other, NULL) == 0);
    set(SIGUSR1, on_user, SA_ONSTACK);
    before = count;
    raise(SIGUSR1);
    CHECK(count == before + 1 && read(ends[0], &byte, 1) == 1);
}
