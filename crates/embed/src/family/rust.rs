//! A module for Rust with all filters of a family.

use tamis_abi::Endian;

use super::super::rust::{INSTALL, RESERVED, entry, field};
use super::super::{Field, Target, fields_of, indented};
use super::{Family, Key, Naming, Parts, Scope, camel, name, only_if, rows};

const PARTS: Parts = Parts {
    head: r#"// The seccomp filters of @matrix@, made by tamis @version@. Change the matrix, not this file.
//
@about@//
// A module by itself (`mod filter;`), or what one includes (`mod filter { include!("…"); }`). Needs Rust 1.82.

use std::ffi::{c_int, c_long, c_ulong};
use std::io;

@numbers@#[cfg(not(all(target_os = "linux", target_endian = "@byte_order@", any(@targets@))))]
compile_error!("the filters are for other machines");

/// `struct sock_filter`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Insn {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

const fn insn(code: u16, jt: u8, jf: u8, k: u32) -> Insn {
    Insn { code, jt, jf, k }
}

#[rustfmt::skip]
static INSNS: [Insn; @insns_len@] = [
@insns@];

@words@/// Stretches of @pool@: the first, shifted, and the number less one.
#[rustfmt::skip]
static PIECES: [u32; @pieces_len@] = [
@pieces@];

/// Where the pieces, instructions and patches of each filter end.
#[rustfmt::skip]
static ENDS: [[u32; 3]; @ends_len@] = [
@ends@];

/// The filter and the ranges of each combination.
#[rustfmt::skip]
static MEMBERS: [(u16, u16); @members_len@] = [
@members@];

@enums@/// A combination of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
@config@}

/// A filter that can be installed.
#[derive(Clone)]
pub struct Filter(Vec<Insn>);

/// The flag of `seccomp(2)` for all threads of the process instead of the calling one.
#[allow(dead_code)]
pub const FLAG_TSYNC: u32 = 1;

/// Why there is no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)]
pub enum BindError {
    /// The combination is excluded.
    Excluded,
@out_of_range@}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BindError::Excluded => f.write_str("there is no filter for this combination of options"),
@display@        }
    }
}

impl std::error::Error for BindError {}
"#,
    values: r"
/// The values of the policy's variables; those that a combination doesn't have may be anything.
#[derive(Clone, Copy, Debug)]
pub struct Values {
@fields@}

/// Which values may be bound, and what they are called.
#[rustfmt::skip]
static RANGES: [[(u64, u64); @values_len@]; @ranges_len@] = [
@ranges@];
#[rustfmt::skip]
static NAMES: [&str; @values_len@] = [
@names@];
",
    patches: r"
/// Where values belong: the instruction, and the half of a value that is its constant.
#[rustfmt::skip]
static PATCHES: [(u16, u8); @patches_len@] = [
@patches@];
",
    bind: r"
/// The filter of a combination@bound@.
///
/// # Errors
/// If there is no filter for the combination@erange@.
pub fn bind(config: &Config@parameter@) -> Result<Filter, BindError> {
    let mut index = 0;
@index@    let (program, @ranges_name@) = MEMBERS[index];
    if program == @excluded@ {
        return Err(BindError::Excluded);
    }
@checks@    let program = usize::from(program);
    let (starts, ends) = (ENDS[program], ENDS[program + 1]);
    let mut insns: Vec<Insn> = Vec::with_capacity(@max_insns@);
    let mut behind = ends[1] - starts[1];
    for piece in &PIECES[starts[0] as usize..ends[0] as usize] {
        let first = (piece >> @count_bits@) as usize;
        let last = first + (piece & @count_mask@) as usize;
        insns.extend(@stored@.map(|mut insn| {
            behind -= 1;
            // Bits above the code say which skip is counted from the end.
            let code = insn.code;
            let behind_if = |bit: u32| behind as u8 * (code >> bit & 1) as u8;
            insn.jt = insn.jt.wrapping_add(behind_if(@jt_bit@));
            insn.jf = insn.jf.wrapping_add(behind_if(@jf_bit@));
            insn.code &= 0xff;
            insn
        }));
    }
@store@    Ok(Filter(insns))
}
",
    checks: r"    let values = [
