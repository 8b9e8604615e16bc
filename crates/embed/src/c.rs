//! A header for C and C++ that only needs libc.

use tamis_abi::Arch;
use tamis_bpf::Insn;
use tamis_rules::VariableWidth;

use crate::text::{self, Field, Key, Naming, Scope, Syntax, Value};
use crate::{Language, name};

/// C.
pub(super) static LANGUAGE: Language = Language {
    name: "c",
    about: "A C header: the filter, and functions to bind its variables and to install it",
    named: Some("the header's declarations begin with"),
    reserved: &RESERVED,
    target,
    write: text::write::<C>,
};

/// Keywords of C and C++, and lower-case macros of headers and compilers.
#[rustfmt::skip]
const RESERVED: [&str; 88] = [
    "alignas", "alignof", "and", "asm", "assert", "auto", "bool", "break", "case", "catch", "char", "class",
    "compl", "concept", "const", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete",
    "do", "double", "else", "enum", "errno", "explicit", "export", "extern", "false", "float", "for", "friend",
    "goto", "i386", "if", "inline", "int", "linux", "long", "main", "memcpy", "mips", "mutable", "namespace", "new",
    "noexcept", "not", "nullptr", "operator", "or", "prctl", "private", "protected", "public", "register",
    "requires", "restrict", "return", "short", "signed", "sizeof", "static", "stderr", "stdin", "stdout", "struct",
    "switch", "syscall", "template", "this", "throw", "true", "try", "typedef", "typeid", "typename", "typeof",
    "union", "unix", "unsigned", "using", "virtual", "void", "volatile", "while", "xor",
];

fn target(arch: Arch) -> Option<&'static str> {
    Some(match arch {
        Arch::X86_64 => "defined __x86_64__ && !defined __ILP32__",
        Arch::X86 => "defined __i386__",
        Arch::X32 => "defined __x86_64__ && defined __ILP32__",
        Arch::Aarch64 => "defined __aarch64__",
        Arch::Arm => "defined __arm__",
        Arch::Riscv64 => "defined __riscv && __riscv_xlen == 64",
        Arch::Riscv32 => "defined __riscv && __riscv_xlen == 32",
        Arch::Loongarch64 => "defined __loongarch64",
        Arch::Ppc64le | Arch::Ppc64 => "defined __powerpc64__",
        Arch::Ppc => "defined __powerpc__ && !defined __powerpc64__",
        Arch::S390x => "defined __s390x__",
        Arch::S390 => "defined __s390__ && !defined __s390x__",
        Arch::Mips | Arch::Mipsel => "defined __mips__ && _MIPS_SIM == _ABIO32",
        Arch::Mips64 | Arch::Mipsel64 => "defined __mips__ && _MIPS_SIM == _ABI64",
        Arch::Mips64n32 | Arch::Mipsel64n32 => "defined __mips__ && _MIPS_SIM == _ABIN32",
        Arch::Parisc => "defined __hppa__ && !defined __LP64__",
        Arch::Parisc64 => "defined __hppa__ && defined __LP64__",
        Arch::M68k => "defined __m68k__",
        Arch::Sh | Arch::Sheb => "defined __sh__",
    })
}

/// The suffixes of the names of a family's structures.
const OWN: [&str; 3] = ["config", "filter", "values"];

/// The structures of the kernel's headers that the text includes; in C all structures and enumerations share one
/// scope of names.
const KERNEL_TAGS: [&str; 7] = [
    "seccomp_data",
    "seccomp_notif",
    "seccomp_notif_addfd",
    "seccomp_notif_resp",
    "seccomp_notif_sizes",
    "sock_filter",
    "sock_fprog",
];

struct C;

