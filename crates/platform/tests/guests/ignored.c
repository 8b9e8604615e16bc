// The end of a child doesn't interrupt the calls of a parent that ignores it.
#include "guest.h"

#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>

static void end_soon(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        wait_a_moment();
        _exit(0);
    }
}

int main(void) {
    const struct timespec limit = {0, 50000000};
    struct epoll_event event;
    sigset_t user;
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    int epoll = epoll_create1(0), set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf take = {0, -1, 0};
    // A receiver with a time limit: the kernel itself restarts one without.
    struct timeval limit_us = {0, 50000};
    int pair[2];
    char byte;
    CHECK(epoll >= 0 && set >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit_us, sizeof limit_us) == 0);
    ask(1);
    for (int i = 0; i < 3; i++) {
        end_soon();
        CHECK(epoll_wait(epoll, &event, 1, 50) == 0);
        end_soon();
        CHECK(sigtimedwait(&user, NULL, &limit) == -1 && errno == EAGAIN);
        end_soon();
        CHECK(semtimedop(set, &take, 1, &limit) == -1 && errno == EAGAIN);
        end_soon();
        CHECK(recv(pair[0], &byte, 1, 0) == -1 && errno == EAGAIN);
        while (waitpid(-1, NULL, 0) > 0)
            ;
    }
    CHECK(semctl(set, 0, IPC_RMID) == 0);
    ask(2);
}
