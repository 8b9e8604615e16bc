/* Calls of i386 in a program of x86-64, of several threads and after a fork. */
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static long i386(long nr, long first) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(first) : "memory", "r8", "r9", "r10", "r11");
    return result;
}
int main(void) {
    int good = 0;
    for (int i = 0; i < 20; i++) good += (int)i386(20, 0) == getpid(); /* getpid */
    good += (int)i386(6, 999) == -9;                                  /* close */
    good += (int)i386(400, 0) < 0;
    if (fork() == 0) {
        i386(20, 0);
        i386(252, 0); /* exit_group */
    }
    wait(0);
    printf("%d\n", good);
    return 0;
}
