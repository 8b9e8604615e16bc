/* A trap with a number, which the handler of SIGSYS finds as si_errno. */
#define SCMP_ACT_TRAPX(value) (0x00030000U | ((value) & 0x0000ffffU))

/* A descriptor for the task that waits, where the kernel's headers are older than Linux 5.9. */
#ifndef SECCOMP_ADDFD_FLAG_SETFD
#define SECCOMP_ADDFD_FLAG_SETFD (1UL << 0)

struct seccomp_notif_addfd {
	__u64 id;
	__u32 flags;
	__u32 srcfd;
	__u32 newfd;
	__u32 newfd_flags;
};
#endif

/* Respond with the descriptor at once: since Linux 5.14. */
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

/* Copies a descriptor of the caller into the task; returns its number there. */
int seccomp_notify_addfd(int fd, struct seccomp_notif_addfd *addfd);

#include <seccomp-kvers.h>
