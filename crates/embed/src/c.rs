//! A header for C and C++ that only needs libc.

use tamis_abi::{Arch, Endian};
use tamis_bpf::Insn;
use tamis_rules::VariableWidth;

use super::{Field, Language, Source, Target, family, fill, indented};

/// C.
pub(super) static LANGUAGE: Language = Language {
    name: "c",
    about: "A C header: the filter, and functions to bind its variables and to install it",
    named: Some("the header's declarations begin with"),
    reserved: &RESERVED,
    target,
    write,
    write_family: family::c::write,
};

/// Keywords of C and C++, and lower-case macros of headers and compilers.
#[rustfmt::skip]
pub(super) const RESERVED: [&str; 88] = [
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

const HEAD: &str = r#"/*
 * The seccomp filter of @policy@, made by tamis @version@. Change the policy, not this file.
 *
@about@ *
 * Include it in one file of the program, after the C library's own feature macros (_GNU_SOURCE).
 */
#ifndef TAMIS_@guard@_H
#define TAMIS_@guard@_H

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
#error "the filter is for other architectures"
#endif
#if __BYTE_ORDER__ != @byte_order@
#error "the filter is for the other byte order"
#endif

#ifndef __cplusplus
/* Which the C library hides where it was asked for standard C alone. */
long syscall(long number, ...);
#endif

enum { @name@_insns_len = @length@ };

@array_about@
static const struct sock_filter @array@[@name@_insns_len] = {
@insns@};
"#;

const BIND: &str = r"
/* The values of the policy's variables. */
struct @name@_values {
@fields@};

/*
 * Writes the filter for these values to `filter`, which has room for @name@_insns_len instructions.
 * Returns 0, or -1 with errno ERANGE if a value is not one that its variable was declared for.
 */
static inline int @name@_bind(struct sock_filter *filter, const struct @name@_values *values)
{
@bind@	return 0;
}
";

const STORE: &str = r"	/* Where values belong: the instruction, and the half of a value that is its constant. */
	static const struct { uint16_t insn; uint8_t half; } patches[] = {
@patches@	};
	const uint32_t halves[] = {
@words@	};
	size_t i;

@checks@	memcpy(filter, @array@, sizeof @array@);
	for (i = 0; i < sizeof patches / sizeof patches[0]; i++)
		filter[patches[i].insn].k = halves[patches[i].half];
";

/// The code that binds variables, if no instruction needs any.
const COPY: &str = r"	(void)values;
@checks@	memcpy(filter, @array@, sizeof @array@);
";

const INSTALL: &str = r"
/*
 * Installs a filter of @name@_insns_len instructions, @which@. `flags` are
 * those of seccomp(2); `no_new_privs` says whether to give up, for good, that programs run with more privileges,
 * without which only a privileged process may install filters.
 * Returns 0, the descriptor of the listener if SECCOMP_FILTER_FLAG_NEW_LISTENER asks for one, or -1 with errno; that
 * is ESRCH if SECCOMP_FILTER_FLAG_TSYNC could not reach all threads.
 */
static inline int @name@_install(const struct sock_filter *filter, unsigned int flags, int no_new_privs)
{
	const unsigned int new_listener = 1u << 3;
	struct sock_fprog program;
	long result;

	program.len = @name@_insns_len;
	program.filter = (struct sock_filter *)filter;
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
";

fn write(source: &Source<'_>, targets: &[Target]) -> String {
    let name = source.name;
    let is_template = !source.filter.variables().is_empty();
    let array = match is_template {
        true => format!("{name}_unbound"),
        false => name.to_owned(),
    };
    let conditions: Vec<String> = targets
        .iter()
        .map(|target| format!("({})", target.condition))
        .collect();
    let mut values = vec![
        ("name", name.to_owned()),
        ("guard", name.to_ascii_uppercase()),
        ("array", array.clone()),
        ("policy", source.policy_in_comment()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("about", indented(" * ", source.about())),
        ("targets", conditions.join(" || \\\n      ")),
        ("byte_order", byte_order(source).to_owned()),
        (
            "length",
            source.filter.template().unbound().len().to_string(),
        ),
        ("insns", indented("\t", source.listing(entry, comment))),
    ];
    values.extend(match is_template {
        true => [
            ("array_about", format!("/* The filter with 0 in the place of all variables; {name}_bind makes a filter of it. */")),
            ("which", format!("which {name}_bind made")),
        ],
        false => [
            ("array_about", "/* The filter. */".to_owned()),
            ("which", format!("which is {name} itself")),
        ],
    });
    let fields = source.fields(&RESERVED, str::to_owned);
    values.push(("fields", indented("\t", fields.iter().map(field))));
    values.push(("checks", checks(source, &fields)));
    values.push(("patches", patches(source)));
    values.push(("words", words(source, &fields)));
    let body = match source.patches().next() {
        Some(_) => STORE,
        None => COPY,
    };
    let bind = fill(body, &values);
    values.push(("bind", bind));
    let parts = [HEAD, if is_template { BIND } else { "" }, INSTALL];
    parts.map(|part| fill(part, &values)).concat()
}

pub(super) fn entry(insn: Insn) -> String {
    let Insn { code, jt, jf, k } = insn;
    format!("{{ {code:#04x}, {jt}, {jf}, {k:#x} }},")
}

fn comment(text: &str) -> String {
    format!("/* {text} */")
}

fn byte_order(source: &Source<'_>) -> &'static str {
    match source.filter.endian() {
        Endian::Little => "__ORDER_LITTLE_ENDIAN__",
        Endian::Big => "__ORDER_BIG_ENDIAN__",
    }
}

pub(super) fn field(field: &Field) -> String {
    let kind = match field.width {
        VariableWidth::U32 => "uint32_t",
        VariableWidth::U64 => "uint64_t",
    };
    let count = field.count.map(|count| format!("[{count}]"));
    let range = field
        .narrow_range()
        .map(|(first, last)| format!(" /* {first} to {last} */"));
    format!(
        "{kind} {}{};{}",
        field.identifier,
        count.unwrap_or_default(),
        range.unwrap_or_default()
    )
}

fn checks(source: &Source<'_>, fields: &[Field]) -> String {
    let checks = source.values(fields).filter_map(|value| {
        let condition = value.out_of_range(&format!("values->{}", value.place), "u")?;
        Some(format!(
            "if ({condition}) {{\n\t\terrno = ERANGE;\n\t\treturn -1;\n\t}}"
        ))
    });
    indented("\t", checks)
}

fn patches(source: &Source<'_>) -> String {
    let patches = source.patches();
    indented(
        "\t\t",
        patches.map(|(insn, half)| format!("{{ {insn}, {half} }},")),
    )
}

fn words(source: &Source<'_>, fields: &[Field]) -> String {
    let words = source.words(
        fields,
        |place| format!("values->{place}, 0,"),
        |place| format!("(uint32_t)values->{place}, (uint32_t)(values->{place} >> 32),"),
    );
    indented("\t\t", words)
}
