// The guest handles its own faults, and a handler may call and jump away.
#include "guest.h"

static sigjmp_buf place;
static void *volatile address;

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)context;
    CHECK(signal == SIGSEGV);
    address = info->si_addr;
    ask(11);
    siglongjmp(place, 1);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    for (int i = 0; i < 50; i++) {
        if (sigsetjmp(place, 1) == 0) {
            *(volatile char *)(page + i) = 1;
            CHECK(!"a fault");
        }
        CHECK(address == page + i);
        ask((uint64_t)i);
    }
}
