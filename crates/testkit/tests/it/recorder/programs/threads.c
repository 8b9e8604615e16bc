/* Threads that come and go, with locks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static void *work(void *unused) {
    for (int i = 0; i < 50; i++) {
        syscall(SYS_getpgid, 0L);
        pthread_mutex_lock(&lock);
        sum++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 8;
    for (int done = 0; done < count; done += 8) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, 0);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    }
    printf("%ld\n", sum);
    return 0;
}
