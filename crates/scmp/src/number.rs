//! The numbers by which libseccomp's callers name system calls.
//!
//! A caller gives the number of a call on the native architecture, as a C `int`. A call that the architecture lacks,
//! or that it has behind `socketcall` or `ipc`, has a negative *pseudo number*, which is the same on all
//! architectures. [`resolve_name`] and [`resolve_number`] are `seccomp_syscall_resolve_name_arch` and
//! `seccomp_syscall_resolve_num_arch`, [`rewrite`] is the second half of `seccomp_syscall_resolve_name_rewrite`, and
//! [`token`] and [`arch_of_token`] are the `SCMP_ARCH_*` values.

use tamis_abi::syscall::{self, Name};
use tamis_abi::{Arch, Nr};

use crate::pseudo::PSEUDO_NUMBERS;

/// The number that tracers write to skip a call; as a result of a resolution it stands for no call at all.
pub const SKIP: i32 = -1;

/// x32 has no value of its own in the kernel's `AUDIT_ARCH_*`; libseccomp gives it x86_64's without the 64-bit flag.
const X32_TOKEN: u32 = 0x4000_003e;

/// The pseudo numbers of calls behind `socketcall`, and of calls behind `ipc`.
const SOCKETCALL: std::ops::RangeInclusive<i32> = -120..=-100;
const IPC: std::ops::RangeInclusive<i32> = -224..=-200;

/// The numbers that mean nothing, apart from [`SKIP`].
const RESERVED: std::ops::RangeInclusive<i32> = -99..=-1;

/// The value of an architecture in libseccomp's interface, `SCMP_ARCH_*`; `None` for one that libseccomp lacks.
///
/// ```
/// use tamis_abi::Arch;
/// use tamis_scmp::number;
/// assert_eq!(number::token(Arch::X86_64), Some(0xc000_003e));
/// assert_eq!(number::arch_of_token(0x4000_003e), Some(Arch::X32));
/// assert_eq!(number::token(Arch::Riscv32), None);
/// ```
pub const fn token(arch: Arch) -> Option<u32> {
    match arch {
        Arch::Riscv32 => None,
        Arch::X32 => Some(X32_TOKEN),
        _ => Some(arch.audit()),
    }
}

/// The architecture of a value of libseccomp's interface.
pub fn arch_of_token(value: u32) -> Option<Arch> {
    Arch::all().find(|arch| token(*arch) == Some(value))
}

/// The architecture of a name in `seccomp_arch_resolve_name`, which has no aliases.
pub fn arch_of_name(name: &str) -> Option<Arch> {
    Arch::all().find(|arch| arch.name() == name && token(*arch).is_some())
}

/// Whether a number can be the call of a rule; otherwise libseccomp returns `EINVAL`. [`SKIP`] can if the filter
/// handles skipped calls.
pub const fn is_valid(number: i32, handles_skipped: bool) -> bool {
    (number == SKIP && handles_skipped) || number < *RESERVED.start() || number > *RESERVED.end()
}

/// The number of a name on an architecture, negative for a call that isn't made by a number of its own there; `None`
/// for an unknown name.
///
/// ```
/// use tamis_abi::Arch;
/// use tamis_scmp::number::resolve_name;
/// assert_eq!(resolve_name(Arch::X86_64, "socket"), Some(41));
/// assert_eq!(resolve_name(Arch::X86, "socket"), Some(-101));
/// assert_eq!(resolve_name(Arch::Aarch64, "open"), Some(-10166));
/// ```
pub fn resolve_name(arch: Arch, name: &str) -> Option<i32> {
    match Name::find(name) {
        Some(found) => resolve_known(arch, found),
        None => pseudo_number(name),
    }
}

fn resolve_known(arch: Arch, name: Name) -> Option<i32> {
    match name.number(arch) {
        Some(nr) if !multiplexes(arch, name.text()) => Some(nr.0 as i32),
        _ => pseudo_number(name.text()),
    }
}

/// The number that a call of one architecture has on another; `None` if it has no name.
pub(crate) fn translate(from: Arch, to: Arch, number: i32) -> Option<i32> {
    let nr = u32::try_from(number).ok();
    match nr.and_then(|nr| Name::of_number(from, Nr(nr))) {
        Some(name) => resolve_known(to, name),
        None => resolve_name(to, resolve_number(from, number)?),
    }
}

