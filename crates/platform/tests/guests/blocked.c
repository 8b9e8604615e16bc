// Prints the numbers of its processes, and then waits forever in several tasks; with an argument its processes make no
// calls at all.
#include "guest.h"

static void *wait_forever(void *unused) {
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv) {
    (void)argv;
    pthread_t thread;
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        // Its own session, so that no signal to a group reaches it.
        setsid();
        if (argc > 1)
            for (;;) {
            }
        wait_forever(NULL);
    }
    CHECK(pthread_create(&thread, NULL, wait_forever, NULL) == 0);
    printf("%d %d\n", getpid(), child);
    fflush(stdout);
    ask(1);
    read(ends[0], &byte, 1);
    return 1;
}
