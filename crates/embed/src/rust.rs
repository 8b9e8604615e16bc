//! A module for Rust that needs no other crate.

use tamis_abi::Arch;
use tamis_bpf::Insn;
use tamis_rules::VariableWidth;

use crate::text::{self, Field, Key, Naming, Scope, Syntax, Value, camel};
use crate::{Language, Target};

/// Rust: modules that need no other crate.
pub static LANGUAGE: Language = Language {
    name: "rust",
    about: "A Rust module: the filter, and functions to bind its variables and to install it",
    named: None,
    reserved: &RESERVED,
    target,
    write: text::write::<Rust>,
};

/// Keywords.
#[rustfmt::skip]
const RESERVED: [&str; 53] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match",
    "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait",
    "true", "Self", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "_",
];

fn target(arch: Arch) -> Option<&'static str> {
    Some(match arch {
        Arch::X86_64 => r#"all(target_arch = "x86_64", target_pointer_width = "64")"#,
        Arch::X86 => r#"target_arch = "x86""#,
        Arch::X32 => r#"all(target_arch = "x86_64", target_pointer_width = "32")"#,
        Arch::Aarch64 => r#"target_arch = "aarch64""#,
        Arch::Arm => r#"target_arch = "arm""#,
        Arch::Riscv64 => r#"target_arch = "riscv64""#,
        Arch::Riscv32 => r#"target_arch = "riscv32""#,
        Arch::Loongarch64 => r#"target_arch = "loongarch64""#,
        Arch::Ppc64le | Arch::Ppc64 => r#"target_arch = "powerpc64""#,
        Arch::Ppc => r#"target_arch = "powerpc""#,
        Arch::S390x => r#"target_arch = "s390x""#,
        Arch::Mips | Arch::Mipsel => r#"target_arch = "mips""#,
        Arch::Mips64 | Arch::Mipsel64 => r#"target_arch = "mips64""#,
        Arch::M68k => r#"target_arch = "m68k""#,
        Arch::S390
        | Arch::Mips64n32
        | Arch::Mipsel64n32
        | Arch::Parisc
        | Arch::Parisc64
        | Arch::Sh
        | Arch::Sheb => return None,
    })
}

/// Types used by the text.
#[rustfmt::skip]
const TAKEN: [&str; 12] = [
    "Config", "Values", "Filter", "BindError", "Insn", "Fprog", "Self", "Vec", "Result", "Ok", "Err", "Default",
];

struct Rust;

impl Syntax for Rust {
    const TEMPLATE: &'static str = TEMPLATE;
    const RESERVED: &'static [&'static str] = &RESERVED;

    fn any_of(conditions: &[&str]) -> String {
        conditions.join(", ")
    }

    fn seccomp_numbers(targets: &[Target]) -> Vec<String> {
        let number = |target: &Target| {
            let (condition, nr) = (target.condition, target.seccomp_nr);
            format!("#[cfg({condition})]\nconst SYS_SECCOMP: c_long = {nr};")
        };
        targets.iter().map(number).collect()
    }

    fn insn(insn: Insn) -> String {
        let Insn { code, jt, jf, k } = insn;
        format!("insn({code:#04x}, {jt}, {jf}, {k:#x}),")
    }

    fn comment(text: &str) -> String {
        format!("// {text}")
    }

    fn tuple(numbers: &[usize]) -> String {
        match numbers {
            [number] => format!("{number},"),
            _ => format!("({}),", comma_separated(numbers)),
        }
    }

    fn array(numbers: &[usize]) -> String {
        format!("[{}],", comma_separated(numbers))
    }

    fn ranges(ranges: &[(u64, u64)]) -> String {
        let ranges = ranges.iter();
        let ranges = ranges.map(|(first, last)| format!("({first}, {last}),"));
        format!("[{}],", ranges.collect::<Vec<_>>().join(" "))
    }

    fn field(field: &Field) -> String {
        let range = field.narrow_range();
        let range = range.map(|(first, last)| format!(", {first} to {last}"));
        let width = field.width.name();
        let kind = match field.count {
            Some(count) => format!("[{width}; {count}]"),
            None => width.to_owned(),
        };
        format!(
            "/// `{}`{}.\npub {}: {kind},",
            field.name,
            range.unwrap_or_default(),
            field.identifier
        )
    }

    fn wide(value: &Value<'_>) -> String {
        converted(value) + ","
    }

    fn halves(value: &Value<'_>) -> String {
        let place = &value.place;
        match value.variable.width {
            VariableWidth::U32 => format!("values.{place}, 0,"),
            VariableWidth::U64 => {
                format!("values.{place} as u32, (values.{place} >> 32) as u32,")
            }
        }
    }

    fn check(value: &Value<'_>) -> Option<String> {
        let condition = value.out_of_range(&format!("values.{}", value.place), "")?;
        let error = format!(
            "OutOfRange {{ variable: {:?}, value: {} }}",
            value.variable.title(),
            converted(value)
        );
        Some(format!("if {condition} {{\n    return Err({error});\n}}"))
    }

    fn naming(name: &str) -> Naming {
        Naming {
            name: name.to_owned(),
            taken_types: TAKEN.map(str::to_owned).into(),
            taken_constants: vec!["Self".to_owned()],
            scope: Scope::Nested,
            type_name: |_, option| camel(option),
            constant: |_, value| variant(value),
        }
    }

    fn option_type(key: &Key<'_>) -> String {
        let values = key.values.iter().zip(&key.option.values);
        let values =
            values.map(|(text, value)| format!("    /// `{}`.\n    {text},\n", value.name));
        format!(
            "/// The option `{}`.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n#[allow(dead_code)]\npub enum {} \
             {{\n{}}}",
            key.option.name,
            key.kind,
            values.collect::<String>()
        )
    }

    fn members(keys: &[Key<'_>]) -> Vec<String> {
        let member = |key: &Key<'_>| {
            let kind = match key.switch() {
                Some(_) => "bool",
                None => &key.kind,
            };
            let (option, field) = (&key.option.name, &key.field);
            format!("/// The option `{option}`.\npub {field}: {kind},")
        };
        keys.iter().map(member).collect()
    }

    fn index(key: &Key<'_>) -> String {
        let Key { field, option, .. } = key;
        let count = option.values.len();
        match key.switch() {
            Some((0, _)) => format!("index = index * 2 + usize::from(config.{field});"),
            Some(_) => format!("index = index * 2 + usize::from(!config.{field});"),
            None => format!("index = index * {count} + config.{field} as usize;"),
        }
    }
}

