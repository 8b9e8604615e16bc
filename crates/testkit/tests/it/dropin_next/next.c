/* What libseccomp's main branch has beyond 2.6.1, by a program that is compiled for either. Ends with the line of a check
 * that fails, or 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "line %d: %s: errno %d\n", __LINE__, #what, errno); \
			return 1; \
		} \
	} while (0)

/* The data that 2.6.1 refuses. */
#define TRAP_WITH_DATA 0x00031234U

static int is_there(const char *name)
{
	return dlsym(RTLD_DEFAULT, name) != NULL;
}

static int interface(void)
{
	const struct scmp_version *version = seccomp_version();
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	CHECK(filter);
	CHECK(version->major == SCMP_VER_MAJOR && version->minor == SCMP_VER_MINOR && version->micro == SCMP_VER_MICRO);
	CHECK(is_there("seccomp_notify_fd"));
#ifdef SCMP_ACT_TRAPX
	CHECK(is_there("seccomp_notify_addfd"));
	CHECK(SCMP_ACT_TRAPX(0) == SCMP_ACT_TRAP && SCMP_ACT_TRAPX(0x51234) == TRAP_WITH_DATA);
	CHECK(SCMP_KV_3_0 == 2 && SCMP_KV_4_20 == 42 && SCMP_KV_6_17 == 80 && SCMP_KV_UNDEF == 1);
	CHECK(seccomp_notify_addfd(-1, NULL) < 0);
	CHECK(seccomp_rule_add(filter, SCMP_ACT_TRAPX(0x1234), SCMP_SYS(getppid), 0) == 0);
	CHECK(seccomp_rule_add(filter, SCMP_ACT_TRAP, SCMP_SYS(getpid), 0) == 0);
#else
	CHECK(!is_there("seccomp_notify_addfd"));
	CHECK(seccomp_rule_add(filter, TRAP_WITH_DATA, SCMP_SYS(getppid), 0) == -EINVAL);
	CHECK(seccomp_rule_add(filter, SCMP_ACT_TRAP, SCMP_SYS(getpid), 0) == 0);
#endif
	CHECK(seccomp_export_pfc(filter, STDOUT_FILENO) == 0);
	seccomp_release(filter);
	return 0;
}

#ifdef SCMP_ACT_TRAPX
static volatile int trapped;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	trapped = info->si_errno;
}

static int trap(void)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	CHECK(filter);
	CHECK(sigaction(SIGSYS, &action, NULL) == 0);
	CHECK(seccomp_rule_add(filter, SCMP_ACT_TRAPX(0x1234), SCMP_SYS(getppid), 0) == 0);
	CHECK(seccomp_load(filter) == 0);
	syscall(SYS_getppid);
	CHECK(trapped == 0x1234);
	return 0;
}

/* The task that waits: it reads from the descriptors that it gets. */
static int task(void)
{
	for (int asked = 0; asked < 2; asked++) {
		char text[6] = {0};
		long fd = syscall(SYS_getpriority, 9, asked);

		CHECK(fd > 2 && read(fd, text, 5) == 5 && strcmp(text, "hello") == 0);
		CHECK(asked == 0 || fd == 77);
		CHECK(asked == 1 || fcntl(fd, F_GETFD) == FD_CLOEXEC);
	}
	return 0;
}

static int addfd(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	struct seccomp_notif *request;
	struct seccomp_notif_resp *response;
	int pipes[2], notify, status;
	pid_t child;

	CHECK(filter);
	CHECK(seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(getpriority), 1, SCMP_A0(SCMP_CMP_EQ, 9)) == 0);
	CHECK(seccomp_load(filter) == 0);
	CHECK((notify = seccomp_notify_fd(filter)) >= 0);
	CHECK((child = fork()) >= 0);
	if (child == 0) {
		alarm(20);
		_exit(task());
	}
	alarm(20);
	CHECK(pipe(pipes) == 0 && write(pipes[1], "hellohello", 10) == 10);
	CHECK(seccomp_notify_alloc(&request, &response) == 0);
	CHECK(seccomp_notify_receive(notify, request) == 0);

	struct seccomp_notif_addfd copied = {.id = request->id, .srcfd = pipes[0], .newfd_flags = O_CLOEXEC};
	struct seccomp_notif_addfd foreign = {.id = request->id + 999, .srcfd = pipes[0]};
	CHECK(seccomp_notify_addfd(notify, &foreign) == -ECANCELED);
	response->id = request->id;
	CHECK((response->val = seccomp_notify_addfd(notify, &copied)) > 2);
	CHECK(seccomp_notify_respond(notify, response) == 0);

	memset(request, 0, sizeof(*request));
	CHECK(seccomp_notify_receive(notify, request) == 0);
	struct seccomp_notif_addfd sent = {
		.id = request->id,
		.flags = SECCOMP_ADDFD_FLAG_SETFD | SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = pipes[0],
		.newfd = 77,
	};
	/* Both flags at once: since Linux 5.14. */
	CHECK(seccomp_notify_addfd(notify, &sent) == 77);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	seccomp_notify_free(request, response);
	return 0;
}
#endif

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "interface") == 0)
		return interface();
#ifdef SCMP_ACT_TRAPX
	if (argc == 2 && strcmp(argv[1], "trap") == 0)
		return trap();
	if (argc == 2 && strcmp(argv[1], "addfd") == 0)
		return addfd();
#endif
	return 2;
}
