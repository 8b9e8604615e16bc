// A hundred tasks at once: fifty processes with two threads each, all making calls.
#include "guest.h"

static void *work(void *number) {
    for (uint64_t i = 0; i < 20; i++)
        ask((uint64_t)(intptr_t)number + i);
    return NULL;
}

int main(void) {
    for (intptr_t i = 0; i < 50; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, work, (void *)i) == 0);
            work((void *)(i + 1000));
            CHECK(pthread_join(thread, NULL) == 0);
            _exit(0);
        }
    }
    for (int i = 0; i < 50; i++) {
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
}
