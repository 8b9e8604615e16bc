/* A caller that makes every mistake that the interface of libseccomp allows. Run as `program PART`; exit status 0 and
 * what a part prints are the result. Parts of which the output is compared with another library's make no call that
 * would crash there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* libseccomp has these since 2.6. */
#pragma weak seccomp_export_bpf_mem
#pragma weak seccomp_precompute
#pragma weak seccomp_transaction_start
#pragma weak seccomp_transaction_commit
#pragma weak seccomp_transaction_reject

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static int failures;

static void check(const char *what, long is, long wanted) {
    if (is != wanted) {
        fprintf(stderr, "%s: %ld, not %ld\n", what, is, wanted);
        failures++;
    }
}

static scmp_filter_ctx new_filter(void) {
    return seccomp_init(SCMP_ACT_ALLOW);
}

/* A filter that was made before `main`. */
static scmp_filter_ctx early;

__attribute__((constructor)) static void before_main(void) {
    early = new_filter();
    if (early != NULL) {
        seccomp_rule_add(early, SCMP_ACT_ERRNO(1), SCMP_SYS(read), 0);
    }
}

/* The text of a filter's pseudo code, or of its program. The caller frees it. */
static size_t exported(scmp_filter_ctx filter, int (*export)(const scmp_filter_ctx, int), char **text) {
    int fd = memfd_create("filter", 0);
    int code = export(filter, fd);
    off_t length = lseek(fd, 0, SEEK_END);
    *text = calloc(1, (size_t)length + 1);
    if (code < 0 || pread(fd, *text, (size_t)length, 0) != length) {
        fprintf(stderr, "not exported: %d\n", code);
        failures++;
    }
    close(fd);
    return (size_t)length;
}

/* Return values for misuse that no library answers by a crash. */

static const struct scmp_arg_cmp CONDITIONS[7] = {
    {0, SCMP_CMP_EQ, 1, 0}, {1, SCMP_CMP_NE, 2, 0}, {2, SCMP_CMP_LT, 3, 0},          {3, SCMP_CMP_GE, 4, 0},
    {4, SCMP_CMP_GT, 5, 0}, {5, SCMP_CMP_LE, 6, 0}, {0, SCMP_CMP_MASKED_EQ, 0xff, 7},
};

static void print(const char *what, long code) {
    printf("%s: %ld\n", what, code);
}

static void print_null_handles(void) {
    uint32_t value;
    print("merge null", seccomp_merge(NULL, NULL));
    print("merge from null", seccomp_merge(early, NULL));
    print("merge into null", seccomp_merge(NULL, early));
    print("exist", seccomp_arch_exist(NULL, 77));
    print("add", seccomp_arch_add(NULL, 77));
    print("remove", seccomp_arch_remove(NULL, 77));
    print("load", seccomp_load(NULL));
    print("get", seccomp_attr_get(NULL, SCMP_FLTATR_CTL_NNP, &value));
    print("set", seccomp_attr_set(NULL, SCMP_FLTATR_CTL_NNP, 1));
    print("priority", seccomp_syscall_priority(NULL, 0, 1));
    print("rule", seccomp_rule_add(NULL, SCMP_ACT_KILL, 0, 0));
    print("array", seccomp_rule_add_array(NULL, SCMP_ACT_KILL, 0, 0, NULL));
    print("exact", seccomp_rule_add_exact(NULL, SCMP_ACT_KILL, 0, 0));
    print("exact array", seccomp_rule_add_exact_array(NULL, SCMP_ACT_KILL, 0, 0, NULL));
    print("notify fd", seccomp_notify_fd(NULL));
    print("pfc", seccomp_export_pfc(NULL, 1));
    print("bpf", seccomp_export_bpf(NULL, 1));
    print("reset", seccomp_reset(NULL, 0));
    seccomp_release(NULL);
    seccomp_notify_free(NULL, NULL);
}