impl Syntax for C {
    const TEMPLATE: &'static str = TEMPLATE;
    const RESERVED: &'static [&'static str] = &RESERVED;

    fn any_of(conditions: &[&str]) -> String {
        let conditions = conditions.iter().map(|condition| format!("({condition})"));
        conditions.collect::<Vec<_>>().join(" || \\\n      ")
    }

    fn insn(insn: Insn) -> String {
        let Insn { code, jt, jf, k } = insn;
        format!("{{ {code:#04x}, {jt}, {jf}, {k:#x} }},")
    }

    fn comment(text: &str) -> String {
        format!("/* {text} */")
    }

    fn tuple(numbers: &[usize]) -> String {
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        format!("{{ {} }},", numbers.join(", "))
    }

    fn ranges(ranges: &[(u64, u64)]) -> String {
        let ranges = ranges.iter();
        let ranges = ranges.map(|(first, last)| format!("{{ {first}u, {last}u }}, "));
        format!("{{ {}}},", ranges.collect::<String>())
    }

    fn field(field: &Field) -> String {
        let kind = match field.width {
            VariableWidth::U32 => "uint32_t",
            VariableWidth::U64 => "uint64_t",
        };
        let count = field.count.map(|count| format!("[{count}]"));
        let range = field.narrow_range();
        let range = range.map(|(first, last)| format!(" /* {first} to {last} */"));
        format!(
            "{kind} {}{};{}",
            field.identifier,
            count.unwrap_or_default(),
            range.unwrap_or_default()
        )
    }

    fn wide(value: &Value<'_>) -> String {
        format!("values->{},", value.place)
    }

    fn halves(value: &Value<'_>) -> String {
        let place = &value.place;
        match value.variable.width {
            VariableWidth::U32 => format!("values->{place}, 0,"),
            VariableWidth::U64 => {
                format!("(uint32_t)values->{place}, (uint32_t)(values->{place} >> 32),")
            }
        }
    }

    fn check(value: &Value<'_>) -> Option<String> {
        let condition = value.out_of_range(&format!("values->{}", value.place), "u")?;
        Some(format!(
            "if ({condition}) {{\n\terrno = ERANGE;\n\treturn -1;\n}}"
        ))
    }

    fn naming(name: &str) -> Naming {
        let is_kernels = |name: &str| {
            let mut own = OWN.iter().map(|own| format!("{name}_{own}"));
            own.any(|own| KERNEL_TAGS.contains(&own.as_str()))
        };
        let name = name::free(name.to_owned(), is_kernels);
        let own = OWN.iter().map(|own| format!("{name}_{own}"));
        Naming {
            taken_types: own.chain(KERNEL_TAGS.map(str::to_owned)).collect(),
            taken_constants: ["bind", "install"]
                .map(|own| format!("{name}_{own}"))
                .into(),
            name,
            scope: Scope::Separate,
            type_name: |prefix, option| format!("{prefix}_{option}"),
            constant: |kind, value| format!("{kind}_{value}"),
        }
    }

    fn option_type(key: &Key<'_>) -> String {
        format!(
            "/* The option {}. */\nenum {} {{\n\t{},\n}};",
            key.option.name,
            key.kind,
            key.values.join(",\n\t")
        )
    }

    fn members(keys: &[Key<'_>]) -> Vec<String> {
        let member = |key: &Key<'_>| match key.switch() {
            Some(_) => format!("int {}; /* off if 0 */", key.field),
            None => format!("enum {} {};", key.kind, key.field),
        };
        keys.iter().map(member).collect()
    }

    fn index(key: &Key<'_>) -> String {
        let Key { field, option, .. } = key;
        let count = option.values.len();
        match key.switch() {
            Some((off, on)) => format!("index = index * 2u + (config->{field} ? {on}u : {off}u);"),
            None => format!(
                "if ((unsigned int)config->{field} >= {count}u) {{\n\terrno = EINVAL;\n\treturn -1;\n}}\nindex = \
                 index * {count}u + (unsigned int)config->{field};"
            ),
        }
    }
}

const TEMPLATE: &str = r#"/*
 * The seccomp @options?filters|filter@ of @input@, made by tamis @version@. Change the @options?matrix|policy@, not this file.
 *
 * @about@
 *
 * Include it in one file of the program, after the C library's own feature macros (_GNU_SOURCE).
 */
#ifndef TAMIS_@NAME@_H
#define TAMIS_@NAME@_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !(@targets@)
#error "the @options?filters are|filter is@ for other architectures"
#endif
#if __BYTE_ORDER__ != __ORDER_@BYTE_ORDER@_ENDIAN__
#error "the @options?filters are|filter is@ for the other byte order"
#endif

#ifndef __cplusplus
/* C libraries do not declare it in strict standard C. */
long syscall(long number, ...);
#endif

@if !options@
enum { @name@_insns_len = @max_insns@ };