fn comma_separated(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(", ")
}

/// The expression for a value as `u64`.
fn converted(value: &Value<'_>) -> String {
    match value.variable.width {
        VariableWidth::U32 => format!("u64::from(values.{})", value.place),
        VariableWidth::U64 => format!("values.{}", value.place),
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

const TEMPLATE: &str = r#"// The seccomp @options?filters|filter@ of @input@, made by tamis @version@. Change the @options?matrix|policy@, not this file.
//
// @about@
//
// A module by itself (`mod filter;`), or what one includes (`mod filter { include!("…"); }`). Needs Rust 1.82.

use std::ffi::{c_int, c_long, c_ulong};
use std::io;

@seccomp_numbers@
#[cfg(not(all(target_os = "linux", target_endian = "@byte_order@", any(@targets@))))]
compile_error!("the @options?filters are|filter is@ for other machines");

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

@if options@
#[rustfmt::skip]
static INSNS: [Insn; @insns_len@] = [
    @insns@
];

@if words@
/// The filters' instructions.
#[rustfmt::skip]
static WORDS: [u16; @words_len@] = [
    @words@
];

@end@
/// Stretches of @words?`WORDS`|`INSNS`@: the first, shifted, and the number less one.
#[rustfmt::skip]
static PIECES: [u32; @pieces_len@] = [
    @pieces@
];

/// Where the pieces@patches?, instructions and patches| and instructions@ of each filter end.
#[rustfmt::skip]
static ENDS: [[u32; @patches?3|2@]; @ends_len@] = [
    @ends@
];

/// The filter@variables? and the ranges@ of each combination.
#[rustfmt::skip]
static MEMBERS: [@variables?(u16, u16)|u16@; @members_len@] = [
    @members@
];

@if option_types@
@option_types@

@end@
/// A combination of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    @config@
}

/// A filter that can be installed.
#[derive(Clone)]
pub struct Filter(Vec<Insn>);
@else@
@if variables@
/// The filter with 0 in the place of all variables.
@else@
/// The filter.
@end@
#[rustfmt::skip]
static INSNS: [Insn; @max_insns@] = [
    @insns@
];

/// A filter that can be installed.
#[derive(Clone)]
pub struct Filter([Insn; @max_insns@]);
@end@

/// The flag of `seccomp(2)` for all threads of the process instead of the calling one.
#[allow(dead_code)]
pub const FLAG_TSYNC: u32 = 1;
@if options@

/// Why there is no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)]
pub enum BindError {
    /// The combination is excluded.
    Excluded,
@if variables@
    /// A value is not one that its variable was declared for.
    OutOfRange {
        /// The variable.
        variable: &'static str,
        /// The value.
        value: u64,
    },
@end@
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BindError::Excluded => f.write_str("there is no filter for this combination of options"),
@if variables@
            BindError::OutOfRange { variable, value } => {
                write!(f, "`{variable}` was not declared for {value}")
            }
@end@
        }
    }
}

impl std::error::Error for BindError {}
@end@
@if variables@

/// The values of the policy's variables@options?; those that a combination doesn't have may be anything@.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    @fields@
}