static void print_rules(scmp_filter_ctx filter) {
    static const unsigned counts[] = {7, 8, 1000, UINT32_MAX};
    static const uint32_t actions[] = {
        SCMP_ACT_ALLOW,      SCMP_ACT_ALLOW + 1, SCMP_ACT_KILL + 1, SCMP_ACT_TRAP + 1,   SCMP_ACT_ERRNO(4094),
        SCMP_ACT_ERRNO(4095), SCMP_ACT_ERRNO(4096), SCMP_ACT_TRACE(65535), SCMP_ACT_LOG + 1, SCMP_ACT_KILL_PROCESS + 1,
        SCMP_ACT_NOTIFY + 1, 0x12345678, UINT32_MAX,
    };
    for (size_t i = 0; i < LENGTH(counts); i++) {
        print("count", seccomp_rule_add_array(filter, SCMP_ACT_KILL, 0, counts[i], CONDITIONS));
        print("exact count", seccomp_rule_add_exact_array(filter, SCMP_ACT_KILL, 0, counts[i], CONDITIONS));
        print("variadic count", seccomp_rule_add(filter, SCMP_ACT_KILL, 0, counts[i], CONDITIONS[0]));
        print("exact variadic count", seccomp_rule_add_exact(filter, SCMP_ACT_KILL, 0, counts[i], CONDITIONS[0]));
        print("null array", seccomp_rule_add_array(filter, SCMP_ACT_KILL, 0, i + 1, NULL));
        print("exact null array", seccomp_rule_add_exact_array(filter, SCMP_ACT_KILL, 0, i + 1, NULL));
    }
    for (size_t i = 0; i < LENGTH(actions); i++) {
        print("action", seccomp_rule_add(filter, actions[i], 1000 + (int)i, 0));
        print("exact action", seccomp_rule_add_exact(filter, actions[i], 2000 + (int)i, 0));
        print("default action", seccomp_reset(filter, actions[i]));
        scmp_filter_ctx other = seccomp_init(actions[i]);
        print("initial action", other == NULL);
        seccomp_release(other);
        print("other architectures", seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, actions[i]));
    }
    seccomp_reset(filter, SCMP_ACT_ALLOW);
    for (unsigned op = 0; op < 10; op++) {
        for (unsigned arg = 0; arg < 8; arg++) {
            struct scmp_arg_cmp condition = {arg, (enum scmp_compare)op, 9, 9};
            print("condition", seccomp_rule_add_array(filter, SCMP_ACT_KILL, 300 + (int)op, 1, &condition));
        }
    }
    for (int call = -130; call < 3; call++) {
        print("call", seccomp_rule_add(filter, SCMP_ACT_KILL, call, 0));
        print("priority", seccomp_syscall_priority(filter, call, 255));
    }
    print("least call", seccomp_rule_add(filter, SCMP_ACT_KILL, INT32_MIN, 0));
    print("greatest call", seccomp_rule_add(filter, SCMP_ACT_KILL, INT32_MAX, 0));
}

static void print_attributes(scmp_filter_ctx filter) {
    uint32_t value = 0;
    for (unsigned attribute = 0; attribute < 10; attribute++) {
        enum scmp_filter_attr number = (enum scmp_filter_attr)attribute;
        for (uint32_t to = 0; to < 4; to++) {
            print("set", seccomp_attr_set(filter, number, to));
            print("get", seccomp_attr_get(filter, number, &value));
            print("value", value);
        }
    }
    seccomp_reset(filter, SCMP_ACT_ALLOW);
    print("set unknown", seccomp_attr_set(filter, (enum scmp_filter_attr)11, 1));
    print("get unknown", seccomp_attr_get(filter, (enum scmp_filter_attr)UINT32_MAX, &value));
    print("level 0", seccomp_api_set(0));
    print("level 99", seccomp_api_set(99));
}

