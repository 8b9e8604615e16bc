// All six arguments arrive with all 64 bits.
#include "guest.h"

int main(void) {
    static const uint64_t values[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
                                      0x8000000000000000, 0xffffffffffffffff};
    for (int place = 0; place < 6; place++)
        for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
            uint64_t a[6] = {2, 3, 5, 7, 11, 13};
            a[place] = values[i];
            CHECK((uint64_t)call6(SYS_getpriority, a[0], a[1], a[2], a[3], a[4], a[5]) ==
                  sum6(a[0], a[1], a[2], a[3], a[4], a[5]));
        }
}
