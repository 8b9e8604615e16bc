// Executing itself: from its first thread, from another thread, and after vfork.
#include "guest.h"

static char *self, *environment[] = {"A=1", NULL};

static void *execute(void *stage) {
    execve(self, (char *[]){self, stage, NULL}, environment);
    CHECK(!"executed");
    return NULL;
}

static void *call_forever(void *unused) {
    for (;;)
        ask(3);
    return unused;
}

int main(int argc, char **argv) {
    self = argv[0];
    ask(1);
    char stage = argc > 1 ? argv[1][0] : '0';
    pthread_t thread;
    switch (stage) {
    case '0':
        execute("1");
        break;
    case '1':
        CHECK(pthread_create(&thread, NULL, call_forever, NULL) == 0);
        CHECK(pthread_create(&thread, NULL, execute, "2") == 0);
        pthread_join(thread, NULL);
        break;
    case '2': {
        CHECK(getpid() == gettid() && getenv("A")[0] == '1');
        CHECK(execve("/nonexistent", argv, environment) == -1 && errno == ENOENT);
        pid_t child = vfork();
        CHECK(child >= 0);
        if (child == 0) {
            execve(self, (char *[]){self, "3", NULL}, environment);
            _exit(1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 33);
        return 0;
    }
    default:
        return 33;
    }
    return 1;
}
