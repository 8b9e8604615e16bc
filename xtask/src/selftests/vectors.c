/*
 * Prints the vectors of the kernel's lib/test_bpf.c. cargo xtask vectors takes "macros.h" from include/linux/filter.h and
 * "tests.inc" from the tests' file, up to the end of its table. What these need of the kernel is defined here. Vectors
 * whose programs are made of the kernel's random numbers are left out.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>
#include <linux/filter.h>
#include <linux/bpf.h>
#include <linux/if_vlan.h>
typedef __u8 u8; typedef __u16 u16; typedef __u32 u32; typedef __u64 u64;
typedef __s8 s8; typedef __s16 s16; typedef __s32 s32; typedef __s64 s64;
#define BIT(n) (1u << (n))
#define __init
#define GFP_KERNEL 0
#define kmalloc_objs(one, count) calloc(count, sizeof(one))
#define kfree free
#define ARRAY_SIZE(all) (sizeof(all) / sizeof((all)[0]))
#define S16_MIN INT16_MIN
#define S16_MAX INT16_MAX
#define S32_MIN INT32_MIN
#define S32_MAX INT32_MAX
#define U32_MAX UINT32_MAX
#define S64_MIN INT64_MIN
#define S64_MAX INT64_MAX
#define cpu_to_be16(x) __builtin_bswap16(x)
#define cpu_to_be32(x) __builtin_bswap32(x)
#define cpu_to_be64(x) __builtin_bswap64(x)
#define cpu_to_le16(x) (x)
#define cpu_to_le32(x) (x)
#define cpu_to_le64(x) (x)
#define max(a, b) ((a) > (b) ? (a) : (b))
#define kmalloc_array(count, size, flags) calloc(count, size)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#undef __BIG_ENDIAN
#else
#undef __LITTLE_ENDIAN
#endif
#define BUG_ON(condition) ((condition) ? abort() : (void)0)
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define div64_s64(a, b) ((s64)(a) / (s64)(b))
static u64 div64_u64_rem(u64 a, u64 b, u64 *rest) { *rest = a % b; return a / b; }
struct rnd_state { u32 s; };
static int is_random;
static void prandom_seed_state(struct rnd_state *state, u64 seed) { is_random = 1; }
static u32 prandom_u32_state(struct rnd_state *state) { return 0; }
#include "macros.h"
#include "tests.inc"

/*
 * A line for each vector, in fields with a tab after each: its name; the kind of its instructions; the error with which
 * the kernel refuses it, or 0; whether its cases give the size of a memory instead of a packet's; the second part of the
 * packet; the first; the instructions; the cases, each with a size and the result. Bytes are hexadecimal.
 */
static void hex(const void *bytes, size_t size)
{
    for (size_t at = 0; at < size; at++)
        printf("%02x", ((const u8 *)bytes)[at]);
    putchar('\t');
}

int main(void)
{
    for (size_t index = 0; index < ARRAY_SIZE(tests); index++) {
        struct bpf_test *test = &tests[index];
        int is_classic = (test->aux & TEST_TYPE_MASK) == CLASSIC;
        size_t size = is_classic ? sizeof(struct sock_filter) : sizeof(struct bpf_insn), len = 0;
        const void *insns = &test->u;
        if (test->fill_helper) {
            is_random = 0;
            if (test->fill_helper(test) < 0)
                return 1;
            if (is_random)
                continue;
            insns = test->u.ptr.insns;
            len = test->u.ptr.len;
        } else {
            /* The kernel, too, counts up to the last instruction that isn't zero. */
            for (len = MAX_INSNS; len > 1; len--)
                if (memcmp((const u8 *)insns + size * (len - 1), (const u8[8]){0}, size))
                    break;
        }
        int is_refused = test->aux & FLAG_EXPECTED_FAIL;
        printf("%s\t%s\t%d\t%d\t", test->descr, is_classic ? "classic" : "extended",
               is_refused ? -test->expected_errcode : 0, !!(test->aux & FLAG_LARGE_MEM));
        hex(test->frag_data, test->aux & FLAG_SKB_FRAG ? MAX_DATA : 0);
        hex(test->data, MAX_DATA);
        hex(insns, size * len);
        for (int sub = 0; sub < MAX_SUBTESTS; sub++)
            if (sub == 0 || test->test[sub].data_size || test->test[sub].result)
                printf("%s%d:%u", sub ? "," : "", test->test[sub].data_size, test->test[sub].result);
            else
                break;
        putchar('\n');
    }
    return 0;
}