static void print_names(void) {
    static const char *names[] = {"", "\xff\xfe", "read\xc3\x28", "\xf0\x9f\x98\x80", " read", "READ", "read ", "no_such_call"};
    for (size_t i = 0; i < LENGTH(names); i++) {
        print("name", seccomp_syscall_resolve_name(names[i]));
        print("name there", seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86, names[i]));
        print("name nowhere", seccomp_syscall_resolve_name_arch(12345, "read"));
        print("rewritten", seccomp_syscall_resolve_name_rewrite(SCMP_ARCH_X86, names[i]));
        print("architecture", seccomp_arch_resolve_name(names[i]));
    }
    print("null name", seccomp_syscall_resolve_name(NULL));
    print("null name there", seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86, NULL));
    print("null name rewritten", seccomp_syscall_resolve_name_rewrite(SCMP_ARCH_X86, NULL));
    print("null architecture", seccomp_arch_resolve_name(NULL));
    print("number nowhere", seccomp_syscall_resolve_num_arch(12345, 0) != NULL);
    print("unknown number", seccomp_syscall_resolve_num_arch(0, INT32_MAX) != NULL);
    print("least number", seccomp_syscall_resolve_num_arch(0, INT32_MIN) != NULL);
    size_t length = 1 << 20;
    char *huge = malloc(length);
    memset(huge, 'a', length - 1);
    huge[length - 1] = 0;
    print("huge name", seccomp_syscall_resolve_name(huge));
    free(huge);
}

static void print_descriptors(scmp_filter_ctx filter) {
    int closed = dup(1);
    close(closed);
    const int bad[] = {-1, closed, INT32_MAX, INT32_MIN};
    struct seccomp_notif *request = NULL;
    struct seccomp_notif_resp *response = NULL;
    print("alloc", seccomp_notify_alloc(&request, &response));
    print("alloc nothing", seccomp_notify_alloc(NULL, NULL));
    print("notify fd", seccomp_notify_fd(filter));
    for (size_t i = 0; i < LENGTH(bad); i++) {
        print("bpf", seccomp_export_bpf(filter, bad[i]));
        print("receive", seccomp_notify_receive(bad[i], request));
        print("receive null", seccomp_notify_receive(bad[i], NULL));
        print("respond", seccomp_notify_respond(bad[i], response));
        print("respond null", seccomp_notify_respond(bad[i], NULL));
        print("valid", seccomp_notify_id_valid(bad[i], 1));
    }
    seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
    print("raw bpf", seccomp_export_bpf(filter, -1));
    print("raw pfc", seccomp_export_pfc(filter, -1));
    seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 0);
    print("pfc", seccomp_export_pfc(filter, -1));
    seccomp_notify_free(request, response);
}

/* Without architectures a handle is as good as none. */
static void print_without_arches(void) {
    uint32_t value;
    scmp_filter_ctx filter = new_filter();
    print("remove absent", seccomp_arch_remove(filter, SCMP_ARCH_ARM));
    print("remove last", seccomp_arch_remove(filter, SCMP_ARCH_NATIVE));
    print("load", seccomp_load(filter));
    print("rule", seccomp_rule_add(filter, SCMP_ACT_KILL, 0, 0));
    print("get", seccomp_attr_get(filter, SCMP_FLTATR_CTL_NNP, &value));
    print("pfc", seccomp_export_pfc(filter, 1));
    print("bpf", seccomp_export_bpf(filter, 1));
    print("merge", seccomp_merge(filter, early));
    print("exist", seccomp_arch_exist(filter, SCMP_ARCH_NATIVE));
    print("add big-endian", seccomp_arch_add(filter, SCMP_ARCH_S390X));
    print("add little-endian", seccomp_arch_add(filter, SCMP_ARCH_X86));
    print("reset", seccomp_reset(filter, SCMP_ACT_KILL));
    print("rule", seccomp_rule_add(filter, SCMP_ACT_ALLOW, 0, 0));
    seccomp_release(filter);
}

static void codes(void) {
    scmp_filter_ctx filter = new_filter();
    print("before main", early != NULL);
    print_null_handles();
    print_rules(filter);
    print_attributes(filter);
    print_names();
    print_descriptors(filter);
    print_without_arches();
    seccomp_release(filter);
}

/* What crashes a library that trusts its callers. */

