// Threads that make calls at the same time and wait for each other.
#include "guest.h"

enum { THREADS = 8, ROUNDS = 100 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, total;

static void *work(void *number) {
    int own = (int)(intptr_t)number;
    for (int i = 0; i < ROUNDS; i++) {
        ask((uint64_t)(own * ROUNDS + i));
        pthread_mutex_lock(&lock);
        while (turn != own)
            pthread_cond_wait(&changed, &lock);
        turn = (turn + 1) % THREADS;
        total++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    CHECK(syscall(SYS_getppid) == getppid());
    return number;
}

int main(void) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (intptr_t i = 0; i < THREADS; i++) {
        void *result;
        CHECK(pthread_join(threads[i], &result) == 0 && result == (void *)i);
    }
    CHECK(total == THREADS * ROUNDS);
}
