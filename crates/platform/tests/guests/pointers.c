// The supervisor reads and writes accessible memory of the guest, and gets an error for other memory.
#include "guest.h"

static long copy(uint64_t from, uint64_t to) {
    return call6(SYS_personality, from, to, 0, 0, 0, 0);
}

int main(void) {
    uint64_t number = 41, next = 0;
    uint64_t good = (uint64_t)&number, target = (uint64_t)&next;
    CHECK(copy(good, target) == 8 && next == 42);
    static const uint64_t bad[] = {0, 8, 0x7ffffffff000, 0x800000000000, 0xffff800000000000, 0xfffffffffffffff8};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(copy(bad[i], target) == -EFAULT);
        CHECK(copy(good, bad[i]) == -EFAULT);
    }
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    // Four bytes are mapped, four are not.
    CHECK(copy((uint64_t)(pages + 4092), target) == 4);
    char *constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(constant != MAP_FAILED && copy(good, (uint64_t)constant) == -EFAULT);
    CHECK(copy((uint64_t)constant, target) == 8 && next == 1);
}