/* Every function with a handle that is none; a transaction's end has no result. */
static void refuse(scmp_filter_ctx handle) {
    uint32_t value = 0;
    size_t length = 0;
    check("arch_exist", seccomp_arch_exist(handle, 0), -EINVAL);
    check("arch_add", seccomp_arch_add(handle, SCMP_ARCH_X86), -EINVAL);
    check("arch_remove", seccomp_arch_remove(handle, 0), -EINVAL);
    check("load", seccomp_load(handle), -EINVAL);
    check("attr_get", seccomp_attr_get(handle, SCMP_FLTATR_CTL_NNP, &value), -EINVAL);
    check("attr_set", seccomp_attr_set(handle, SCMP_FLTATR_CTL_NNP, 0), -EINVAL);
    check("syscall_priority", seccomp_syscall_priority(handle, 0, 1), -EINVAL);
    check("rule_add", seccomp_rule_add(handle, SCMP_ACT_KILL, 0, 1, CONDITIONS[0]), -EINVAL);
    check("rule_add_array", seccomp_rule_add_array(handle, SCMP_ACT_KILL, 0, 1, CONDITIONS), -EINVAL);
    check("rule_add_exact", seccomp_rule_add_exact(handle, SCMP_ACT_KILL, 0, 0), -EINVAL);
    check("rule_add_exact_array", seccomp_rule_add_exact_array(handle, SCMP_ACT_KILL, 0, 0, NULL), -EINVAL);
    check("notify_fd", seccomp_notify_fd(handle), -EINVAL);
    check("export_pfc", seccomp_export_pfc(handle, 1), -EINVAL);
    check("export_bpf", seccomp_export_bpf(handle, 1), -EINVAL);
    check("export_bpf_mem", seccomp_export_bpf_mem(handle, NULL, &length), -EINVAL);
    check("precompute", seccomp_precompute(handle), -EINVAL);
    check("transaction_start", seccomp_transaction_start(handle), -EINVAL);
    check("transaction_commit", seccomp_transaction_commit(handle), -EINVAL);
    seccomp_transaction_reject(handle);
    check("merge into", seccomp_merge(handle, early), -EINVAL);
    check("merge from", seccomp_merge(early, handle), -EINVAL);
    if (handle != NULL) {
        check("reset", seccomp_reset(handle, SCMP_ACT_ALLOW), -EINVAL);
    }
    seccomp_release(handle);
}

static void hostile(void) {
    scmp_filter_ctx released = new_filter();
    seccomp_release(released);
    char *foreign = calloc(1, 4096);
    void *unmapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    scmp_filter_ctx handles[] = {NULL, released, foreign, foreign + 1, unmapped, (void *)-1, (void *)1, &handles};
    for (size_t i = 0; i < LENGTH(handles); i++) {
        refuse(handles[i]);
    }
    scmp_filter_ctx filter = new_filter(), merged = new_filter();
    size_t length = 1;
    check("merge itself", seccomp_merge(filter, filter), -EEXIST);
    check("null value", seccomp_attr_get(filter, SCMP_FLTATR_CTL_NNP, NULL), -EINVAL);
    check("null length", seccomp_export_bpf_mem(filter, foreign, NULL), -EINVAL);
    check("small buffer", seccomp_export_bpf_mem(filter, foreign, &length), -ERANGE);
    check("attributes stay", seccomp_attr_set(filter, SCMP_FLTATR_ACT_DEFAULT, 0), -EACCES);
    seccomp_arch_remove(merged, SCMP_ARCH_NATIVE);
    seccomp_arch_add(merged, SCMP_ARCH_X86);
    check("merge", seccomp_merge(filter, merged), 0);
    refuse(merged);
    seccomp_transaction_reject(filter);
    check("commit nothing", seccomp_transaction_commit(filter), 0);
    seccomp_release(filter);
    seccomp_release(filter);
    free(foreign);
}

/* Words without a pattern, different for different numbers. */
static uint32_t random_word(uint32_t number) {
    number = (number ^ number >> 16) * 0x45d9f3bu;
    number = (number ^ number >> 16) * 0x45d9f3bu;
    return number ^ number >> 16;
}

