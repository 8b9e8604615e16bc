//! A header for C and C++ with all filters of a family.

use super::super::c::{RESERVED, entry, field};
use super::super::{Field, Target, fields_of, indented};
use super::{Family, Key, Naming, Parts, Scope, name, only_if, rows};
use tamis_abi::Endian;

const PARTS: Parts = Parts {
    head: r#"/*
 * The seccomp filters of @matrix@, made by tamis @version@. Change the matrix, not this file.
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
#error "the filters are for other architectures"
#endif
#if __BYTE_ORDER__ != @byte_order@
#error "the filters are for the other byte order"
#endif

@enums@/* A combination of the options. */
struct @name@_config {
@config@};

/* A filter. */
struct @name@_filter {
	unsigned short insns_len;
	struct sock_filter insns[@max_insns@];
};
"#,
    values: r"
/* The values of the policy's variables; those that a combination doesn't have may be anything. */
struct @name@_values {
@fields@};
",
    patches: "",
    bind: r"
/*
 * Writes the filter of a combination@bound@ to `filter`.
 * Returns 0, or -1 with errno: EINVAL if there is no filter for the combination@erange@.
 */
static inline int @name@_bind(struct @name@_filter *filter, const struct @name@_config *config@parameter@)
{
	static const struct sock_filter insns[] = {
@insns@	};
@words@	/* Stretches of @pool@: the first, shifted, and the number less one. */
	static const uint32_t pieces[] = {
@pieces@	};
	/* Where the pieces@patches_too@ and instructions of each filter end. */
	static const struct { uint32_t piece, insn@patch_member@; } ends[] = {
@ends@	};
	/* The filter@and_ranges@ of each combination. */
	static const struct { uint16_t filter@range_member@; } members[] = {
@members@	};
@tables@	struct sock_filter insn;
	uint32_t piece, end, at, stop, behind;
	unsigned int index = 0, program, length = 0;
@locals@
@index@	program = members[index].filter;
	if (program == @excluded@) {
		errno = EINVAL;
		return -1;
	}
@checks@	behind = ends[program + 1].insn - ends[program].insn;
	end = ends[program + 1].piece;
	for (piece = ends[program].piece; piece < end; piece++) {
		at = pieces[piece] >> @count_bits@;
		stop = at + (pieces[piece] & @count_mask@u);
		for (; at <= stop; at++) {
			insn = insns[@place@];
			behind--;
			/* Bits above the code say which skip is counted from the end. */
			insn.jt = (uint8_t)(insn.jt + behind * (insn.code >> @jt_bit@ & 1u));
			insn.jf = (uint8_t)(insn.jf + behind * (insn.code >> @jf_bit@ & 1u));
			insn.code = (uint16_t)(insn.code & 0xff);
			filter->insns[length++] = insn;
		}
	}
	filter->insns_len = (unsigned short)length;
@store@	return 0;
}
",
    checks: r"	for (i = 0; i < sizeof values_of / sizeof values_of[0]; i++) {
		const uint64_t *range = ranges[members[index].ranges][i];

		if (values_of[i] < range[0] || values_of[i] > range[1]) {
			errno = ERANGE;
			return -1;
		}
	}
",
    store: r"	end = ends[program + 1].patch;
	for (at = ends[program].patch; at < end; at++)
		filter->insns[patches[at].insn].k = (uint32_t)(values_of[patches[at].half / 2] >> patches[at].half % 2 * 32);
",
    install: r"
/*
 * Installs a filter that @name@_bind made. `flags` are those of seccomp(2); `no_new_privs` says whether to give up,
 * for good, that programs run with more privileges, without which only a privileged process may install filters.
 * Returns 0, the descriptor of the listener if SECCOMP_FILTER_FLAG_NEW_LISTENER asks for one, or -1 with errno; that
 * is ESRCH if SECCOMP_FILTER_FLAG_TSYNC could not reach all threads.
 */
static inline int @name@_install(const struct @name@_filter *filter, unsigned int flags, int no_new_privs)
{
	const unsigned int new_listener = 1u << 3;
	struct sock_fprog program;
	long result;

	program.len = filter->insns_len;
	program.filter = (struct sock_filter *)filter->insns;
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
",
};

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

/// Whether a structure of this family would have the name of one of the kernel's.
fn clashes(name: &str) -> bool {
    OWN.iter()
        .any(|own| KERNEL_TAGS.contains(&format!("{name}_{own}").as_str()))
}

/// Writes the text.
pub(crate) fn write(family: &Family<'_>, targets: &[Target]) -> String {
    let name = &name::free(family.name.to_owned(), clashes);
    let conditions: Vec<String> = targets
        .iter()
        .map(|target| format!("({})", target.condition))
        .collect();
    let mut taken: Vec<String> = OWN.map(|own| format!("{name}_{own}")).into();
    taken.extend(KERNEL_TAGS.map(str::to_owned));
    let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
    let keys = family.keys(
        Naming {
            taken_kinds: &taken,
            taken_constants: &["bind", "install"]
                .map(|own| format!("{name}_{own}"))
                .each_ref()
                .map(String::as_str),
            scope: Scope::Apart,
        },
        |option| name::free(option.to_owned(), |text| RESERVED.contains(&text)),
        |option| format!("{name}_{option}"),
        |kind, value| format!("{kind}_{value}"),
    );
    let has_variables = !family.variables.is_empty();
    let fields = fields_of(family.variables, &RESERVED, str::to_owned);
    let mut values = vec![
        ("name", name.to_owned()),
        ("guard", name.to_ascii_uppercase()),
        ("about", indented(" * ", family.about())),
        ("targets", conditions.join(" || \\\n      ")),
        ("byte_order", byte_order(family.endian).to_owned()),
        ("enums", enums(&keys)),
        ("config", indented("\t", keys.iter().map(member))),
        ("fields", indented("\t", fields.iter().map(field))),
        (
            "erange",
            only_if(
                has_variables,
                ", ERANGE if a value is\n * not one that its variable was declared for",
            ),
        ),
        (
            "parameter",
            only_if(
                has_variables,
                &format!(", const struct {name}_values *values"),
            ),
        ),
        ("patches_too", only_if(family.has_patches(), ", patches")),
        ("patch_member", only_if(family.has_patches(), ", patch")),
        ("and_ranges", only_if(has_variables, " and the ranges")),
        ("range_member", only_if(has_variables, ", ranges")),
        ("index", index(&keys)),
    ];
    values.extend(tables(family, &fields));
    PARTS.filled(family, values)
}

