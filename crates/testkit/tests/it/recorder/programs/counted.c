/* Makes known numbers of calls from few sites: in threads, in forked processes, after execve, under a filter of its own, in
 * handlers of signals; and looks whether flags, registers and the red zone stay as they are around a call. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMES = 2000, THREADS = 4, CHILDREN = 10 };

static void fail(const char *what)
{
	perror(what);
	_exit(9);
}

/* getppid, with the carry and direction flags set, values below the stack and in all registers that calls keep. */
static void kept(void)
{
	unsigned long flags, below, sum, result = SYS_getppid;
	__asm__ volatile(
		"movq $0x1234567, -8(%%rsp)\n\t"
		"movq $0x7654321, -128(%%rsp)\n\t"
		"mov $1, %%ebx; mov $2, %%edx; mov $3, %%esi; mov $4, %%edi; mov $5, %%r8d; mov $6, %%r9d\n\t"
		"mov $7, %%r10d; mov $8, %%r12d; mov $9, %%r13d; mov $10, %%r14d; mov $11, %%r15d\n\t"
		"std; stc\n\t"
		"syscall\n\t"
		"nop; nop; nop; nop\n\t"
		"lea -128(%%rsp), %%rsp; pushfq; popq %%rcx; lea 128(%%rsp), %%rsp\n\t"
		"cld\n\t"
		"add %%rbx, %%rdx; add %%rsi, %%rdx; add %%rdi, %%rdx; add %%r8, %%rdx; add %%r9, %%rdx\n\t"
		"add %%r10, %%rdx; add %%r12, %%rdx; add %%r13, %%rdx; add %%r14, %%rdx; add %%r15, %%rdx\n\t"
		"movq -8(%%rsp), %%rbx; addq -128(%%rsp), %%rbx\n\t"
		: "+a"(result), "=&c"(flags), "=&b"(below), "=&d"(sum)
		:
		: "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	if (result != (unsigned long)getppid())
		fail("the result");
	if ((flags & 0x401) != 0x401)
		fail("flags");
	if (sum != 66)
		fail("registers");
	if (below != 0x1234567 + 0x7654321)
		fail("the red zone");
}

static void *calls(void *unused)
{
	for (int i = 0; i < TIMES; i++)
		kept();
	return unused;
}

static void handle(int signal)
{
	(void)signal;
	getpgrp();
}

/* Denies getuid, and kills for what a recorder might call in this process. */
static void deny_getuid(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getuid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 42),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 6, filter };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
		fail("a filter");
}

int main(int count, char **arguments)
{
	pthread_t threads[THREADS];
	if (count > 1) {
		for (int i = 0; i < TIMES; i++)
			getsid(0);
		return 0;
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, calls, NULL))
			fail("a thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CHILDREN; i++)
		if (fork() == 0) {
			for (int j = 0; j < TIMES; j++)
				getsid(0);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	signal(SIGUSR1, handle);
	for (int i = 0; i < TIMES; i++)
		raise(SIGUSR1);
	for (int i = 0; i < 100; i++)
		if (getuid() != geteuid())
			fail("getuid");
	deny_getuid();
	for (int i = 0; i < TIMES; i++)
		if (syscall(SYS_getuid) != -1 || errno != 42)
			fail("a denied getuid");
	execl("/proc/self/exe", arguments[0], "again", NULL);
	fail("execl");
}
