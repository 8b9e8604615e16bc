// A guest that installs its own filter can still make calls, and its code is unpatched; the same holds for a guest that
// has its patched sites rolled back (argument "asks"), for a child of vfork that installs a filter ("lends"), and for a
// thread that does so while others wait for such children ("storm"). The filter allows only the guest's own calls.
#include "guest.h"
#include "filter.h"
#include <stdatomic.h>

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
    // The last is the number that a filter sees for a call skipped at its entry, on the platform ptrace-syscall.
    const int allowed[] = {SYS_getpriority, SYS_write, SYS_exit_group, SYS_sched_yield, -1};
    CHECK(allow_only(allowed, sizeof allowed / sizeof *allowed, 0) == 0);
}

// In a child that shares the memory of its parent.
static void lend(uint64_t linked) {
    int status;
    pid_t child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
        confine();
        CHECK(hash() == linked);
        ask_often();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

enum { BORROWS, NESTS, COPIES, EXECUTES, KINDS };
static char *self;
static atomic_int started, ended, is_done;

static void *lend_often(void *kind) {
    const intptr_t how = (intptr_t)kind;
    int status;
    do {
        pid_t child = how == COPIES ? (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) : vfork();
        CHECK(child >= 0);
        if (child == 0) {
            if (how == EXECUTES) {
                execv(self, (char *[]){self, "ends", NULL});
                _exit(1);
            }
            if (how == NESTS) {
                pid_t inner = vfork();
                CHECK(inner >= 0);
                if (inner == 0) {
                    ask(1);
                    _exit(0);
                }
                CHECK(waitpid(inner, &status, 0) == inner && status == 0);
            }
            ask(2);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        atomic_fetch_or(&started, 1 << how);
    } while (!atomic_load(&is_done));
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static void storm(uint64_t linked) {
    pthread_t thread;
    for (intptr_t kind = 0; kind < KINDS; kind++)
        CHECK(pthread_create(&thread, NULL, lend_often, (void *)kind) == 0);
    while (atomic_load(&started) != (1 << KINDS) - 1)
        ask(3);
    confine();
    CHECK(hash() == linked);
    ask_often();
    atomic_store(&is_done, 1);
    while (atomic_load(&ended) != KINDS)
        sched_yield();
}

int main(int argc, char **argv) {
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "ends") == 0)
        _exit(0);
    uint64_t linked = hash();
    ask_often();
    CHECK((hash() != linked) == is_shared());
    if (argc > 1 && strcmp(argv[1], "storm") == 0) {
        storm(linked);
        CHECK(hash() == linked);
        _exit(0);
    } else if (argc > 1 && strcmp(argv[1], "lends") == 0) {
        lend(linked);
        CHECK(hash() == linked);
        _exit(0);
    } else if (argc > 1) {
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
