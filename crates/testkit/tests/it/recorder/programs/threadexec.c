/* A thread that is not the first executes a program, while others run. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *sleeps(void *unused) {
    for (;;) pause();
    return unused;
}
static void *executes(void *unused) {
    execl("/bin/echo", "echo", "of a thread", (char *)0);
    return unused;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, sleeps, 0);
    pthread_create(&threads[3], 0, executes, 0);
    pthread_join(threads[3], 0);
    return 1;
}