/* Rules in plenty. */
static void many(void) {
    scmp_filter_ctx one = new_filter(), all = new_filter();
    int code = 0;
    for (unsigned i = 0; i < 100000; i++) {
        struct scmp_arg_cmp condition = SCMP_A0(SCMP_CMP_EQ, random_word(i));
        code = seccomp_rule_add_array(one, SCMP_ACT_ERRNO(1), 0, 1, &condition);
        check("a rule of one call", code, 0);
        check("a rule of its own call", seccomp_rule_add(all, SCMP_ACT_ERRNO(1 + random_word(i) % 9), (int)i, 0), 0);
    }
    check("one call", seccomp_precompute(one), -ENOMEM);
    check("all calls", seccomp_precompute(all), -ENOMEM);
    seccomp_release(one);
    seccomp_release(all);
}

/* Threads with filters of their own. */

static void *make_filters(void *unused) {
    scmp_filter_ctx filters[125];
    for (size_t i = 0; i < LENGTH(filters); i++) {
        filters[i] = new_filter();
        check("rule", seccomp_rule_add(filters[i], SCMP_ACT_ERRNO((int)i), (int)i, 0), 0);
    }
    for (size_t i = 0; i < LENGTH(filters); i++) {
        size_t length = 0;
        check("length", seccomp_export_bpf_mem(filters[i], NULL, &length), 0);
        check("program", length > 0 && length % 8 == 0, 1);
        seccomp_release(filters[i]);
    }
    return unused;
}

static void threads(void) {
    pthread_t all[8];
    for (size_t i = 0; i < LENGTH(all); i++) {
        pthread_create(&all[i], NULL, make_filters, NULL);
    }
    for (size_t i = 0; i < LENGTH(all); i++) {
        pthread_join(all[i], NULL);
    }
}

/* `fork` while other threads are in the library. */

static volatile bool stop;

static void *make_filters_until_stopped(void *unused) {
    while (!stop) {
        scmp_filter_ctx filter = new_filter();
        seccomp_rule_add(filter, SCMP_ACT_ERRNO(1), 0, 1, CONDITIONS[0]);
        seccomp_precompute(filter);
        seccomp_release(filter);
    }
    return unused;
}

static int wait_for(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void forks(void) {
    pthread_t all[3];
    for (size_t i = 0; i < LENGTH(all); i++) {
        pthread_create(&all[i], NULL, make_filters_until_stopped, NULL);
    }
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            scmp_filter_ctx filter = new_filter();
            int code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(1), SCMP_SYS(getppid), 0);
            code += seccomp_load(filter) + seccomp_precompute(early);
            seccomp_release(filter);
            _exit(code == 0 && syscall(SYS_getppid) == -1 && errno == 1 ? 0 : 1);
        }
        check("a child", wait_for(child), 0);
    }
    stop = true;
    for (size_t i = 0; i < LENGTH(all); i++) {
        pthread_join(all[i], NULL);
    }
}

/* Everything that takes memory. */
static void use_everything(void) {
    struct seccomp_notif *request = NULL;
    struct seccomp_notif_resp *response = NULL;
    scmp_filter_ctx filter = new_filter(), other = new_filter();
    seccomp_arch_add(filter, SCMP_ARCH_X86);
    seccomp_arch_add(filter, SCMP_ARCH_X32);
    for (int call = 0; call < 200; call++) {
        seccomp_rule_add(filter, SCMP_ACT_ERRNO(1 + call % 3), call, 0);
        seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(4), 300 + call % 20, 2, CONDITIONS);
        struct scmp_arg_cmp condition = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)call);
        seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(2), SCMP_SYS(socket), 1, &condition);
        seccomp_syscall_priority(filter, call, (uint8_t)call);
    }
    seccomp_transaction_start(filter);
    seccomp_transaction_start(filter);
    seccomp_rule_add(filter, SCMP_ACT_ERRNO(9), 299, 0);
    seccomp_precompute(filter);
    seccomp_transaction_reject(filter);
    seccomp_transaction_commit(filter);
    seccomp_export_bpf(filter, -1);
    seccomp_export_pfc(filter, 1);
    seccomp_arch_remove(other, SCMP_ARCH_NATIVE);
    seccomp_arch_add(other, SCMP_ARCH_ARM);
    seccomp_merge(filter, other);
    free(seccomp_syscall_resolve_num_arch(0, 0));
    seccomp_notify_alloc(&request, &response);
    seccomp_notify_free(request, response);
    size_t length = 0;
    seccomp_export_bpf_mem(filter, NULL, &length);
    seccomp_reset(filter, SCMP_ACT_KILL);
    seccomp_release(filter);
}

