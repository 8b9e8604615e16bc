/* Programs that could notice that their call sites are patched. Run as `program PART`; exit status 0 if nothing is noticed. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { ENOUGH = 20, CHILDREN = 100 };

/* Sites that make a call and return a number of their own. */
#define SITE(n)                  \
	long site_##n(long nr);  \
	__asm__(".text\n.globl site_" #n "\nsite_" #n ": mov %rdi, %rax\nsyscall\nmov $" #n ", %eax\nret\n.balign 16\n");
SITE(1) SITE(2) SITE(3) SITE(4) SITE(5) SITE(6) SITE(7)

static void warm(long (*site)(long))
{
	for (int i = 0; i < ENOUGH; i++)
		site(SYS_getppid);
}

/* Children whose parent is another than who created them have the sites of their creator. */
static int parent(void)
{
	int status, wrong = 0;
	warm(site_1);
	pid_t creator = fork();
	if (creator == 0) {
		warm(site_2), warm(site_3), warm(site_4);
		for (int i = 0; i < CHILDREN; i++)
			if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) {
				warm(site_5), warm(site_6), warm(site_7);
				long (*sites[])(long) = { site_1, site_2, site_3, site_4, site_5, site_6, site_7 };
				for (int k = 0; k < 7; k++)
					if (sites[k](SYS_getuid) != k + 1)
						_exit(1);
				_exit(0);
			}
		_exit(0);
	}
	while (wait(&status) > 0)
		wrong += status != 0;
	return wrong;
}

static int waits, failures;

static void *wait_for_nothing(void *unused)
{
	struct epoll_event event;
	int poll = epoll_create1(0), ready;
	while ((ready = epoll_wait(poll, &event, 1, 500)) != 0) {
		waits++;
		failures += ready < 0;
	}
	return unused;
}

/* Waits of other threads aren't interrupted while sites are patched. */
static int interrupted(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, wait_for_nothing, NULL);
	struct timespec a_moment = { 0, 100000000 };
	nanosleep(&a_moment, NULL);
	warm(site_1), warm(site_2), warm(site_3);
	pthread_join(thread, NULL);
	return failures;
}

long make(long nr, long a, long b, long c);
extern char made[];
__asm__(".text\n.globl make\nmake: mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nsyscall\n"
	".globl made\nmade: cmp $-4095, %rax\nret\n.balign 16\n");

/* A filter that allows a call from one address alone. */
static int address(void)
{
	for (int i = 0; i < ENOUGH; i++)
		make(SYS_getppid, 0, 0, 0);
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(uintptr_t)made, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { 6, filter };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, 2, &program))
		return 2;
	return make(SYS_getppid, 0, 0, 0) <= 0;
}

/* The same in a child that has borrowed the memory. */
static int borrowed(void)
{
	int status;
	for (int i = 0; i < ENOUGH; i++)
		make(SYS_getppid, 0, 0, 0);
	pid_t child = vfork();
	if (child == 0)
		_exit(address());
	return waitpid(child, &status, 0) != child || status != 0;
}

static volatile int is_lent, is_done;

static void *lend(void *status)
{
	pid_t child = vfork();
	if (child == 0) {
		while (!is_done) {
			make(SYS_getppid, 0, 0, 0);
			is_lent = 1;
		}
		_exit(0);
	}
	if (waitpid(child, status, 0) != child)
		*(int *)status = 1;
	return NULL;
}

/* And in one that has lent it, but for a thread that waits until it is given back. */
static int lent(void)
{
	int status = -1;
	pthread_t thread;
	pthread_create(&thread, NULL, lend, &status);
	while (!is_lent)
		make(SYS_getppid, 0, 0, 0);
	int wrong = address();
	is_done = 1;
	pthread_join(thread, NULL);
	return wrong || status != 0;
}

/* A call that can be cancelled, as C libraries have it: whether it waits is told by its address. */
long waiting(long nr, long a, long b, long c);
extern char waiting_begins[], waiting_ends[], cancelled[];
__asm__(".text\n.globl waiting\nwaiting: mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\n"
	".globl waiting_begins\nwaiting_begins: cmp $0, %rax\nsyscall\n.globl waiting_ends\nwaiting_ends: ret\n"
	".globl cancelled\ncancelled: mov $-125, %rax\nret\n.balign 16, 0x90\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\n");
static int ends[2];
static volatile int is_found;

static void cancel(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	greg_t *ip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	if (*ip >= (greg_t)(uintptr_t)waiting_begins && *ip < (greg_t)(uintptr_t)waiting_ends) {
		is_found = 1;
		*ip = (greg_t)(uintptr_t)cancelled;
	}
}

static void *read_all(void *unused)
{
	char byte;
	while (waiting(SYS_read, ends[0], (long)&byte, 1) >= 0)
		;
	return unused;
}

static int cancellation(void)
{
	pthread_t thread;
	struct sigaction action = { .sa_sigaction = cancel, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct timespec a_moment = { 0, 1000000 };
	if (pipe(ends) || pthread_create(&thread, NULL, read_all, NULL))
		return 2;
	for (int i = 0; i < ENOUGH; i++) {
		if (write(ends[1], "a", 1) != 1)
			return 3;
		nanosleep(&a_moment, NULL);
	}
	/* The number that the C library has for this. */
	struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} by_kernel;
	sigaction(SIGUSR1, &action, NULL);
	syscall(SYS_rt_sigaction, SIGUSR1, NULL, &by_kernel, 8);
	syscall(SYS_rt_sigaction, 32, &by_kernel, NULL, 8);
	/* Until it waits again. */
	for (int i = 0; i < 1000 && !is_found; i++) {
		pthread_kill(thread, SIGUSR1);
		nanosleep(&a_moment, NULL);
	}
	if (!is_found)
		return 1;
	return pthread_join(thread, NULL);
}

int main(int count, char **arguments)
{
	const struct {
		const char *name;
		int (*run)(void);
	} parts[] = { { "parent", parent }, { "interrupted", interrupted }, { "address", address }, { "borrowed", borrowed }, { "lent", lent }, { "cancellation", cancellation } };
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (count == 2 && strcmp(arguments[1], parts[i].name) == 0)
			return parts[i].run();
	return 99;
}
