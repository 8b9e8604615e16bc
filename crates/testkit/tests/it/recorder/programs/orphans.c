/* Processes that outlive their parent. */
#include <stdio.h>
#include <unistd.h>
int main(void) {
    int ends[2];
    char byte;
    if (pipe(ends)) return 1;
    for (int i = 0; i < 4; i++) {
        if (fork() == 0) {
            if (fork() == 0) {
                usleep(20000);
                getpgrp();
                _exit(write(ends[1], "x", 1) != 1);
            }
            _exit(0);
        }
    }
    close(ends[1]);
    int count = 0;
    while (read(ends[0], &byte, 1) == 1) count++;
    printf("%d\n", count);
    return 0;
}
