//! The text form of one system call: how people name a filter's input.
//!
//! ```text
//! call = [ ARCH [":"] ] ( NAME | INTEGER ) [ "(" [ arg { "," arg } ] ")" ] [ "@" INTEGER ]
//! arg  = [ ARGUMENT-NAME "=" ] item { "|" item }
//! item = [ "-" | "~" ] ( INTEGER | CONSTANT )
//! ```
//!
//! `x86_64 socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC)`, `openat(flags=O_RDONLY)`, `x86: 102(1)`,
//! `getpid @0x401000` (the instruction pointer). Integers are decimal, `0x…`, `0o…` or `0b…`; missing
//! arguments are 0. A number that no architecture or constant of the tables has is an error, never 0.

use std::error::Error;
use std::fmt;

use crate::arch::Arch;
use crate::data::SeccompData;
use crate::{consts, signature, syscall};

/// A call that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// The misspelt name, if that is what is wrong, for suggestions.
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
    let (text, ip) = match text.split_once('@') {
        Some((call, ip)) => (call, integer(ip.trim()).ok_or_else(|| bad_integer(ip))?),
        None => (text, 0),
    };
    let (head, args) = match text.split_once('(') {
        Some((head, rest)) => {
            let args = rest.trim_end().strip_suffix(')');
            (head, Some(args.ok_or_else(|| CallError::new("the arguments lack their `)`"))?))
        }
        None => (text, None),
    };
    let (arch, name) = split_arch(head, default_arch)?;
    let nr = number(arch, name)?;
    let args = arguments(arch, name, args.unwrap_or(""))?;
    let arch = arch.audit();
    Ok(SeccompData { nr, arch, ip, args })
}

/// Splits `x86_64 read`, `x86_64: read` and `read`.
fn split_arch(head: &str, default_arch: Arch) -> Result<(Arch, &str), CallError> {
    let head = head.trim();
    let Some((arch, name)) = head.split_once([' ', ':']) else {
        return Ok((default_arch, head));
    };
    match Arch::from_name(arch) {
        Some(arch) => Ok((arch, name.trim_start_matches([' ', ':']))),
        None => Err(CallError::new(format!("`{arch}` is not an architecture"))),
    }
}

fn number(arch: Arch, name: &str) -> Result<u32, CallError> {
    if let Some(value) = integer(name) {
        return u32::try_from(value)
            .map_err(|_| CallError::new(format!("the number {name} has more than 32 bits")));
    }
    syscall::number(arch, name).map(|nr| nr.0).ok_or_else(|| CallError {
        message: format!("{arch} has no system call `{name}`"),
        unknown: Some(Unknown::Syscall(arch, name.to_owned())),
    })
}

fn arguments(arch: Arch, call: &str, text: &str) -> Result<[u64; 6], CallError> {
    let mut values = [0; 6];
    if text.trim().is_empty() {
        return Ok(values);
    }
    for (position, arg) in text.split(',').enumerate() {
        let (index, value) = match arg.split_once('=') {
            Some((name, value)) => (argument_index(call, name.trim())?, value),
            None => (position, arg),
        };
        let slot = values
            .get_mut(index)
            .ok_or_else(|| CallError::new("a call has at most six arguments"))?;
        for item in value.split('|') {
            *slot |= argument_item(arch, item.trim())?;
        }
        if !arch.is_64_bit() {
            *slot &= 0xffff_ffff;
        }
    }
    Ok(values)
}

fn argument_index(call: &str, name: &str) -> Result<usize, CallError> {
    let args = signature::args(call).unwrap_or_default();
    args.iter().position(|arg| arg.name == name).ok_or_else(|| {
        let known: Vec<&str> = args.iter().map(|arg| arg.name).collect();
        let known = known.join(", ");
        CallError::new(format!(
            "`{call}` has no argument `{name}`; it has: {known}"
        ))
    })
}

fn argument_item(arch: Arch, item: &str) -> Result<u64, CallError> {
    if let Some(positive) = item.strip_prefix('-') {
        return argument_item(arch, positive).map(u64::wrapping_neg);
    }
    if let Some(inverted) = item.strip_prefix('~') {
        return argument_item(arch, inverted).map(|value| !value);
    }
    if item.starts_with(|c: char| c.is_ascii_digit()) {
        return integer(item).ok_or_else(|| bad_integer(item));
    }
    consts::value(arch, item).ok_or_else(|| CallError {
        message: format!("{arch} has no constant `{item}`"),
        unknown: Some(Unknown::Constant(arch, item.to_owned())),
    })
}

fn integer(text: &str) -> Option<u64> {
    let (digits, radix) = match text.get(..2) {
        Some("0x") => (&text[2..], 16),
        Some("0o") => (&text[2..], 8),
        Some("0b") => (&text[2..], 2),
        _ => (text, 10),
    };
    let is_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix)
        .ok()
        .filter(|_| is_digits)
}

fn bad_integer(text: &str) -> CallError {
    CallError::new(format!("`{}` is not a 64-bit integer", text.trim()))
}

/// The call as [`parse`] reads it: `x86_64 socket(family=0x2, type=0x1, protocol=0x0)`.
///
/// Arguments are shown as far as the call has them; where its signature is unknown, up to the last
/// that isn't 0. A call of an unknown architecture is shown with the number of the architecture.
pub fn describe(data: &SeccompData) -> String {
    let Some(arch) = Arch::of_call(data.arch, data.nr) else {
        return format!("arch {:#x} number {:#x}", data.arch, data.nr);
    };
    let name = syscall::name(arch, crate::Nr(data.nr));
    let args = name.and_then(signature::args).unwrap_or_default();
    let last_used = data.args.iter().rposition(|value| *value != 0);
    let count = args.len().max(last_used.map_or(0, |index| index + 1));
    let shown: Vec<String> = data.args[..count]
        .iter()
        .enumerate()
        .map(|(index, value)| match args.get(index) {
            Some(arg) => format!("{}={value:#x}", arg.name),
            None => format!("{value:#x}"),
        })
        .collect();
    let name = name.map_or_else(|| format!("{:#x}", data.nr), str::to_owned);
    let ip = match data.ip {
        0 => String::new(),
        ip => format!(" @{ip:#x}"),
    };
    format!("{arch} {name}({}){ip}", shown.join(", "))
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
        for (arch, nr, last) in [(Arch::X86_64, 41, 7), (Arch::X86, 999_999, 0), (Arch::X32, 0x4000_0001, 9)] {
            let args = [1, 2, 3, 0, 0, last];
            let data = SeccompData { nr, arch: arch.audit(), ip: 0xfff, args };
            assert_eq!(parse(&describe(&data), Arch::X86_64), Ok(data), "{}", describe(&data));
        }
    }

    #[test]
    fn arguments_of_32_bit_architectures_have_32_bits() {
        let data = parse("x86 read(-1)", Arch::X86_64).unwrap();
        assert_eq!(data.args[0], 0xffff_ffff);
    }

    #[test]
    fn mistakes_are_errors() {
        for text in ["", "raed", "read(", "read(1", "read(AF_NOPE)", "read(x=1)", "mars read", "read @zz",
            "read(1,2,3,4,5,6,7)", "0x1ffffffff", "read(0xg)", "read(+1)"] {
            assert!(parse(text, Arch::X86_64).is_err(), "{text}");
        }
    }
}
