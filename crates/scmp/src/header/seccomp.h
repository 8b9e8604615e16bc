/* The interface of libseccomp 2.6.1, for programs that use tamis's library in its place.
 *
 * The functions are documented in libseccomp's manual pages: seccomp_init(3), seccomp_rule_add(3) and so on.
 * All that return int return 0 or a negative error number, unless another value is named here.
 */
#ifndef _SECCOMP_H
#define _SECCOMP_H

#include <asm/unistd.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <linux/types.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The release whose interface this is. */
#define SCMP_VER_MAJOR 2
#define SCMP_VER_MINOR 6
#define SCMP_VER_MICRO 1

struct scmp_version {
	unsigned int major;
	unsigned int minor;
	unsigned int micro;
};

/* A filter. */
typedef void *scmp_filter_ctx;

/* What a filter has besides rules. */
enum scmp_filter_attr {
	_SCMP_FLTATR_MIN = 0,
	SCMP_FLTATR_ACT_DEFAULT = 1,  /* the default action, read-only */
	SCMP_FLTATR_ACT_BADARCH = 2,  /* the action for other architectures */
	SCMP_FLTATR_CTL_NNP = 3,      /* load with no_new_privs */
	SCMP_FLTATR_CTL_TSYNC = 4,    /* load for all threads */
	SCMP_FLTATR_API_TSKIP = 5,    /* accept rules for number -1 */
	SCMP_FLTATR_CTL_LOG = 6,      /* log actions other than allow */
	SCMP_FLTATR_CTL_SSB = 7,      /* no mitigation of speculative stores */
	SCMP_FLTATR_CTL_OPTIMIZE = 8, /* 1 or 2: the order of pseudo code */
	SCMP_FLTATR_API_SYSRAWRC = 9, /* return the kernel's error numbers */
	SCMP_FLTATR_CTL_WAITKILL = 10, /* only fatal signals while notifying */
	_SCMP_FLTATR_MAX,
};

/* How an argument is compared with a constant. */
enum scmp_compare {
	_SCMP_CMP_MIN = 0,
	SCMP_CMP_NE = 1,
	SCMP_CMP_LT = 2,
	SCMP_CMP_LE = 3,
	SCMP_CMP_EQ = 4,
	SCMP_CMP_GE = 5,
	SCMP_CMP_GT = 6,
	SCMP_CMP_MASKED_EQ = 7, /* argument & datum_a == datum_b */
	_SCMP_CMP_MAX,
};

typedef uint64_t scmp_datum_t;

/* A condition on an argument, 0 to 5. */
struct scmp_arg_cmp {
	unsigned int arg;
	enum scmp_compare op;
	scmp_datum_t datum_a;
	scmp_datum_t datum_b;
};

/* Conditions with 64-bit and 32-bit constants: argument, comparison, one or two constants. */
#define SCMP_CMP64(...) ((struct scmp_arg_cmp){__VA_ARGS__})
#define SCMP_CMP SCMP_CMP64
#define SCMP_CMP32(arg, op, ...) \
	TAMIS_CMP32_OF(__VA_ARGS__, TAMIS_CMP32_TWO, TAMIS_CMP32_ONE, )(arg, op, __VA_ARGS__)
#define TAMIS_CMP32_OF(a, b, chosen, ...) chosen
#define TAMIS_CMP32_ONE(arg, op, a) SCMP_CMP64(arg, op, (uint32_t)(a))
#define TAMIS_CMP32_TWO(arg, op, a, b) SCMP_CMP64(arg, op, (uint32_t)(a), (uint32_t)(b))

#define SCMP_A0_64(...) SCMP_CMP64(0, __VA_ARGS__)
#define SCMP_A1_64(...) SCMP_CMP64(1, __VA_ARGS__)
#define SCMP_A2_64(...) SCMP_CMP64(2, __VA_ARGS__)
#define SCMP_A3_64(...) SCMP_CMP64(3, __VA_ARGS__)
#define SCMP_A4_64(...) SCMP_CMP64(4, __VA_ARGS__)
#define SCMP_A5_64(...) SCMP_CMP64(5, __VA_ARGS__)
#define SCMP_A0 SCMP_A0_64
#define SCMP_A1 SCMP_A1_64
#define SCMP_A2 SCMP_A2_64
#define SCMP_A3 SCMP_A3_64
#define SCMP_A4 SCMP_A4_64
#define SCMP_A5 SCMP_A5_64
#define SCMP_A0_32(op, ...) SCMP_CMP32(0, op, __VA_ARGS__)
#define SCMP_A1_32(op, ...) SCMP_CMP32(1, op, __VA_ARGS__)
#define SCMP_A2_32(op, ...) SCMP_CMP32(2, op, __VA_ARGS__)
#define SCMP_A3_32(op, ...) SCMP_CMP32(3, op, __VA_ARGS__)
#define SCMP_A4_32(op, ...) SCMP_CMP32(4, op, __VA_ARGS__)
#define SCMP_A5_32(op, ...) SCMP_CMP32(5, op, __VA_ARGS__)

