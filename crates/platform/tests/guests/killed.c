// Tasks that are killed at any point of their calls: alone, and with the other threads of their process.
#include "guest.h"

static void *call_forever(void *seed) {
    for (uint64_t i = (uint64_t)(intptr_t)seed;; i++)
        ask(i);
    return NULL;
}

int main(void) {
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            pthread_t thread;
            if (i % 2)
                CHECK(pthread_create(&thread, NULL, call_forever, (void *)7) == 0);
            // Some have children of their own, which are killed by the end of the guest.
            if (i % 10 == 9 && fork() == 0)
                call_forever((void *)9);
            call_forever((void *)8);
        }
        for (int calls = 0; calls < i % 7; calls++)
            ask((uint64_t)calls);
        int status;
        CHECK(kill(child, SIGKILL) == 0);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
}