/* Everything, and rules that are hard to prove. */
static void *in_a_small_thread(void *unused) {
    use_everything();
    scmp_filter_ctx filter = new_filter();
    for (uint32_t number = 0; number < 100; number++) {
        struct scmp_arg_cmp conditions[3];
        for (uint32_t i = 0; i < LENGTH(conditions); i++) {
            uint32_t at = 9 * number + 3 * i;
            scmp_datum_t mask = (scmp_datum_t)random_word(at) << 32 | random_word(at + 1);
            conditions[i] = (struct scmp_arg_cmp){i, SCMP_CMP_MASKED_EQ, mask, random_word(at + 2) & mask};
        }
        check("mask rule", seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(1 + number % 3), 16, 3, conditions), 0);
    }
    check("made", seccomp_precompute(filter), 0);
    seccomp_release(filter);
    return unused;
}

static void stacks(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    dup2(open("/dev/null", O_WRONLY), 1);
    check("thread", pthread_create(&thread, &attributes, in_a_small_thread, NULL), 0);
    pthread_join(thread, NULL);
}

static rlim_t address_space(void) {
    char line[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY);
    if (read(fd, line, sizeof(line) - 1) < 0) {
        failures++;
    }
    close(fd);
    return strtoul(line, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* With each amount of memory the process ends by itself. */
static void memory(void) {
    int completed = 0;
    for (rlim_t room = 0; room < 12 << 20; room += 96 << 10) {
        pid_t child = fork();
        if (child == 0) {
            struct rlimit limit = {address_space() + room, RLIM_INFINITY};
            dup2(open("/dev/null", O_WRONLY), 1);
            setrlimit(RLIMIT_AS, &limit);
            use_everything();
            _exit(0);
        }
        int status = wait_for(child);
        if (status != 0) {
            fprintf(stderr, "room for %lu KiB: status %x\n", (unsigned long)room >> 10, (unsigned)status);
            failures++;
        }
        completed++;
    }
    check("amounts", completed, 128);
}

/* A merge without memory leaves both filters, and is made once there is some. */
static void merge(void) {
    enum { CHUNK_BYTES = 1 << 14 };
    struct chunk {
        struct chunk *next;
        char rest[CHUNK_BYTES];
    } *all = NULL, *chunk;
    scmp_filter_ctx into = new_filter(), from = new_filter();
    seccomp_arch_remove(from, SCMP_ARCH_NATIVE);
    seccomp_arch_add(from, SCMP_ARCH_ARM);
    struct rlimit limit, none;
    getrlimit(RLIMIT_AS, &limit);
    none = limit;
    none.rlim_cur = address_space();
    setrlimit(RLIMIT_AS, &none);
    while ((chunk = malloc(sizeof(*chunk))) != NULL) {
        chunk->next = all;
        all = chunk;
    }
    int merged = seccomp_merge(into, from);
    int has = seccomp_arch_exist(from, SCMP_ARCH_ARM);
    while (all != NULL) {
        chunk = all->next;
        free(all);
        all = chunk;
    }
    setrlimit(RLIMIT_AS, &limit);
    check("merge without memory", merged, -ENOMEM);
    check("the source is left", has, 0);
    check("the target is left", seccomp_arch_exist(into, SCMP_ARCH_ARM), -EEXIST);
    check("merge with memory", seccomp_merge(into, from), 0);
    check("the target has all", seccomp_arch_exist(into, SCMP_ARCH_ARM), 0);
    check("the source is gone", seccomp_arch_exist(from, SCMP_ARCH_ARM), -EINVAL);
    seccomp_release(into);
}

/* Conditions as parameters and as an array. */
static void variadic(void) {
    const struct scmp_arg_cmp *c = CONDITIONS;
    for (unsigned count = 0; count <= 6; count++) {
        scmp_filter_ctx filters[4];
        for (size_t i = 0; i < LENGTH(filters); i++) {
            filters[i] = new_filter();
        }
        uint32_t action = SCMP_ACT_ERRNO(3);
        int (*const functions[])(scmp_filter_ctx, uint32_t, int, unsigned, ...) = {seccomp_rule_add, seccomp_rule_add_exact};
        for (size_t i = 0; i < 2; i++) {
            int code = count == 0   ? functions[i](filters[i], action, 9, 0)
                       : count == 1 ? functions[i](filters[i], action, 9, 1, c[0])
                       : count == 2 ? functions[i](filters[i], action, 9, 2, c[0], c[1])
                       : count == 3 ? functions[i](filters[i], action, 9, 3, c[0], c[1], c[2])
                       : count == 4 ? functions[i](filters[i], action, 9, 4, c[0], c[1], c[2], c[3])
                       : count == 5 ? functions[i](filters[i], action, 9, 5, c[0], c[1], c[2], c[3], c[4])
                                    : functions[i](filters[i], action, 9, 6, c[0], c[1], c[2], c[3], c[4], c[5]);
            check("variadic", code, 0);
        }
        check("array", seccomp_rule_add_array(filters[2], action, 9, count, c), 0);
        check("exact array", seccomp_rule_add_exact_array(filters[3], action, 9, count, c), 0);
        char *texts[4];
        for (size_t i = 0; i < LENGTH(filters); i++) {
            exported(filters[i], seccomp_export_pfc, &texts[i]);
            check("text", strcmp(texts[i], texts[0]), 0);
            seccomp_release(filters[i]);
        }
        for (size_t i = 0; i < LENGTH(filters); i++) {
            free(texts[i]);
        }
    }
}

/* A parent that answers its child's calls. */
static void notify(void) {
    scmp_filter_ctx filter = new_filter();
    check("no descriptor yet", seccomp_notify_fd(filter), -EFAULT);
    check("rule", seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(getppid), 1, SCMP_A0(SCMP_CMP_EQ, 42)), 0);
    check("load", seccomp_load(filter), 0);
    int fd = seccomp_notify_fd(filter);
    check("a descriptor", fd >= 0, 1);
    pid_t child = fork();
    if (child == 0) {
        bool answered = syscall(SYS_getppid, 42) == 4711;
        bool refused = syscall(SYS_getppid, 42) == -1 && errno == ENOSYS;
        _exit(answered && refused && syscall(SYS_getppid, 0) > 0 ? 0 : 1);
    }
    struct seccomp_notif *request = NULL;
    struct seccomp_notif_resp *response = NULL;
    check("alloc", seccomp_notify_alloc(&request, &response), 0);
    for (int i = 0; i < 2; i++) {
        memset(request, 0, sizeof(*request));
        check("receive", seccomp_notify_receive(fd, request), 0);
        check("child", request->pid, child);
        check("call", request->data.nr, SYS_getppid);
        check("argument", (long)request->data.args[0], 42);
        check("valid", seccomp_notify_id_valid(fd, request->id), 0);
        check("invalid", seccomp_notify_id_valid(fd, request->id + 1), -ENOENT);
        *response = (struct seccomp_notif_resp){.id = request->id, .val = i ? 0 : 4711, .error = i ? -ENOSYS : 0};
        check("respond", seccomp_notify_respond(fd, response), 0);
        check("respond twice", seccomp_notify_respond(fd, response), -ECANCELED);
        check("answered", seccomp_notify_id_valid(fd, request->id), -ENOENT);
    }
    check("its status", wait_for(child), 0);
    seccomp_notify_free(request, response);
    seccomp_release(filter);
    scmp_filter_ctx next = new_filter();
    check("the descriptor stays", seccomp_notify_fd(next), fd);
    check("reset", seccomp_reset(NULL, 0), 0);
    check("no descriptor", seccomp_notify_fd(next), -EFAULT);
    check("it is closed", fcntl(fd, F_GETFD), -1);
    seccomp_release(next);
}

/* A filter after which nothing is possible but the end. */
static void silent(void) {
    for (int releases = 0; releases < 2; releases++) {
        pid_t child = fork();
        if (child == 0) {
            scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(exit_group), 0);
            for (int call = 0; call < 300; call++) {
                seccomp_rule_add(filter, SCMP_ACT_ERRNO(call % 7), 1000 + call, 1, CONDITIONS[call % 6]);
            }
            int code = seccomp_load(filter);
            if (releases) {
                seccomp_release(filter);
            }
            syscall(SYS_exit_group, code == 0 ? 0 : 1);
        }
        check("silent", wait_for(child), 0);
    }
}

