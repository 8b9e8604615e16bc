/* Calls that signals interrupt, with and without being started again. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void caught(int signal) {
    (void)signal;
}
int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = caught;
    for (int restarts = 0; restarts < 2; restarts++) {
        action.sa_flags = restarts ? SA_RESTART : 0;
        sigaction(SIGALRM, &action, 0);
        struct itimerval once = {{0, 0}, {0, 10000}};
        int ends[2];
        if (pipe(ends)) return 1;
        if (fork() == 0) {
            usleep(60000);
            _exit(write(ends[1], "x", 1) != 1);
        }
        setitimer(ITIMER_REAL, &once, 0);
        char byte;
        ssize_t result = read(ends[0], &byte, 1);
        printf("%d %d\n", (int)result, result < 0 ? errno : 0);
        wait(0);
    }
    struct itimerval once = {{0, 0}, {0, 10000}};
    setitimer(ITIMER_REAL, &once, 0);
    struct timespec time = {0, 50000000}, left;
    printf("%d\n", nanosleep(&time, &left));
    return 0;
}
