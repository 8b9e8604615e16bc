// Calls through the vsyscall page: 100 answered by the supervisor, 100 forwarded, and as many by the instruction.
#include "guest.h"

static const uintptr_t GETTIMEOFDAY = 0xffffffffff600000, TIME = 0xffffffffff600400;

int main(void) {
    long (*time_of_page)(uintptr_t) = (long (*)(uintptr_t))TIME;
    long (*gettimeofday_of_page)(struct timeval *, void *) = (long (*)(struct timeval *, void *))GETTIMEOFDAY;
    for (int i = 0; i < 100; i++) {
        struct timeval now = {0, 0};
        CHECK(time_of_page(0x71e) == 99);
        CHECK(gettimeofday_of_page(&now, NULL) == 0 && now.tv_sec != 0);
        CHECK(call6(SYS_time, 0x71e, 0, 0, 0, 0, 0) == 99);
        ask(i);
    }
}
