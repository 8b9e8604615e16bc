// Every result arrives with all its bits: errors, the numbers beyond them, and large ones.
#include "guest.h"

int main(void) {
    static const int64_t values[] = {0,           1,     -1,         -4095,     -4096,    -4097,
                                     0x7fffffff,  -511,  0xffffffff, INT64_MAX, INT64_MIN, 0x123456789abcdef0};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        CHECK(call6(SYS_getpgid, (uint64_t)values[i], 0, 0, 0, 0, 0) == values[i]);
    for (int error = 1; error < 512; error++)
        CHECK(call6(SYS_getpgid, (uint64_t)-error, 0, 0, 0, 0, 0) == -error);
}
