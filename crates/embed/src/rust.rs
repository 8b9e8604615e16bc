//! A module for Rust that needs no other crate.

use tamis_abi::{Arch, Endian};
use tamis_bpf::Insn;
use tamis_rules::VariableWidth;

use super::{Field, Language, Source, Target, Value, family, fill, indented};

/// Rust: modules that need no other crate.
pub static LANGUAGE: Language = Language {
    name: "rust",
    about: "A Rust module: the filter, and functions to bind its variables and to install it",
    named: None,
    reserved: &RESERVED,
    target,
    write,
    write_family: family::rust::write,
};

/// Keywords.
#[rustfmt::skip]
pub(super) const RESERVED: [&str; 53] = [
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

const HEAD: &str = r#"// The seccomp filter of @policy@, made by tamis @version@. Change the policy, not this file.
//
@about@//
// A module by itself (`mod filter;`), or what one includes (`mod filter { include!("…"); }`). Needs Rust 1.82.

use std::ffi::{c_int, c_long, c_ulong};
use std::io;

@numbers@#[cfg(not(all(target_os = "linux", target_endian = "@byte_order@", any(@targets@))))]
compile_error!("the filter is for other machines");

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

@array_about@
#[rustfmt::skip]
static INSNS: [Insn; @length@] = [
@insns@];

/// A filter that can be installed.
#[derive(Clone)]
pub struct Filter([Insn; @length@]);

/// The flag of `seccomp(2)` for all threads of the process instead of the calling one.
#[allow(dead_code)]
pub const FLAG_TSYNC: u32 = 1;
"#;

const COMPLETE: &str = r"
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
";

const BIND: &str = r#"
/// The values of the policy's variables.
#[derive(Clone, Copy, Debug)]
pub struct Values {
@fields@}

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

/// Where values belong: the instruction, and the half of a value that is its constant.
#[rustfmt::skip]
static PATCHES: [(u16, u8); @patches_length@] = [
@patches@];

/// The filter for these values.
///
/// # Errors
/// If a value is not one that its variable was declared for.
pub fn bind(values: &Values) -> Result<Filter, OutOfRange> {
@checks@    let halves = [
@words@    ];
    let mut insns = INSNS;
    for (insn, half) in PATCHES {
        insns[usize::from(insn)].k = halves[usize::from(half)];
    }
    Ok(Filter(insns))
}
"#;

pub(super) const INSTALL: &str = r#"
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
    /// Installs the filter. `flags` are those of `seccomp(2)`, 0 for none; `no_new_privs` says whether to give up, for
    /// good, that programs run with more privileges, without which only a privileged process may install
    /// filters. The result is the descriptor of the listener if a flag asks for one, else 0.
    ///
    /// # Errors
    /// What the kernel says; `ESRCH` if [`FLAG_TSYNC`] could not reach all threads.
    pub fn install(&self, flags: u32, no_new_privs: bool) -> io::Result<c_int> {
        const PR_SET_NO_NEW_PRIVS: c_int = 38;
        const SECCOMP_SET_MODE_FILTER: c_ulong = 1;
        const NEW_LISTENER: u32 = 1 << 3;
        const ESRCH: i32 = 3;
        let (on, none): (c_ulong, c_ulong) = (1, 0);
        let program = Fprog {
            len: @length@,
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

fn write(source: &Source<'_>, targets: &[Target]) -> String {
    let conditions: Vec<&str> = targets.iter().map(|target| target.condition).collect();
    let numbers = targets.iter().map(|target| {
        let Target {
            condition,
            seccomp_nr,
        } = target;
        format!("#[cfg({condition})]\nconst SYS_SECCOMP: c_long = {seccomp_nr};")
    });
    let is_template = !source.filter.variables().is_empty();
    let array_about = match is_template {
        true => "/// The filter with 0 in the place of all variables.",
        false => "/// The filter.",
    };
    let length = source.filter.template().unbound().len();
    let fields = source.fields(&RESERVED, str::to_owned);
    let patches: Vec<String> = source
        .patches()
        .map(|(insn, half)| format!("({insn}, {half}),"))
        .collect();
    let values = [
        ("policy", source.policy_in_comment()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("about", indented("// ", source.about())),
        ("numbers", indented("", numbers)),
        ("targets", conditions.join(", ")),
        ("byte_order", byte_order(source).to_owned()),
        ("array_about", array_about.to_owned()),
        ("length", length.to_string()),
        ("insns", indented("    ", source.listing(entry, comment))),
        ("fields", indented("    ", fields.iter().map(field))),
        ("patches_length", patches.len().to_string()),
        ("patches", indented("    ", patches)),
        ("checks", checks(source, &fields)),
        ("words", words(source, &fields)),
    ];
    let parts = [HEAD, if is_template { BIND } else { COMPLETE }, INSTALL];
    parts.map(|part| fill(part, &values)).concat()
}

pub(super) fn entry(insn: Insn) -> String {
    let Insn { code, jt, jf, k } = insn;
    format!("insn({code:#04x}, {jt}, {jf}, {k:#x}),")
}

fn comment(text: &str) -> String {
    format!("// {text}")
}

fn byte_order(source: &Source<'_>) -> &'static str {
    match source.filter.endian() {
        Endian::Little => "little",
        Endian::Big => "big",
    }
}

pub(super) fn field(field: &Field) -> String {
    let about = match field.narrow_range() {
        Some((first, last)) => format!("`{}`, {first} to {last}.", field.name),
        None => format!("`{}`.", field.name),
    };
    let width = field.width.name();
    let kind = match field.count {
        Some(count) => format!("[{width}; {count}]"),
        None => width.to_owned(),
    };
    format!("/// {about}\n    pub {}: {kind},", field.identifier)
}

fn checks(source: &Source<'_>, fields: &[Field]) -> String {
    let check = |value: Value<'_>| {
        let read = format!("values.{}", value.place);
        let condition = value.out_of_range(&read, "")?;
        let title = value.variable.title();
        let number = match value.variable.width {
            VariableWidth::U32 => format!("u64::from({read})"),
            VariableWidth::U64 => read,
        };
        let error = format!("OutOfRange {{ variable: {title:?}, value: {number} }}");
        Some(format!(
            "if {condition} {{\n        return Err({error});\n    }}"
        ))
    };
    indented("    ", source.values(fields).filter_map(check))
}

fn words(source: &Source<'_>, fields: &[Field]) -> String {
    let words = source.words(
        fields,
        |place| format!("values.{place}, 0,"),
        |place| format!("values.{place} as u32, (values.{place} >> 32) as u32,"),
    );
    indented("        ", words)
}
