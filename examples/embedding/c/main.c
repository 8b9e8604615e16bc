#include <stdlib.h>
#include "server.h"

int main(int argc, char **argv)
{
	struct sock_filter filter[server_insns_len];
	struct server_values values = { .control_fd = 0 };

	values.control_fd = (uint32_t)(argc > 1 ? atoi(argv[1]) : -1);
	if (server_bind(filter, &values) != 0)
		return 2; /* no descriptor */
	if (server_install(filter, 0, 1) != 0)
		return 3;
	if (write((int)values.control_fd, "confined", 8) != 8)
		return 4;
	if (write(STDERR_FILENO, "leak", 4) != -1 || errno != EPERM)
		return 5;
	return 0;
}
