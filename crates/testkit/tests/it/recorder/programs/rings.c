/* Rings, and calls that no library wraps. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
int main(void) {
    char params[120];
    memset(params, 0, sizeof params);
    long ring = syscall(425, 8, params);
    int epoll = epoll_create1(EPOLL_CLOEXEC), event = eventfd(1, EFD_NONBLOCK);
    struct epoll_event wanted = {.events = EPOLLIN, .data = {.fd = event}}, got;
    epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted);
    int count = epoll_wait(epoll, &got, 1, 100);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), watch = inotify_init1(IN_CLOEXEC);
    printf("%d %d %d %d\n", ring > 0 || ring == -1, count, timer > 0, watch > 0);
    return 0;
}
