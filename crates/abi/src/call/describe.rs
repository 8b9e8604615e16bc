//! A call as text that [`super::parse`] reads.

use crate::arch::Arch;
use crate::data::{ArgIndex, SeccompData};
use crate::syscall::Nr;
use crate::{consts, family, signature, syscall};

/// The call as [`super::parse`] reads it: `x86_64 socket(family=AF_INET, type=SOCK_STREAM, protocol=0x0)`.
///
/// Arguments are shown as far as the call has them, by the names of their constants, and modes of files in octal; where its
/// signature is unknown, up to the last that isn't 0. A call of an unknown architecture is shown with the architecture's
/// audit value.
pub fn describe(data: &SeccompData) -> String {
    let known = Arch::of_call(data.arch, data.nr);
    let machine = known.map_or_else(|| format!("{:#x}", data.arch), |arch| arch.to_string());
    let name = known.and_then(|arch| syscall::name(arch, Nr(data.nr)));
    let args = name.and_then(signature::args).unwrap_or_default();
    let last_used = data.args.iter().rposition(|value| *value != 0);
    let count = args.len().max(last_used.map_or(0, |index| index + 1));
    let places = ArgIndex::ALL.into_iter().zip(data.args).take(count);
    let shown: Vec<String> = places
        .map(|(index, value)| match known.zip(name) {
            Some((arch, call)) => describe_argument(arch, call, index, value),
            None => format!("{value:#x}"),
        })
        .collect();
    let name = name.map_or_else(|| format!("{:#x}", data.nr), str::to_owned);
    format!("{machine} {name}({}){}", shown.join(", "), rest(data))
}

/// An argument of a call as [`describe`] shows it: its name and the names of its value's constants, as far as they are known.
///
/// ```
/// use tamis_abi::{Arch, ArgIndex, call};
/// let flags = |value| call::describe_argument(Arch::X86_64, "accept4", ArgIndex::ALL[3], value);
/// assert_eq!((flags(0x800), flags(1)), ("flags=SOCK_NONBLOCK".into(), "flags=0x1".into()));
/// ```
pub fn describe_argument(arch: Arch, call: &str, place: ArgIndex, value: u64) -> String {
    match signature::at(arch, call, place) {
        Some(arg) => format!("{}={}", arg.name(), symbol(arch, call, arg, value)),
        None => format!("{value:#x}"),
    }
}

/// The call in the fewest words that [`super::parse`] reads: as [`describe`], without arguments that are 0.
///
/// ```
/// use tamis_abi::{Arch, call};
/// let data = call::parse("x86_64 socket(40, 0x80002)", Arch::X86_64).unwrap();
/// let text = "x86_64 socket(family=AF_VSOCK, type=SOCK_DGRAM|SOCK_CLOEXEC)";
/// assert_eq!(call::describe_briefly(&data), text);
/// let data = call::parse("x86_64 mkdir(0, 493)", Arch::X86_64).unwrap();
/// assert_eq!(call::describe_briefly(&data), "x86_64 mkdir(mode=0755)");
/// ```
pub fn describe_briefly(data: &SeccompData) -> String {
    let full = || describe(data);
    let Some(arch) = Arch::of_call(data.arch, data.nr) else {
        return full();
    };
    let Some(name) = syscall::name(arch, Nr(data.nr)) else {
        return full();
    };
    let mut shown = Vec::new();
    let mut values = data.args;
    for arg in signature::args(name).unwrap_or_default() {
        let Some(index) = signature::index(arch, name, arg.name()) else {
            continue;
        };
        let value = std::mem::take(&mut values[index.index()]);
        if value != 0 {
            shown.push(format!("{}={}", arg.name(), symbol(arch, name, arg, value)));
        }
    }
    if values != [0; 6] {
        return full();
    }
    format!("{arch} {name}({}){}", shown.join(", "), rest(data))
}

/// A call with 0 in the registers other than its arguments: those hold leftovers of the program.
///
/// ```
/// use tamis_abi::{Arch, call};
/// let made = call::parse("x86_64 close(3, 0x7f00)", Arch::X86_64).unwrap();
/// assert_eq!(call::describe(&call::without_leftovers(&made)), "x86_64 close(fd=0x3)");
/// ```
#[must_use]
pub fn without_leftovers(data: &SeccompData) -> SeccompData {
    let arch = Arch::of_call(data.arch, data.nr);
    // Elsewhere an argument may take two registers.
    let arch = arch.filter(|arch| arch.has_64_bit_registers());
    let name = arch.and_then(|arch| syscall::name(arch, Nr(data.nr)));
    let mut own = *data;
    if let Some(args) = name.and_then(signature::args) {
        own.args[args.len()..].fill(0);
    }
    own
}

/// The properties of a call besides its arguments: the instruction pointer.
fn rest(data: &SeccompData) -> String {
    match data.ip {
        0 => String::new(),
        ip => format!(" @{ip:#x}"),
    }
}

/// An argument's value by the names of its constants, if they are exact.
fn symbol(arch: Arch, call: &str, arg: &signature::Arg, value: u64) -> String {
    let width = signature::width(arch, call, arg);
    let register = signature::Width::of_registers(arch).max();
    let is_int = width == signature::Width::Bits32 && arch.has_64_bit_registers();
    let says = |names: &Vec<&str>| {
        let values = names.iter().filter_map(|name| consts::value(arch, name));
        let named = values.fold(0, |all, value| all | value) & register;
        let named = match is_int {
            true => signature::passed(arch, named),
            false => named,
        };
        named == value
    };
    // Of a negative constant a call has either the bits that the kernel reads, or those of a register.
    let names = [width, signature::Width::of_registers(arch)]
        .into_iter()
        .filter_map(|width| family::names(arch, call, arg.name(), value, width.bits()))
        .find(says);
    names.map_or_else(|| number(arg, value), |names| names.join("|"))
}

/// An argument's value as a number: the mode of a file in octal, as in C, all others in hexadecimal.
fn number(arg: &signature::Arg, value: u64) -> String {
    match (arg.is_mode(), value) {
        (true, 0) => "0".to_owned(),
        (true, _) => format!("0{value:o}"),
        (false, _) => format!("{value:#x}"),
    }
}