@places@    ];
    for ((&value, (first, last)), variable) in values.iter().zip(RANGES[usize::from(ranges)]).zip(NAMES) {
        if value < first || value > last {
            return Err(BindError::OutOfRange { variable, value });
        }
    }
",
    store: r"    for (insn, half) in &PATCHES[starts[2] as usize..ends[2] as usize] {
        insns[usize::from(*insn)].k = (values[usize::from(half / 2)] >> (half % 2 * 32)) as u32;
    }
",
    install: INSTALL,
};

const OUT_OF_RANGE: &str = r"    /// A value is not one that its variable was declared for.
    OutOfRange {
        /// The variable.
        variable: &'static str,
        /// The value.
        value: u64,
    },
";

const DISPLAY: &str = r#"            BindError::OutOfRange { variable, value } => {
                write!(f, "`{variable}` was not declared for {value}")
            }
"#;

/// Types used by the text.
#[rustfmt::skip]
const TAKEN: [&str; 12] = [
    "Config", "Values", "Filter", "BindError", "Insn", "Fprog", "Self", "Vec", "Result", "Ok", "Err", "Default",
];

/// Writes the text.
pub(crate) fn write(family: &Family<'_>, targets: &[Target]) -> String {
    let conditions: Vec<&str> = targets.iter().map(|target| target.condition).collect();
    let numbers = targets.iter().map(|target| {
        let Target {
            condition,
            seccomp_nr,
        } = target;
        format!("#[cfg({condition})]\nconst SYS_SECCOMP: c_long = {seccomp_nr};")
    });
    let keys = family.keys(
        Naming {
            taken_kinds: &TAKEN,
            taken_constants: &["Self"],
            scope: Scope::Nested,
        },
        |option| name::free(option.to_owned(), |text| RESERVED.contains(&text)),
        camel,
        |_, value| variant(value),
    );
    let has_variables = !family.variables.is_empty();
    let fields = fields_of(family.variables, &RESERVED, str::to_owned);
    let mut values = vec![
        ("about", indented("// ", family.about())),
        ("numbers", indented("", numbers)),
        ("targets", conditions.join(", ")),
        ("byte_order", byte_order(family.endian).to_owned()),
        ("enums", enums(&keys)),
        ("config", indented("    ", keys.iter().map(member))),
        ("index", index(&keys)),
        ("length", "self.0.len() as u16".to_owned()),
        ("fields", indented("    ", fields.iter().map(field))),
    ];
    values.extend(words_about_values(has_variables));
    values.extend(tables(family));
    values.extend(variable_tables(family, &fields));
    PARTS.filled(family, values)
}

/// The parts of the text for families with variables.
fn words_about_values(has_variables: bool) -> Vec<(&'static str, String)> {
    vec![
        ("out_of_range", only_if(has_variables, OUT_OF_RANGE)),
        ("display", only_if(has_variables, DISPLAY)),
        (
            "erange",
            only_if(
                has_variables,
                ", or a value is not one that its variable was declared for",
            ),
        ),
        ("parameter", only_if(has_variables, ", values: &Values")),
        (
            "ranges_name",
            if has_variables { "ranges" } else { "_" }.to_owned(),
        ),
    ]
}

fn byte_order(endian: Endian) -> &'static str {
    match endian {
        Endian::Little => "little",
        Endian::Big => "big",
    }
}

/// The name of a variant, which can't begin with a digit.
fn variant(value: &str) -> String {
    let name = camel(value);
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("V{name}"),
        false => name,
    }
}

