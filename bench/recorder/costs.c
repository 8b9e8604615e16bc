/* What is recorded and traced in bench/recorder/run.
 *
 *   costs calls COUNT     that many calls of getppid
 *   costs threads COUNT   half of them in a thread, half in a child that executes nothing
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long count;

static void *calls(void *unused)
{
	for (long i = 0; i < count; i++)
		syscall(SYS_getppid);
	return unused;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	count = atol(argv[2]);
	if (!strcmp(argv[1], "threads")) {
		count /= 2;
		pthread_t thread;
		pthread_create(&thread, 0, calls, 0);
		pthread_join(thread, 0);
		pid_t child = fork();
		if (!child) {
			calls(0);
			_exit(0);
		}
		waitpid(child, 0, 0);
		return 0;
	}
	calls(0);
	return 0;
}
