//! The text form of one system call, the input of a filter.
//!
//! ```text
//! call = [ ( ARCH | INTEGER ) [":"] ] number [ "(" [ arg { "," arg } ] ")" ] [ "@" INTEGER ]
//! number = [ "SYS_" | "__NR_" ] NAME | [ "nr" ] INTEGER
//! arg  = [ ARGUMENT-NAME "=" ] item { "|" item }
//! item = [ "-" | "~" ] ( INTEGER | CONSTANT ) | what strace prints of memory
//! ```
//!
//! `x86_64 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC)`, `openat(flags=O_RDONLY)`, `x86: 102(1)`,
//! `0xc00000b7 -1`, `getpid @0x401000` (the instruction pointer). Integers are decimal, `0x…`, `0o…`, `0b…`, or
//! octal as in C, `0644`; missing arguments are 0. A name that the tables don't have is an error, never 0.
//!
//! A line of strace is a call too ([`strace`]): `[pid 7] openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3`. Strings,
//! arrays and structures represent pointers with unknown values, and are 0. So are all arguments of a call without its
//! beginning, `<... read resumed>`.
//!
//! In a 64-bit register a negative 32-bit argument that is written as a constant, as `-1` or as `~0` has the upper half that
//! compiled C gives it ([`signature::passed`]): `openat(AT_FDCWD)` of x86_64 has 0xffffff9c, and a number says all bits.
//! On a 32-bit architecture `-1`, `~0` and negative constants fill 32 bits. A larger number is kept as
//! it is: a 64-bit process that makes a 32-bit call hands the filter whatever its registers hold.

use std::error::Error;
use std::fmt;

use crate::arch::Arch;
use crate::data::{ArgIndex, SeccompData};
use crate::signature::Width;
use crate::{consts, signature, syscall};

mod describe;
pub mod strace;

pub use describe::{describe, describe_argument, describe_briefly, without_leftovers};

/// A call that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The error: a lower-case fragment.
    pub message: String,
    /// The misspelt name, if that is the error, for suggestions.
    pub unknown: Option<Unknown>,
}

/// A name that the tables don't have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// A system call of this architecture.
    Syscall(Arch, String),
    /// A constant of this architecture.
    Constant(Arch, String),
}