/* Filters of random rules: the program of each, and the policy that the library writes for TAMIS_EXPLAIN=policy. */
static void explained(void) {
    static const uint32_t others[] = {SCMP_ARCH_X86, SCMP_ARCH_X32, SCMP_ARCH_AARCH64, SCMP_ARCH_ARM};
    static const uint32_t actions[] = {SCMP_ACT_KILL_PROCESS, SCMP_ACT_KILL, SCMP_ACT_TRAP, SCMP_ACT_ERRNO(0),
                                       SCMP_ACT_ERRNO(38), SCMP_ACT_ERRNO(4094), SCMP_ACT_TRACE(7), SCMP_ACT_LOG};
    static const scmp_datum_t values[] = {0, 1, 2, 0x5401, 0xffffffff, 0x100000001, UINT64_MAX};
    for (uint32_t number = 0; number < 40; number++) {
        uint32_t seed = number * 1000;
        scmp_filter_ctx filter = seccomp_init(number % 2 ? SCMP_ACT_ALLOW : SCMP_ACT_KILL_PROCESS);
        for (size_t i = 0; i < LENGTH(others); i++) {
            if (random_word(seed++) % 3 == 0) {
                seccomp_arch_add(filter, others[i]);
            }
        }
        for (int rules = (int)(random_word(seed++) % 60); rules >= 0; rules--) {
            uint32_t action = number % 2 ? actions[random_word(seed++) % LENGTH(actions)] : SCMP_ACT_ALLOW;
            struct scmp_arg_cmp conditions[2];
            unsigned count = random_word(seed++) % 3;
            for (unsigned i = 0; i < count; i++) {
                conditions[i].arg = i + random_word(seed++) % 3 * 2;
                conditions[i].op = (enum scmp_compare)(1 + random_word(seed++) % 7);
                conditions[i].datum_a = values[random_word(seed++) % LENGTH(values)];
                conditions[i].datum_b = values[random_word(seed++) % LENGTH(values)] & conditions[i].datum_a;
            }
            seccomp_rule_add_array(filter, action, (int)(random_word(seed++) % 450), count, conditions);
        }
        char name[32];
        snprintf(name, sizeof(name), "%u.bpf", number);
        check("exported", seccomp_export_bpf(filter, open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600)), 0);
        snprintf(name, sizeof(name), "%u.tamis", number);
        check("explained", rename("policy", name), 0);
        seccomp_release(filter);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} PARTS[] = {
    {"codes", codes},       {"hostile", hostile},   {"many", many},     {"threads", threads}, {"forks", forks},
    {"memory", memory},     {"variadic", variadic}, {"notify", notify}, {"silent", silent},
    {"merge", merge},       {"explained", explained}, {"stacks", stacks},
};

int main(int count, char **arguments) {
    for (size_t i = 0; i < LENGTH(PARTS); i++) {
        if (count == 2 && strcmp(arguments[1], PARTS[i].name) == 0) {
            alarm(120);
            check("before main", early != NULL, 1);
            PARTS[i].run();
            fflush(stdout);
            return failures != 0;
        }
    }
    return 2;
}