/// The name of a number on an architecture. A pseudo number has a name where it stands for the call.
///
/// ```
/// use tamis_abi::Arch;
/// use tamis_scmp::number::resolve_number;
/// assert_eq!(resolve_number(Arch::X86, -101), Some("socket"));
/// assert_eq!(resolve_number(Arch::X86_64, -101), None);
/// ```
pub fn resolve_number(arch: Arch, number: i32) -> Option<&'static str> {
    let Ok(number) = u32::try_from(number) else {
        let names = PSEUDO_NUMBERS.iter().filter(|(_, value)| *value == number);
        let names = names.map(|(name, _)| *name);
        // Of two names that share a number, libseccomp gives the last.
        return names
            .rev()
            .find(|name| resolve_name(arch, name) == Some(number));
    };
    let named = |number| syscall::name(arch, Nr(number));
    // Numbers without the base of their convention are understood too.
    named(number).or_else(|| named(number.checked_add(base(arch))?))
}

/// The number under which a program tests a call: of a multiplexed call, its multiplexer's.
///
/// # Errors
/// Of other pseudo numbers, as none is ever tested.
pub fn rewrite(arch: Arch, number: i32) -> Result<i32, NotRewritable> {
    let multiplexer = if SOCKETCALL.contains(&number) {
        "socketcall"
    } else if IPC.contains(&number) {
        "ipc"
    } else if number >= SKIP {
        return Ok(number);
    } else if RESERVED.contains(&number) {
        return Err(NotRewritable::Reserved);
    } else {
        return Err(NotRewritable::Absent);
    };
    if !has_multiplexers(arch) {
        return Err(NotRewritable::Absent);
    }
    let nr = syscall::number(arch, multiplexer).ok_or(NotRewritable::Absent)?;
    Ok(nr.0 as i32)
}

/// Why a pseudo number has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRewritable {
    /// The number is reserved: libseccomp's `EINVAL`.
    Reserved,
    /// The architecture lacks the call: libseccomp's `EDOM`.
    Absent,
}

/// The places of a call behind a multiplexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multiplexed {
    /// The number of `socketcall` or `ipc`.
    pub(crate) multiplexer: i32,
    /// The value of its argument 0.
    pub(crate) selector: u32,
    /// The call's own number, negative if it has none.
    pub(crate) direct: i32,
}

/// A pseudo number in the range of a multiplexer that stands for no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unassigned;

/// The places of a number on an architecture with multiplexers; `None` if it isn't multiplexed.
pub(crate) fn multiplexed(arch: Arch, number: i32) -> Option<Result<Multiplexed, Unassigned>> {
    let is_pseudo = SOCKETCALL.contains(&number) || IPC.contains(&number);
    let name = match u32::try_from(number) {
        Ok(number) => syscall::name(arch, Nr(number)),
        Err(_) => resolve_number(arch, number),
    };
    let to = name.and_then(|name| Some((name, syscall::multiplexed(arch, name)?)));
    match to {
        None => is_pseudo.then_some(Err(Unassigned)),
        Some((name, to)) => {
            let direct = match Name::find(name).and_then(|found| found.number(arch)) {
                Some(nr) => nr.0 as i32,
                None => pseudo_number(name)?,
            };
            Some(Ok(Multiplexed {
                multiplexer: to.nr.0 as i32,
                selector: to.call,
                direct,
            }))
        }
    }
}

/// Whether an architecture has `socketcall` and `ipc`.
pub(crate) fn has_multiplexers(arch: Arch) -> bool {
    syscall::multiplexed(arch, "socket").is_some()
}

fn multiplexes(arch: Arch, name: &str) -> bool {
    has_multiplexers(arch) && syscall::multiplexed(arch, name).is_some()
}

pub(crate) fn pseudo_number(name: &str) -> Option<i32> {
    let place = PSEUDO_NUMBERS.binary_search_by_key(&name, |(name, _)| name);
    Some(PSEUDO_NUMBERS[place.ok()?].1)
}

/// The common base of the numbers of an architecture's convention.
const fn base(arch: Arch) -> u32 {
    match arch {
        Arch::X32 => Arch::X32_BIT,
        Arch::Mips | Arch::Mipsel => 4000,
        Arch::Mips64 | Arch::Mipsel64 => 5000,
        Arch::Mips64n32 | Arch::Mipsel64n32 => 6000,
        _ => 0,
    }
}
