// Children that attack the platform's data in their memory: one writes at random to the memory shared with the
// supervisor while it makes calls, one maps other memory over that, one jumps into the platform's code, one maps other
// memory over that code, one has threads that pretend to be another, and one announces threads that don't exist. The
// supervisor and the parent must continue in all cases.
#include "guest.h"
#include <sys/wait.h>

static char *first, *end;
static volatile int is_done;

// Finds the mapping with this text in its line; false if there is none.
static int find(const char *text) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int found = 0;
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, text))
            found = sscanf(line, "%p-%p", (void **)&first, (void **)&end) == 2;
    if (maps)
        fclose(maps);
    return found;
}

static void *write_at_random(void *nothing) {
    uint32_t random = 1;
    while (!is_done)
        for (char *place = first; place < end; place += sizeof random) {
            random = random * 1664525 + 1013904223;
            if (random >> 29 == 0)
                *(volatile uint32_t *)place = random;
            else if (random >> 29 == 1)
                *(volatile uint32_t *)place = random >> 8 & 3;
        }
    return nothing;
}

static void call_often(void) {
    for (int i = 0; i < 20000; i++)
        call6(SYS_getpgid, i, 0, 0, 0, 0, 0);
}

// The thread base that other threads take.
static uint64_t victim_base;

static void *pretend(void *nothing) {
    const uint64_t own = thread_base();
    set_thread_base(victim_base);
    for (int i = 0; i < 5000; i++)
        call6(SYS_getpgid, i, 0, 0, 0, 0, 0);
    set_thread_base(own);
    return nothing;
}

static void forge(void) {
    pthread_t threads[3];
    victim_base = thread_base();
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, pretend, NULL);
    call_often();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static void attack(int how) {
    alarm(1);
    if (!find("memfd:tamis"))
        return;
    if (how == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, write_at_random, NULL);
        call_often();
        is_done = 1;
    } else if (how == 1) {
        mmap(first, end - first, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        call_often();
    } else if (how == 2) {
        forge();
    } else if (how == 3) {
        // The call that announces a thread, with arbitrary FS bases.
        for (uint64_t i = 0; i < 3000; i++)
            call6(0x3a710001, i * 0x9e3779b97f4a7c15, 0, 0, 0, 0, 0);
        call_often();
    } else if (!find("r-xp 00000000 00:00 0 \n")) {
        return;
    } else if (how == 4) {
        mmap(first, end - first, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        call_often();
    } else {
        for (int offset = 0; offset < 64; offset++)
            if (fork() == 0) {
                alarm(1);
                ((void (*)(void))(first + offset))();
                _exit(0);
            }
        while (wait(NULL) > 0)
            ;
    }
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        for (int i = 0; i < 100; i++)
            ask(i);
        CHECK(find("memfd:tamis"));
        for (int i = 0; i < 900; i++)
            ask(i);
        // Without thread-local storage, as in programs that have none.
        const uint64_t own = thread_base();
        set_thread_base(0);
        for (int i = 0; i < 100; i++)
            ask(i);
        set_thread_base(own);
        return 0;
    }
    for (int how = 0; how < 6; how++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            // Enough calls for the site to be patched.
            for (int i = 0; i < 100; i++)
                ask(i);
            attack(how);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
    }
    ask(7);
}
