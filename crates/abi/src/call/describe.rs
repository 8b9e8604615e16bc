//! A call as text that [`super::parse`] reads.

use crate::arch::Arch;
use crate::data::{ArgIndex, SeccompData};
use crate::syscall::Nr;
use crate::{consts, family, signature, syscall};

/// The call as [`super::parse`] reads it: `x86_64 socket(family=0x2, type=0x1, protocol=0x0)`.
///
/// Arguments are shown as far as the call has them, modes of files in octal; where its signature is unknown, up to the last
/// that isn't 0. A call of an unknown architecture is shown with the architecture's audit value.
pub fn describe(data: &SeccompData) -> String {
    let known = Arch::of_call(data.arch, data.nr);
    let machine = known.map_or_else(|| format!("{:#x}", data.arch), |arch| arch.to_string());
    let name = known.and_then(|arch| syscall::name(arch, Nr(data.nr)));
    let args = name.and_then(signature::args).unwrap_or_default();
    let declared_at = |index: usize| {
        let (arch, call) = known.zip(name)?;
        args.iter().find(|arg| {
            signature::index(arch, call, arg.name()).map(ArgIndex::index) == Some(index)
        })
    };
    let last_used = data.args.iter().rposition(|value| *value != 0);
    let count = args.len().max(last_used.map_or(0, |index| index + 1));
    let shown: Vec<String> = data.args[..count.min(data.args.len())]
        .iter()
        .enumerate()
        .map(|(index, value)| match declared_at(index) {
            Some(arg) => format!("{}={}", arg.name(), number(arg, *value)),
            None => format!("{value:#x}"),
        })
        .collect();
    let name = name.map_or_else(|| format!("{:#x}", data.nr), str::to_owned);
    format!("{machine} {name}({}){}", shown.join(", "), rest(data))
}

/// The call in the fewest words that [`super::parse`] reads: arguments that are 0 are left out, constants have
/// their names, and the modes of files are octal.
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

/// What is known of a call besides its arguments: the instruction pointer.
fn rest(data: &SeccompData) -> String {
    match data.ip {
        0 => String::new(),
        ip => format!(" @{ip:#x}"),
    }
}

/// An argument's value by the names of its constants, if they say exactly that.
fn symbol(arch: Arch, call: &str, arg: &signature::Arg, value: u64) -> String {
    let bits = signature::width(arch, call, arg).bits();
    let names = family::of(call, arg.name()).and_then(|family| {
        let whole = family.name(arch, value, bits).map(|name| vec![name]);
        whole.or_else(|| family.flags(arch, value, bits))
    });
    let register = signature::Width::of_registers(arch).max();
    let says = |names: &Vec<&str>| {
        let values = names.iter().filter_map(|name| consts::value(arch, name));
        values.fold(0, |all, value| all | value) & register == value
    };
    match names.filter(says) {
        Some(names) => names.join("|"),
        None => number(arg, value),
    }
}

/// An argument's value as a number: the mode of a file in octal, as in C, all others in hexadecimal.
fn number(arg: &signature::Arg, value: u64) -> String {
    match (arg.is_mode(), value) {
        (true, 0) => "0".to_owned(),
        (true, _) => format!("0{value:o}"),
        (false, _) => format!("{value:#x}"),
    }
}
