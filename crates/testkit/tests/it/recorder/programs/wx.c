/* Memory that is written, then executed, as compilers at run time have it. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main(void) {
    unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3}; /* mov $7, %eax; ret */
    char *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    memcpy(memory, code, sizeof code);
    if (mprotect(memory, 4096, PROT_READ | PROT_EXEC)) return 1;
    int (*made)(void);
    memcpy(&made, &memory, sizeof made);
    printf("%d\n", made());
    return 0;
}
