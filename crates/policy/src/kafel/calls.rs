//! The calls and arguments in kafel: `data/kafel-calls.txt` for its architectures, the kernel's tables for others.
//!
//! Kafel names calls after the kernel's functions, which differ from the names of user space, mostly on 32-bit
//! architectures: kafel's `chown` is `chown32` in user space.

use std::sync::LazyLock;

use tamis_abi::signature::{self, Width};
use tamis_abi::{Arch, ArgIndex, syscall};

const TABLE: &str = include_str!("../../data/kafel-calls.txt");
/// The architectures of the table, in the order of its numbers.
const ARCHES: [Arch; 8] = [
    Arch::X86_64,
    Arch::X86,
    Arch::Arm,
    Arch::Aarch64,
    Arch::Riscv64,
    Arch::Mips,
    Arch::Mips64,
    Arch::M68k,
];
/// The rows, sorted by name; a call may have several for different architectures.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| {
        let (name, rest) = line.split_once(' ')?;
        Some(Row { name, rest })
    });
    rows.collect()
});
/// Calls that kafel names after their functions in the kernel, on architectures that the table lacks.
const KERNEL_NAMES: [(&str, &str); 7] = [
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newstat", "stat"),
    ("newuname", "uname"),
    ("sendfile64", "sendfile"),
    ("sysctl", "_sysctl"),
    ("umount", "umount2"),
];

struct Row {
    name: &'static str,
    /// The numbers, or `-`, then the arguments.
    rest: &'static str,
}

/// A call on an architecture.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Its number.
    pub(super) nr: u32,
    /// Its arguments.
    pub(super) args: Vec<Argument>,
}

/// An argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    /// Its register; `None` if it has none of its own, or is not passed in one.
    pub(super) index: Option<ArgIndex>,
    pub(super) width: Width,
}

/// The call with this name.
pub(super) fn find(arch: Arch, name: &str) -> Option<Call> {
    let Some(place) = ARCHES.iter().position(|known| *known == arch) else {
        return of_kernel(arch, name);
    };
    rows(name).find_map(|row| {
        let mut words = row.rest.split(' ');
        let nr = words.nth(place)?.parse().ok()?;
        let args = row.rest.split(' ').skip(ARCHES.len());
        let mut has_places = true;
        let args = args.zip(ArgIndex::ALL).map(|(word, index)| {
            let (name, width, is_split) = argument(arch, word);
            has_places &= !is_split;
            let index = has_places.then_some(index);
            Argument { name, index, width }
        });
        let args = args.collect();
        Some(Call { nr, args })
    })
}

/// Whether some architecture has a call with this name.
pub(super) fn is_known(name: &str) -> bool {
    rows(name).next().is_some()
}

/// The names of all calls.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

/// Kafel's name of a call with this user-space name on x86_64.
pub(super) fn name_of(user: &str) -> Option<&'static str> {
    let found = KERNEL_NAMES.iter().find(|(_, name)| *name == user);
    found.map(|(kernel, _)| *kernel)
}

fn rows(name: &str) -> impl Iterator<Item = &'static Row> {
    let start = ROWS.partition_point(|row| row.name < name);
    let rows = &ROWS[start..];
    rows.iter().take_while(move |row| row.name == name)
}

/// Name and width of an argument of the table, and whether it takes two registers: `*` is the width of a register, `:8`
/// and `:2` are so many bytes, and the others have 32 bits.
fn argument(arch: Arch, word: &'static str) -> (&'static str, Width, bool) {
    if let Some(name) = word.strip_suffix('*') {
        return (name, Width::of_registers(arch), false);
    }
    match word.split_once(':') {
        Some((name, "8")) => (name, Width::Bits64, !arch.has_64_bit_registers()),
        Some((name, _)) => (name, Width::Bits16, false),
        None => (word, Width::Bits32, false),
    }
}

/// A call of the kernel's table by kafel's name.
fn of_kernel(arch: Arch, name: &str) -> Option<Call> {
    let of_user = KERNEL_NAMES.iter().any(|(_, user)| *user == name);
    let named = KERNEL_NAMES.iter().find(|(kernel, _)| *kernel == name);
    let name = named.map_or(name, |(_, user)| user);
    let nr = syscall::number(arch, name).filter(|_| !of_user)?.0;
    let args = signature::args(name).unwrap_or_default().iter();
    let args = args.map(|arg| Argument {
        name: arg.name(),
        index: signature::index(arch, name, arg.name()),
        width: arg.declared_width(arch),
    });
    let args = args.collect();
    Some(Call { nr, args })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_rows_are_complete() {
        assert!(ROWS.is_sorted_by_key(|row| row.name));
        for row in ROWS.iter() {
            let numbers = row.rest.split(' ').take(ARCHES.len());
            let is_number = |word: &str| word == "-" || word.parse::<u32>().is_ok();
            assert_eq!(numbers.filter(|word| is_number(word)).count(), ARCHES.len());
            assert!(ARCHES.iter().any(|arch| find(*arch, row.name).is_some()));
        }
    }

    #[test]
    fn a_name_is_the_kernels_function() {
        let nr = |arch, name| find(arch, name).map(|call| call.nr);
        assert_eq!(nr(Arch::X86_64, "newstat"), Some(4));
        assert_eq!(nr(Arch::X86_64, "stat"), None);
        assert_eq!(
            nr(Arch::X86, "chown"),
            syscall::number(Arch::X86, "chown32").map(|nr| nr.0)
        );
        assert_eq!(
            nr(Arch::S390x, "newstat"),
            syscall::number(Arch::S390x, "stat").map(|nr| nr.0)
        );
    }

    #[test]
    fn arguments_behind_one_in_two_registers_have_no_place() {
        let call = find(Arch::X86, "fallocate").expect("it has it");
        let places: Vec<bool> = call.args.iter().map(|arg| arg.index.is_some()).collect();
        assert_eq!(places, [true, true, false, false]);
    }
}
