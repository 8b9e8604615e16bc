// Threads that the filter kills in sequence, more than a platform has places for. The last thread isn't the first, and
// ends alone.
#include "guest.h"

static void *lose(void *nothing) {
    ask(3);
    syscall(SYS_setdomainname, 0, 0);
    CHECK(0);
    return nothing;
}

static void *end(void *nothing) {
    ask(4);
    call6(SYS_exit, 0, 0, 0, 0, 0, 0);
    return nothing;
}

int main(void) {
    enum { THREADS = 300 };
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread, NULL, lose, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, end, NULL) == 0);
    call6(SYS_exit, 0, 0, 0, 0, 0, 0);
}