@if options@
/// Which values may be bound, and what they are called.
#[rustfmt::skip]
static RANGES: [[(u64, u64); @variables@]; @ranges_len@] = [
    @ranges@
];
#[rustfmt::skip]
static NAMES: [&str; @variables@] = [
    @titles@
];
@else@
/// A value is not one that its variable was declared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code)]
pub struct OutOfRange {
    /// The variable.
    pub variable: &'static str,
    /// The value.
    pub value: u64,
}

impl std::fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` was not declared for {}", self.variable, self.value)
    }
}

impl std::error::Error for OutOfRange {}
@end@
@end@
@if patches@

/// Where values belong: the instruction, and the half of a value that is its constant.
#[rustfmt::skip]
static PATCHES: [(u16, u8); @patches_len@] = [
    @patches@
];
@end@

@if options@
/// The filter of a combination@variables? for these values@.
///
/// # Errors
/// If there is no filter for the combination@variables?, or a value is not one that its variable was declared for@.
pub fn bind(config: &Config@variables?, values: &Values@) -> Result<Filter, BindError> {
    let mut index = 0;
    @index@
    let @variables?(program, ranges)|program@ = MEMBERS[index];
    if program == @excluded@ {
        return Err(BindError::Excluded);
    }
@if variables@
    let values = [
        @places@
    ];
    for ((&value, (first, last)), variable) in values.iter().zip(RANGES[usize::from(ranges)]).zip(NAMES) {
        if value < first || value > last {
            return Err(BindError::OutOfRange { variable, value });
        }
    }
@end@
    let program = usize::from(program);
    let (starts, ends) = (ENDS[program], ENDS[program + 1]);
    let mut insns: Vec<Insn> = Vec::with_capacity(@max_insns@);
    let mut behind = ends[1] - starts[1];
    for piece in &PIECES[starts[0] as usize..ends[0] as usize] {
        let first = (piece >> @count_bits@) as usize;
        let last = first + (piece & @count_mask@) as usize;
@if words@
        insns.extend(WORDS[first..=last].iter().map(|word| INSNS[usize::from(*word)]).map(|mut insn| {
@else@
        insns.extend(INSNS[first..=last].iter().copied().map(|mut insn| {
@end@
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
@if patches@
    for (insn, half) in &PATCHES[starts[2] as usize..ends[2] as usize] {
        insns[usize::from(*insn)].k = (values[usize::from(half / 2)] >> (half % 2 * 32)) as u32;
    }
@end@
    Ok(Filter(insns))
}
@else@
@if variables@
/// The filter for these values.
///
/// # Errors
/// If a value is not one that its variable was declared for.
pub fn bind(values: &Values) -> Result<Filter, OutOfRange> {
    @checks@
@if patches@
    let halves = [
        @halves@
    ];
    let mut insns = INSNS;
    for (insn, half) in PATCHES {
        insns[usize::from(insn)].k = halves[usize::from(half)];
    }
    Ok(Filter(insns))
@else@
    let _ = [
        @halves@
    ];
    Ok(Filter(INSNS))
@end@
}
@else@
impl Filter {
    /// The filter.
    pub fn new() -> Filter {
        Filter(INSNS)
    }
}

impl Default for Filter {
    fn default() -> Filter {
        Filter::new()
    }
}
@end@
@end@

/// `struct sock_fprog`.
#[repr(C)]
struct Fprog {
    len: u16,
    insns: *const Insn,
}

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

impl Filter {
    /// Installs the filter. `flags` are those of `seccomp(2)`, 0 for none. With `no_new_privs`, `PR_SET_NO_NEW_PRIVS` is
    /// set first, for good: programs that are executed later gain no privileges. Otherwise it must be set already, or
    /// the process have `CAP_SYS_ADMIN`. The result is the descriptor of the listener if a flag requests one, else 0.
    ///
    /// # Errors
    /// The kernel's error; `ESRCH` means that [`FLAG_TSYNC`] could not synchronise all threads.
    pub fn install(&self, flags: u32, no_new_privs: bool) -> io::Result<c_int> {
        const PR_SET_NO_NEW_PRIVS: c_int = 38;
        const SECCOMP_SET_MODE_FILTER: c_ulong = 1;
        const NEW_LISTENER: u32 = 1 << 3;
        const ESRCH: i32 = 3;
        let (on, none): (c_ulong, c_ulong) = (1, 0);
        let program = Fprog {
@if options@
            len: self.0.len() as u16,
@else@
            len: @max_insns@,
@end@
            insns: self.0.as_ptr(),
        };
        // SAFETY: both calls are variadic and take what is passed, words and one pointer. The kernel reads `len`
        // instructions through it during the call, as many as `self` holds, and keeps a copy.
        let result = unsafe {
            if no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, on, none, none, none) != 0 {
                return Err(io::Error::last_os_error());
            }
            let flags = c_ulong::from(flags);
            syscall(SYS_SECCOMP, SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else if result > 0 && flags & NEW_LISTENER == 0 {
            Err(io::Error::from_raw_os_error(ESRCH))
        } else {
            Ok(result as c_int)
        }
    }
}
"#;