fn byte_order(endian: Endian) -> &'static str {
    match endian {
        Endian::Little => "__ORDER_LITTLE_ENDIAN__",
        Endian::Big => "__ORDER_BIG_ENDIAN__",
    }
}

fn enums(keys: &[Key<'_>]) -> String {
    let choices = keys.iter().filter(|key| key.switch().is_none());
    let choices = choices.map(|key| {
        let values: Vec<String> = key
            .values
            .iter()
            .map(|value| format!("\t{value},\n"))
            .collect();
        format!(
            "/* The option {}. */\nenum {} {{\n{}}};\n\n",
            key.option.name,
            key.kind,
            values.concat()
        )
    });
    choices.collect()
}

fn member(key: &Key<'_>) -> String {
    match key.switch() {
        Some(_) => format!("int {}; /* off if 0 */", key.field),
        None => format!("enum {} {};", key.kind, key.field),
    }
}

/// The expression for the index of a combination.
fn index(keys: &[Key<'_>]) -> String {
    let lines = keys.iter().map(|key| {
        let Key { field, option, .. } = key;
        let count = option.values.len();
        match key.switch() {
            Some((off, on)) => format!("index = index * 2u + (config->{field} ? {on}u : {off}u);"),
            None => format!(
                "if ((unsigned int)config->{field} >= {count}u) {{\n\t\terrno = EINVAL;\n\t\treturn -1;\n\t}}\n\t\
                 index = index * {count}u + (unsigned int)config->{field};"
            ),
        }
    });
    indented("\t", lines)
}

/// The tables, and the code that reads them.
fn tables(family: &Family<'_>, fields: &[Field]) -> Vec<(&'static str, String)> {
    let shared = family.shared;
    let has_variables = !family.variables.is_empty();
    let words = shared.words.as_ref().map(|words| {
        let rows = rows("\t\t", words.iter().map(|word| format!("{word},")));
        format!("\t/* The filters' instructions. */\n\tstatic const uint16_t words[] = {{\n{rows}\t}};\n")
    });
    let (pool, place) = match shared.words {
        Some(_) => ("words", "words[at]"),
        None => ("instructions", "at"),
    };
    let ends = family
        .bounds()
        .into_iter()
        .map(|[piece, insn, patch]| match family.has_patches() {
            true => format!("{{ {piece}, {insn}, {patch} }},"),
            false => format!("{{ {piece}, {insn} }},"),
        });
    let members = family
        .entries()
        .into_iter()
        .map(|(filter, ranges)| match has_variables {
            true => format!("{{ {filter}, {ranges} }},"),
            false => format!("{{ {filter} }},"),
        });
    let locals = match has_variables {
        true => "\tsize_t i;\n",
        false => "",
    };
    let insns = shared.insns.iter().copied().map(entry);
    vec![
        ("insns", chunks(&insns.collect::<Vec<_>>(), 3)),
        ("words", words.unwrap_or_default()),
        ("pool", pool.to_owned()),
        ("place", place.to_owned()),
        ("pieces", family.pieces("\t\t")),
        ("ends", rows("\t\t", ends)),
        ("members", rows("\t\t", members)),
        ("tables", variable_tables(family, fields)),
        ("locals", locals.to_owned()),
    ]
}

fn chunks(entries: &[String], count: usize) -> String {
    let lines = entries.chunks(count).map(|line| line.join(" "));
    indented("\t\t", lines)
}

/// The tables about variables.
fn variable_tables(family: &Family<'_>, fields: &[Field]) -> String {
    if family.variables.is_empty() {
        return String::new();
    }
    let range = |(first, last): &(u64, u64)| format!("{{ {first}u, {last}u }},");
    let ranges = family.ranges.iter().map(|ranges| {
        let ranges: Vec<String> = ranges.iter().map(range).collect();
        format!("{{ {} }},", ranges.join(" "))
    });
    let mut text = String::new();
    if family.has_patches() {
        let patches = family.programs.iter().flat_map(|program| &program.patches);
        let patches = rows(
            "\t\t",
            patches.map(|(insn, half)| format!("{{ {insn}, {half} }},")),
        );
        text += "\t/* Where values belong: the instruction, and the half of a value that is its constant. */\n";
        text += &format!(
            "\tstatic const struct {{ uint16_t insn; uint8_t half; }} patches[] = {{\n{patches}\t}};\n"
        );
    }
    let count = family.variables.len();
    text += &format!(
        "\tstatic const uint64_t ranges[][{count}][2] = {{\n{}\t}};\n",
        indented("\t\t", ranges)
    );
    let places = family
        .places(fields)
        .into_iter()
        .map(|place| format!("values->{place},"));
    text += &format!(
        "\tconst uint64_t values_of[] = {{\n{}\t}};\n",
        indented("\t\t", places)
    );
    text
}
