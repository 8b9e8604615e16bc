// A signal handler that has interrupted a call makes calls with another thread base, and another thread begins to make
// calls meanwhile.
#include "guest.h"

enum { ROUNDS = 3, CALLS = 100, ANSWER_MS = 10 };

static char block[4096] __attribute__((aligned(64)));
static volatile int rounds_begun, rounds_asked, signals;

// All threads call from the same sites.
static __attribute__((noinline)) void ask_here(uint64_t seed) {
    ask(seed);
}

static __attribute__((noinline)) void wait_here(uint64_t time_ms) {
    CHECK(call6(SYS_getgid, time_ms, 0, 0, 0, 0, 0) == 99);
}

// Without a stack protector, which uses thread-local storage.
static __attribute__((optimize("no-stack-protector"))) void on_signal(int signal) {
    const uint64_t own = thread_base();
    set_thread_base((uint64_t)(block + sizeof block / 2));
    for (int i = 0; i < CALLS; i++)
        ask_here((uint64_t)(signal + i));
    const int round = signals++;
    while (rounds_asked <= round)
        call6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    set_thread_base(own);
}

// One of several threads that make their first calls while another call is interrupted.
static void *ask_in_turn(void *number) {
    const int round = (int)(intptr_t)number;
    while (signals <= round)
        sched_yield();
    // By then the supervisor has answered the interrupted call.
    for (int i = 0; i < 2 * ANSWER_MS; i++)
        wait_a_moment();
    for (uint64_t i = 0; i < CALLS; i++)
        ask_here(i);
    rounds_asked = round + 1;
    // The last answer is still stored when the interrupted call continues.
    wait_for_ever();
    return NULL;
}

static void *interrupt(void *thread) {
    for (int round = 0; round < ROUNDS; round++) {
        while (rounds_begun <= round)
            sched_yield();
        wait_a_moment();
        CHECK(pthread_kill(*(pthread_t *)thread, SIGUSR1) == 0);
    }
    return NULL;
}

int main(void) {
    pthread_t self = pthread_self(), thread;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (uint64_t i = 0; i < CALLS; i++) {
        ask_here(i);
        wait_here(0);
    }
    for (intptr_t i = 0; i < ROUNDS; i++)
        CHECK(pthread_create(&thread, NULL, ask_in_turn, (void *)i) == 0);
    CHECK(pthread_create(&thread, NULL, interrupt, &self) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        rounds_begun = round + 1;
        wait_here(ANSWER_MS);
        // The signal may come late.
        while (signals <= round)
            sched_yield();
        ask_here(7);
    }
    _exit(0);
}