@if variables@
/* The filter with 0 in the place of all variables; @name@_bind makes a filter of it. */
static const struct sock_filter @name@_unbound[@name@_insns_len] = {
@else@
/* The filter. */
static const struct sock_filter @name@[@name@_insns_len] = {
@end@
	@insns@
};
@else@
@if option_types@
@option_types@

@end@
/* A combination of the options. */
struct @name@_config {
	@config@
};

/* A filter. */
struct @name@_filter {
	unsigned short insns_len;
	struct sock_filter insns[@max_insns@];
};
@end@
@if variables@

/* The values of the policy's variables@options?; those that a combination doesn't have may be anything@. */
struct @name@_values {
	@fields@
};
@end@
@if options@

/*
 * Writes the filter of a combination@variables? for these values@ to `filter`.
@if variables@
 * Returns 0, or -1 with errno: EINVAL if there is no filter for the combination, ERANGE if a value is
 * not one that its variable was declared for.
 */
static inline int @name@_bind(struct @name@_filter *filter, const struct @name@_config *config, const struct @name@_values *values)
@else@
 * Returns 0, or -1 with errno: EINVAL if there is no filter for the combination.
 */
static inline int @name@_bind(struct @name@_filter *filter, const struct @name@_config *config)
@end@
{
	static const struct sock_filter insns[] = {
		@insns@
	};
@if words@
	/* The filters' instructions. */
	static const uint16_t words[] = {
		@words@
	};
@end@
	/* Stretches of @words?words|instructions@: the first, shifted, and the number less one. */
	static const uint32_t pieces[] = {
		@pieces@
	};
	/* Where the pieces@patches?, patches@ and instructions of each filter end. */
	static const struct { uint32_t piece, insn@patches?, patch@; } ends[] = {
		@ends@
	};
	/* The filter@variables? and the ranges@ of each combination. */
	static const struct { uint16_t filter@variables?, ranges@; } members[] = {
		@members@
	};
@if patches@
	/* Where values belong: the instruction, and the half of a value that is its constant. */
	static const struct { uint16_t insn; uint8_t half; } patches[] = {
		@patches@
	};
@end@
@if variables@
	static const uint64_t ranges[][@variables@][2] = {
		@ranges@
	};
	const uint64_t values_of[] = {
		@places@
	};
@end@
	struct sock_filter insn;
	uint32_t piece, end, at, stop, behind;
	unsigned int index = 0, program, length = 0;
@if variables@
	size_t i;
@end@

	@index@
	program = members[index].filter;
	if (program == @excluded@) {
		errno = EINVAL;
		return -1;
	}
@if variables@
	for (i = 0; i < sizeof values_of / sizeof values_of[0]; i++) {
		const uint64_t *range = ranges[members[index].ranges][i];

		if (values_of[i] < range[0] || values_of[i] > range[1]) {
			errno = ERANGE;
			return -1;
		}
	}
@end@
	behind = ends[program + 1].insn - ends[program].insn;
	end = ends[program + 1].piece;
	for (piece = ends[program].piece; piece < end; piece++) {
		at = pieces[piece] >> @count_bits@;
		stop = at + (pieces[piece] & @count_mask@u);
		for (; at <= stop; at++) {
			insn = insns[@words?words[at]|at@];
			behind--;
			/* Bits above the code say which skip is counted from the end. */
			insn.jt = (uint8_t)(insn.jt + behind * (insn.code >> @jt_bit@ & 1u));
			insn.jf = (uint8_t)(insn.jf + behind * (insn.code >> @jf_bit@ & 1u));
			insn.code = (uint16_t)(insn.code & 0xff);
			filter->insns[length++] = insn;
		}
	}
	filter->insns_len = (unsigned short)length;
@if patches@
	end = ends[program + 1].patch;
	for (at = ends[program].patch; at < end; at++)
		filter->insns[patches[at].insn].k = (uint32_t)(values_of[patches[at].half / 2] >> patches[at].half % 2 * 32);
@end@
	return 0;
}
@else@
@if variables@

/*
 * Writes the filter for these values to `filter`, which has room for @name@_insns_len instructions.
 * Returns 0, or -1 with errno ERANGE if a value is not one that its variable was declared for.
 */
static inline int @name@_bind(struct sock_filter *filter, const struct @name@_values *values)
{
@if patches@
	/* Where values belong: the instruction, and the half of a value that is its constant. */
	static const struct { uint16_t insn; uint8_t half; } patches[] = {
		@patches@
	};
	const uint32_t halves[] = {
		@halves@
	};
	size_t i;

@else@
	(void)values;
@end@
	@checks@
	memcpy(filter, @name@_unbound, sizeof @name@_unbound);
@if patches@
	for (i = 0; i < sizeof patches / sizeof patches[0]; i++)
		filter[patches[i].insn].k = halves[patches[i].half];
@end@
	return 0;
}
@end@
@end@

/*
@if options@
 * Installs a filter made by @name@_bind.
@else@
 * Installs a filter of @name@_insns_len instructions@variables?, made by |, such as @@name@@variables?_bind@.
@end@
 * `flags` are those of seccomp(2). If `no_new_privs` is not 0, PR_SET_NO_NEW_PRIVS is set first, for good: programs
 * that are executed later gain no privileges. Otherwise it must be set already, or the process have CAP_SYS_ADMIN.
 * Returns 0, the descriptor of the listener if SECCOMP_FILTER_FLAG_NEW_LISTENER is set, or -1 with errno; ESRCH
 * means that SECCOMP_FILTER_FLAG_TSYNC could not synchronise all threads.
 */
@if options@
static inline int @name@_install(const struct @name@_filter *filter, unsigned int flags, int no_new_privs)
@else@
static inline int @name@_install(const struct sock_filter *filter, unsigned int flags, int no_new_privs)
@end@
{
	const unsigned int new_listener = 1u << 3;
	struct sock_fprog program;
	long result;

@if options@
	program.len = filter->insns_len;
	program.filter = (struct sock_filter *)filter->insns;
@else@
	program.len = @name@_insns_len;
	program.filter = (struct sock_filter *)filter;
@end@
	if (no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0)
		return -1;
	result = syscall(SYS_seccomp, 1L /* SECCOMP_SET_MODE_FILTER */, (unsigned long)flags, &program);
	if (result > 0 && !(flags & new_listener)) {
		errno = ESRCH;
		return -1;
	}
	return (int)result;
}

#endif
"#;
