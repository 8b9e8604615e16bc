/* Processes that fork others, all at once. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 10, ended = 0;
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            if (i % 2 && fork() == 0) _exit(getppid() == 0);
            _exit(0);
        }
    }
    while (wait(0) > 0) ended++;
    printf("%d\n", ended);
    return 0;
}
