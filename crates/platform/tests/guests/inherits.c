// The guest has the descriptor of the first argument, and none between the second and the third.
#include "guest.h"
#include <fcntl.h>

int main(int argc, char **argv) {
    CHECK(argc == 4);
    CHECK(fcntl(atoi(argv[1]), F_GETFD) == 0);
    for (int fd = atoi(argv[2]); fd <= atoi(argv[3]); fd++)
        CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    ask(1);
}
