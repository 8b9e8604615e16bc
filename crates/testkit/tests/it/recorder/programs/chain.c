/* A program that executes itself again and again. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int left = argc > 1 ? atoi(argv[1]) : 3;
    if (left > 0) {
        char text[20];
        snprintf(text, sizeof text, "%d", left - 1);
        execl(argv[0], argv[0], text, (char *)0);
        return 1;
    }
    puts("end");
    return 0;
}