fn enums(keys: &[Key<'_>]) -> String {
    let choices = keys.iter().filter(|key| key.switch().is_none());
    let choices = choices.map(|key| {
        let values = key.values.iter().zip(&key.option.values);
        let values = values.map(|(text, value)| format!("/// `{}`.\n    {text},", value.name));
        format!(
            "/// The option `{}`.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n#[allow(dead_code)]\npub enum {} \
             {{\n{}}}\n\n",
            key.option.name,
            key.kind,
            indented("    ", values)
        )
    });
    choices.collect()
}

fn member(key: &Key<'_>) -> String {
    let kind = match key.switch() {
        Some(_) => "bool",
        None => &key.kind,
    };
    format!(
        "/// The option `{}`.\n    pub {}: {kind},",
        key.option.name, key.field
    )
}

/// The expression for the index of a combination.
fn index(keys: &[Key<'_>]) -> String {
    let lines = keys.iter().map(|key| {
        let Key { field, option, .. } = key;
        let count = option.values.len();
        match key.switch() {
            Some((0, _)) => format!("index = index * 2 + usize::from(config.{field});"),
            Some(_) => format!("index = index * 2 + usize::from(!config.{field});"),
            None => format!("index = index * {count} + config.{field} as usize;"),
        }
    });
    indented("    ", lines)
}

/// The tables, and the code that reads them.
fn tables(family: &Family<'_>) -> Vec<(&'static str, String)> {
    let shared = family.shared;
    let words = shared.words.as_ref().map(|words| {
        let (count, rows) = (words.len(), rows("    ", words.iter().map(|word| format!("{word},"))));
        format!(
            "/// The filters' instructions.\n#[rustfmt::skip]\nstatic WORDS: [u16; {count}] = [\n{rows}];\n\n"
        )
    });
    let (pool, stored) = match shared.words {
        Some(_) => (
            "`WORDS`",
            "WORDS[first..=last].iter().map(|word| INSNS[usize::from(*word)])",
        ),
        None => ("`INSNS`", "INSNS[first..=last].iter().copied()"),
    };
    let entries = family.entries();
    let ends = family.bounds();
    let insns: Vec<String> = shared.insns.iter().copied().map(entry).collect();
    let insns = insns.chunks(3).map(|line| line.join(" "));
    vec![
        ("insns_len", shared.insns.len().to_string()),
        ("insns", indented("    ", insns)),
        ("words", words.unwrap_or_default()),
        ("pool", pool.to_owned()),
        ("stored", stored.to_owned()),
        ("pieces_len", shared.pieces.len().to_string()),
        ("pieces", family.pieces("    ")),
        ("ends_len", ends.len().to_string()),
        (
            "ends",
            rows(
                "    ",
                ends.into_iter()
                    .map(|[piece, insn, patch]| format!("[{piece}, {insn}, {patch}],")),
            ),
        ),
        ("members_len", entries.len().to_string()),
        (
            "members",
            rows(
                "    ",
                entries
                    .into_iter()
                    .map(|(filter, ranges)| format!("({filter}, {ranges}),")),
            ),
        ),
    ]
}

/// The tables about variables.
fn variable_tables(family: &Family<'_>, fields: &[Field]) -> Vec<(&'static str, String)> {
    let patches: Vec<String> = family
        .programs
        .iter()
        .flat_map(|program| &program.patches)
        .map(|(insn, half)| format!("({insn}, {half}),"))
        .collect();
    let ranges = family.ranges.iter().map(|ranges| {
        let ranges = ranges
            .iter()
            .map(|(first, last)| format!("({first}, {last}),"));
        format!("[{}],", ranges.collect::<Vec<_>>().join(" "))
    });
    let places = family.wide_places(fields, |place| format!("u64::from({place})"));
    vec![
        ("patches_len", patches.len().to_string()),
        ("patches", rows("    ", patches)),
        ("values_len", family.variables.len().to_string()),
        ("ranges_len", family.ranges.len().to_string()),
        ("ranges", indented("    ", ranges)),
        ("names", indented("    ", family.titles())),
        ("places", indented("        ", places)),
    ]
}
