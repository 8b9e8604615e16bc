/* Processes that begin with vfork and execute a program. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int run(void) {
    int status;
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)0);
        _exit(1);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}
int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 10, ended = 0;
    for (int i = 0; i < count; i++) ended += run();
    printf("%d\n", ended);
    return 0;
}
