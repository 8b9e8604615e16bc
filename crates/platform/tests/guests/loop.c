// Many calls, each with a different answer.
#include "guest.h"

int main(void) {
    for (uint64_t i = 0; i < 3000; i++)
        ask(i);
}
