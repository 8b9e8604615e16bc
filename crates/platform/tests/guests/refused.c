// Calls of `seccomp` that the kernel rejects for their arguments before it looks for listeners.
#include "guest.h"

#include "filter.h"

static void refused(uint64_t operation, uint64_t flags, const void *program, int expected) {
    long result = call6(SYS_seccomp, operation, flags, (uintptr_t)program, 0, 0, 0);
    errno = (int)-result;
    CHECK(result == -expected);
}

int main(void) {
    enum { LISTENER = 8, UNKNOWN = 1 << 30, STRICT = 0, FILTER = 1, AVAILABLE = 2, SIZES = 3, NONE = 77 };
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    ask(1);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    refused(STRICT, ~0ull, NULL, EINVAL);
    refused(STRICT, LISTENER, NULL, EINVAL);
    refused(AVAILABLE, LISTENER, NULL, EINVAL);
    refused(AVAILABLE, 0, NULL, EFAULT);
    refused(SIZES, LISTENER, &program, EINVAL);
    refused(NONE, LISTENER, &program, EINVAL);
    refused(FILTER, 0, NULL, EFAULT);
    refused(FILTER, LISTENER, NULL, EFAULT);
    refused(FILTER, LISTENER, (void *)1, EFAULT);
    refused(FILTER, LISTENER, (void *)-1, EFAULT);
    refused(FILTER, LISTENER | UNKNOWN, &program, EINVAL);
    refused(FILTER, LISTENER | SECCOMP_FILTER_FLAG_TSYNC, &program, EINVAL);
    ask(2);
}
