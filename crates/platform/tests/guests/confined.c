// A guest that installs a filter of its own goes on to ask, with code as it was linked; so does one that has its patched
// sites rolled back (argument "asks"). The filter allows nothing but what the guest itself calls.
#include "guest.h"
#include "filter.h"

extern const unsigned char __executable_start[], etext[];

static uint64_t hash(void) {
    uint64_t hash = 0;
    for (const unsigned char *place = __executable_start; place < etext; place++)
        hash = (hash ^ *place) * 0x100000001b3;
    return hash;
}

static int is_shared(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int found = 0;
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, "memfd:tamis") != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static void ask_often(void) {
    for (int i = 0; i < 1000; i++)
        ask(i);
}

static void confine(void) {
    // The last is what a filter sees of a call that is skipped at its entry, on the platform ptrace-syscall.
    const int allowed[] = {SYS_getpriority, SYS_write, SYS_exit_group, -1};
    CHECK(allow_only(allowed, sizeof allowed / sizeof *allowed, 0) == 0);
}

int main(int argc, char **argv) {
    (void)argv;
    uint64_t linked = hash();
    ask_often();
    CHECK((hash() != linked) == is_shared());
    if (argc > 1) {
        CHECK(is_shared());
        CHECK(call6(SYS_getpgid, 0x0badc0de, 0, 0, 0, 0, 0) == 0x0badc0de);
        ask(1);
    } else {
        confine();
    }
    CHECK(hash() == linked);
    ask_often();
    CHECK(hash() == linked);
    _exit(0);
}