impl CallError {
    fn new(message: impl Into<String>) -> CallError {
        CallError {
            message: message.into(),
            unknown: None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CallError {}

/// Parses a call; `default_arch` is used where the text names no architecture.
///
/// ```
/// use tamis_abi::{Arch, call};
/// let data = call::parse("x86_64 write(1, 0, -1)", Arch::X86).unwrap();
/// assert_eq!((data.nr, data.args[2]), (1, u64::MAX));
/// ```
///
/// # Errors
/// If the text isn't a call or names something that the tables don't have.
pub fn parse(text: &str, default_arch: Arch) -> Result<SeccompData, CallError> {
    if let Some(name) = strace::resumed(text) {
        return parse(name, default_arch);
    }
    let text = strace::without_prefix(text);
    let (head, args, after) = match text.split_once('(') {
        Some((head, rest)) => {
            let (args, after) = strace::arguments(rest);
            let unfinished = rest.ends_with(strace::UNFINISHED).then_some("");
            let after = after
                .or(unfinished)
                .ok_or_else(|| CallError::new("the arguments lack a closing `)`"))?;
            (head, args, after)
        }
        None => {
            let at = text.find('@').unwrap_or(text.len());
            (&text[..at], Vec::new(), &text[at..])
        }
    };
    let ip = instruction_pointer(after.trim())?;
    let (machine, name) = split_machine(head, default_arch)?;
    Ok(SeccompData {
        nr: machine.number(name)?,
        arch: machine.audit(),
        ip,
        args: machine.arguments(name, &args)?,
    })
}

/// The instruction pointer after a call, `@0x401000`; the text may be empty or a result in a log of strace.
fn instruction_pointer(after: &str) -> Result<u64, CallError> {
    match after.strip_prefix('@') {
        Some(ip) => integer(ip.trim()).ok_or_else(|| bad_integer(ip)),
        None if after.is_empty() || strace::is_result(after) => Ok(0),
        None => Err(CallError::new(format!("`{after}` after the call"))),
    }
}

/// Whose call it is.
#[derive(Clone, Copy)]
enum Machine {
    /// An architecture of the tables.
    Known(Arch),
    /// An audit value; calls and arguments have no names there.
    Audit(u32),
}

/// Splits `x86_64 read`, `x86_64: read`, `0x40000003 5` and `read`.
fn split_machine(head: &str, default_arch: Arch) -> Result<(Machine, &str), CallError> {
    let head = head.trim();
    let Some((arch, name)) = head
        .split_once([' ', ':'])
        .filter(|(arch, _)| *arch != "nr")
    else {
        return Ok((Machine::Known(default_arch), head));
    };
    let name = name.trim_start_matches([' ', ':']);
    if let Some(arch) = Arch::from_name(arch) {
        return Ok((Machine::Known(arch), name));
    }
    match integer(arch).map(u32::try_from) {
        Some(Ok(audit)) => Ok((Machine::Audit(audit), name)),
        _ => Err(CallError::new(format!("`{arch}` is not an architecture"))),
    }
}

impl Machine {
    fn audit(self) -> u32 {
        match self {
            Machine::Known(arch) => arch.audit(),
            Machine::Audit(audit) => audit,
        }
    }

    fn number(self, name: &str) -> Result<u32, CallError> {
        let name = plain_name(name);
        if let Some(value) = signed_integer(name) {
            let is_32_bit = value <= u64::from(u32::MAX)
                || value.cast_signed() >= i64::from(i32::MIN) && value.cast_signed() < 0;
            return is_32_bit
                .then_some(value as u32)
                .ok_or_else(|| CallError::new(format!("the number {name} has more than 32 bits")));
        }
        match self {
            Machine::Audit(audit) => Err(CallError::new(format!(
                "architecture {audit:#x} has no table of system calls"
            ))),
            Machine::Known(arch) => {
                syscall::number(arch, name)
                    .map(|nr| nr.0)
                    .ok_or_else(|| CallError {
                        message: format!("{arch} has no system call `{name}`"),
                        unknown: Some(Unknown::Syscall(arch, name.to_owned())),
                    })
            }
        }
    }

    fn arguments(self, call: &str, texts: &[&str]) -> Result<[u64; 6], CallError> {
        let call = plain_name(call);
        let mut values = [None; 6];
        for (position, arg) in texts.iter().enumerate() {
            let (index, value) = match strace::split_name(arg) {
                Some((name, value)) => (self.argument_index(call, name)?, value),
                None => (position, *arg),
            };
            let slot = values
                .get_mut(index)
                .ok_or_else(|| CallError::new("a call has at most six arguments"))?;
            let mut bits = 0;
            if !strace::is_memory(value) {
                let value = strace::without_notes(value);
                for item in value.split('|') {
                    bits |= self.argument_item(item.trim())?;
                }
                bits = self.passed(call, index, value.trim(), bits);
            }
            if slot.replace(bits).is_some() {
                return Err(CallError::new(format!(
                    "argument {index} of `{call}` is given twice"
                )));
            }
        }
        Ok(values.map(Option::unwrap_or_default))
    }

    /// A value as compiled C passes it. A plain number stands for all bits of the register.
    fn passed(self, call: &str, index: usize, text: &str, bits: u64) -> u64 {
        let Machine::Known(arch) = self else {
            return bits;
        };
        let place = ArgIndex::ALL.get(index);
        let arg = place.and_then(|place| signature::at(arch, call, *place));
        let is_int = arg.is_some_and(|arg| signature::width(arch, call, arg) == Width::Bits32);
        match is_int && arch.has_64_bit_registers() && integer(text).is_none() {
            true => signature::passed(arch, bits),
            false => bits,
        }
    }

    fn argument_index(self, call: &str, name: &str) -> Result<usize, CallError> {
        let Machine::Known(arch) = self else {
            return Err(CallError::new(
                "arguments have no names on this architecture",
            ));
        };
        signature::index(arch, call, strace::argument(call, name))
            .map(ArgIndex::index)
            .ok_or_else(|| {
                let known: Vec<&str> = signature::args(call)
                    .unwrap_or_default()
                    .iter()
                    .map(signature::Arg::name)
                    .collect();
                let known = known.join(", ");
                CallError::new(format!(
                    "`{call}` has no argument `{name}` in a register of its own on {arch}; \
             its arguments: {known}"
                ))
            })
    }

    fn argument_item(self, item: &str) -> Result<u64, CallError> {
        let plain = item.trim_start_matches(['-', '~']);
        let signs = &item[..item.len() - plain.len()];
        let mut value = self.plain_item(plain)?;
        for sign in signs.bytes().rev() {
            value = match sign {
                b'-' => value.wrapping_neg(),
                _ => !value,
            } & self.register_mask();
        }
        Ok(value)
    }

    /// An item without its signs.
    fn plain_item(self, item: &str) -> Result<u64, CallError> {
        if item.starts_with(|c: char| c.is_ascii_digit()) {
            return integer(item).ok_or_else(|| bad_integer(item));
        }
        match self {
            Machine::Audit(_) => Err(bad_integer(item)),
            Machine::Known(arch) => match consts::value(arch, item) {
                Some(value) => Ok(value & self.register_mask()),
                None => Err(CallError {
                    message: format!("{arch} has no constant `{item}`"),
                    unknown: Some(Unknown::Constant(arch, item.to_owned())),
                }),
            },
        }
    }

    /// The bits that a negative number fills.
    fn register_mask(self) -> u64 {
        match self {
            Machine::Known(arch) => signature::Width::of_registers(arch).max(),
            Machine::Audit(_) => u64::MAX,
        }
    }
}

/// The name or number without the prefixes of source code and reports: `SYS_read`, `__NR_read`, `nr 59`, and strace's
/// `syscall_0x1d3`.
fn plain_name(name: &str) -> &str {
    let number = name
        .strip_prefix("nr ")
        .or_else(|| name.strip_prefix("syscall_"));
    let number = number.filter(|number| signed_integer(number.trim()).is_some());
    let named = || {
        name.strip_prefix("SYS_")
            .or_else(|| name.strip_prefix("__NR_"))
    };
    number.or_else(named).unwrap_or(name).trim()
}

fn integer(text: &str) -> Option<u64> {
    let (digits, radix) = match text.get(..2) {
        Some("0x") => (&text[2..], 16),
        Some("0o") => (&text[2..], 8),
        Some("0b") => (&text[2..], 2),
        Some(octal) if octal.starts_with('0') => (&text[1..], 8),
        _ => (text, 10),
    };
    // `from_str_radix` alone would accept a sign.
    let is_digits = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix)
        .ok()
        .filter(|_| is_digits)
}

/// An integer that may be negative, in two's complement.
fn signed_integer(text: &str) -> Option<u64> {
    match text.strip_prefix('-') {
        Some(digits) => integer(digits).map(u64::wrapping_neg),
        None => integer(text),
    }
}

fn bad_integer(text: &str) -> CallError {
    CallError::new(format!("`{}` is not a 64-bit integer", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_constants_and_named_arguments_are_understood() {
        let text = "x86_64 socket(AF_INET, type=SOCK_STREAM|SOCK_CLOEXEC, 0x11) @0x1000";
        let data = parse(text, Arch::Aarch64).unwrap();
        assert_eq!(data.arch, Arch::X86_64.audit());
        assert_eq!((data.nr, data.ip), (41, 0x1000));
        assert_eq!(data.args, [2, 1 | 0o2_000_000, 0x11, 0, 0, 0]);
    }

    #[test]
    fn a_description_parses_back_to_the_call() {
        let calls = [
            (Arch::X86_64.audit(), 41, 7),
            (Arch::S390x.audit(), 120, 0),
            (Arch::X86.audit(), 999_999, 0),
            (Arch::X32.audit(), 0x4000_0001, 9),
            (0xdead, u32::MAX, 1),
        ];
        for (arch, nr, last) in calls {
            let args = [1, 2, 3, 0, 0, last];
            let data = SeccompData {
                nr,
                arch,
                ip: 0xfff,
                args,
            };
            assert_eq!(
                parse(&describe(&data), Arch::X86_64),
                Ok(data),
                "{}",
                describe(&data)
            );
            let brief = describe_briefly(&data);
            assert_eq!(parse(&brief, Arch::X86_64), Ok(data), "{brief}");
        }
    }

    #[test]
    fn arguments_have_the_bits_of_the_registers() {
        let first = |text: &str| parse(text, Arch::X86_64).unwrap().args[0];
        assert_eq!(first("x86 read(-1)"), 0xffff_ffff);
        assert_eq!(first("x86 read(~1)"), 0xffff_fffe);
        assert_eq!(first("x86 openat(AT_FDCWD)"), 0xffff_ff9c);
        assert_eq!(first("x86 read(0x100000001)"), 0x1_0000_0001);
        assert_eq!(first("x32 read(-1)"), 0xffff_ffff);
        assert_eq!(first("openat(AT_FDCWD)"), 0xffff_ff9c);
        assert_eq!(first("openat(0xffffffffffffff9c)"), -100i64 as u64);
        assert_eq!(first("s390x openat(AT_FDCWD)"), -100i64 as u64);
        assert_eq!(first("brk(-1)"), u64::MAX);
        let shown = |text: &str| describe_briefly(&parse(text, Arch::X86_64).unwrap());
        assert_eq!(shown("openat(0xffffff9c)"), "x86_64 openat(dfd=AT_FDCWD)");
        let extended = "x86_64 openat(dfd=0xffffffffffffff9c)";
        assert_eq!(shown("openat(0xffffffffffffff9c)"), extended);
        assert_eq!(first(&format!("read({}1)", "-".repeat(100_000))), 1);
    }

    #[test]
    fn names_and_numbers_have_the_prefixes_of_source_code() {
        let number = |text: &str| parse(text, Arch::X86_64).unwrap().nr;
        let texts = [
            "SYS_execve",
            "__NR_execve",
            "nr 59",
            "x86_64 nr 59(0)",
            "syscall_0x3b(1)",
            "x86_64: SYS_execve",
        ];
        for text in texts {
            assert_eq!(number(text), 59, "{text}");
        }
    }

    #[test]
    fn mistakes_are_errors() {
        for text in [
            "",
            "raed",
            "0xdead read",
            "-0x80000001",
            "read(",
            "read(1",
            "read(AF_NOPE)",
            "read(x=1)",
            "mars read",
            "read @zz",
            "read(1,2,3,4,5,6,7)",
            "0x1ffffffff",
            "read(0xg)",
            "read(+1)",
            "read(fd=1, fd=2)",
            "read(1, fd=2)",
            "read(1) 2",
            "read(08)",
            "nr read",
            "SYS_",
            "read(\"",
        ] {
            assert!(parse(text, Arch::X86_64).is_err(), "{text}");
        }
    }
}
