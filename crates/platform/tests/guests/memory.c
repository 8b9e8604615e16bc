// A guest with a memory limit: allocations beyond it fail, calls still work, and freed memory is available again.
#include "guest.h"

enum { PIECE = 1 << 20, MOST = 4096 };

static void *once(void *nothing) {
    ask(3);
    return nothing;
}

int main(void) {
    ask(1);
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
    rlim_t most = pages * 4096 + (64 << 20);
    struct rlimit limit = {most, most};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    for (int round = 0; round < 3; round++) {
        static char *pieces[MOST];
        int count = 0;
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
        for (; count < MOST; count++) {
            pieces[count] = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, flags, -1, 0);
            if (pieces[count] == MAP_FAILED)
                break;
            *pieces[count] = 1;
        }
        CHECK(count > 10 && count < MOST && errno == ENOMEM);
        for (int i = 0; i < 30; i++)
            ask((uint64_t)i);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, once, NULL) != 0);
        for (int i = 0; i < count; i++)
            CHECK(munmap(pieces[i], PIECE) == 0);
    }
    ask(2);
}
