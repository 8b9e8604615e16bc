// Many short threads, as many processes, and many calls; the counts are arguments.
#include "guest.h"

static void *once(void *seed) {
    ask((uintptr_t)seed);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int tasks = atoi(argv[1]), calls = atoi(argv[2]);
    for (int i = 0; i < calls; i++)
        ask(i);
    enum { AT_ONCE = 50 };
    for (int left = tasks; left > 0; left -= AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (uintptr_t i = 0; i < AT_ONCE; i++)
            CHECK(pthread_create(&threads[i], NULL, once, (void *)i) == 0);
        for (int i = 0; i < AT_ONCE; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        for (int i = 0; i < AT_ONCE; i++)
            if (fork() == 0) {
                ask(i);
                _exit(0);
            }
        int status;
        while (wait(&status) > 0)
            CHECK(status == 0);
    }
}