/* Actions. */
#define SCMP_ACT_KILL_PROCESS 0x80000000U
#define SCMP_ACT_KILL_THREAD 0x00000000U
#define SCMP_ACT_KILL SCMP_ACT_KILL_THREAD
#define SCMP_ACT_TRAP 0x00030000U
#define SCMP_ACT_ERRNO(errno_) (0x00050000U | ((errno_) & 0x0000ffffU))
#define SCMP_ACT_NOTIFY 0x7fc00000U
#define SCMP_ACT_TRACE(value) (0x7ff00000U | ((value) & 0x0000ffffU))
#define SCMP_ACT_LOG 0x7ffc0000U
#define SCMP_ACT_ALLOW 0x7fff0000U

/* Structures of notifications, where the kernel's headers are older than Linux 5.0. */
#ifndef SECCOMP_RET_USER_NOTIF
#define SECCOMP_RET_USER_NOTIF SCMP_ACT_NOTIFY

struct seccomp_notif {
	__u64 id;
	__u32 pid;
	__u32 flags;
	struct seccomp_data data;
};

struct seccomp_notif_resp {
	__u64 id;
	__s64 val;
	__s32 error;
	__u32 flags;
};
#endif

/* The number of a call on the architecture that the program is compiled for, or its pseudo number. */
#define SCMP_SYS(name) (__SNR_##name)

/* Results that are no number of a call. */
#define __NR_SCMP_ERROR -1
#define __NR_SCMP_UNDEF -2

/* Library and kernel. */
const struct scmp_version *seccomp_version(void);
unsigned int seccomp_api_get(void); /* 1 to 7 */
int seccomp_api_set(unsigned int level);

/* Filters. */
scmp_filter_ctx seccomp_init(uint32_t def_action); /* NULL if it failed */
int seccomp_reset(scmp_filter_ctx ctx, uint32_t def_action);
void seccomp_release(scmp_filter_ctx ctx);
int seccomp_merge(scmp_filter_ctx ctx_dst, scmp_filter_ctx ctx_src); /* releases ctx_src */
int seccomp_attr_get(const scmp_filter_ctx ctx, enum scmp_filter_attr attr, uint32_t *value);
int seccomp_attr_set(scmp_filter_ctx ctx, enum scmp_filter_attr attr, uint32_t value);

/* Architectures; SCMP_ARCH_NATIVE stands for the program's own. */
uint32_t seccomp_arch_resolve_name(const char *arch_name); /* 0 for an unknown name */
uint32_t seccomp_arch_native(void);
int seccomp_arch_exist(const scmp_filter_ctx ctx, uint32_t arch_token); /* -EEXIST if absent */
int seccomp_arch_add(scmp_filter_ctx ctx, uint32_t arch_token);
int seccomp_arch_remove(scmp_filter_ctx ctx, uint32_t arch_token);

/* Names and numbers of calls. A name is freed by the caller; NULL and __NR_SCMP_ERROR if there is none. */
char *seccomp_syscall_resolve_num_arch(uint32_t arch_token, int num);
int seccomp_syscall_resolve_name_arch(uint32_t arch_token, const char *name);
int seccomp_syscall_resolve_name_rewrite(uint32_t arch_token, const char *name);
int seccomp_syscall_resolve_name(const char *name);

/* Rules: the action for a call if all conditions hold, at most one on each argument. */
int seccomp_rule_add(scmp_filter_ctx ctx, uint32_t action, int syscall, unsigned int arg_cnt, ...);
int seccomp_rule_add_array(scmp_filter_ctx ctx, uint32_t action, int syscall, unsigned int arg_cnt,
			   const struct scmp_arg_cmp *arg_array);
int seccomp_rule_add_exact(scmp_filter_ctx ctx, uint32_t action, int syscall, unsigned int arg_cnt, ...);
int seccomp_rule_add_exact_array(scmp_filter_ctx ctx, uint32_t action, int syscall, unsigned int arg_cnt,
				 const struct scmp_arg_cmp *arg_array);
int seccomp_syscall_priority(scmp_filter_ctx ctx, int syscall, uint8_t priority);

/* Changes that can be undone together. */
int seccomp_transaction_start(const scmp_filter_ctx ctx);
int seccomp_transaction_commit(const scmp_filter_ctx ctx);
void seccomp_transaction_reject(const scmp_filter_ctx ctx);

/* Programs. */
int seccomp_precompute(const scmp_filter_ctx ctx);
int seccomp_load(const scmp_filter_ctx ctx);
int seccomp_export_bpf(const scmp_filter_ctx ctx, int fd);
int seccomp_export_bpf_mem(const scmp_filter_ctx ctx, void *buf, size_t *len);
int seccomp_export_pfc(const scmp_filter_ctx ctx, int fd);

/* Notifications. */
int seccomp_notify_alloc(struct seccomp_notif **req, struct seccomp_notif_resp **resp);
void seccomp_notify_free(struct seccomp_notif *req, struct seccomp_notif_resp *resp);
int seccomp_notify_receive(int fd, struct seccomp_notif *req);
int seccomp_notify_respond(int fd, struct seccomp_notif_resp *resp);
int seccomp_notify_id_valid(int fd, uint64_t id);
int seccomp_notify_fd(const scmp_filter_ctx ctx); /* the descriptor */

#include <seccomp-syscalls.h>

#ifdef __cplusplus
}
#endif

#endif
