//! The arguments of `prctl`, which depend on its option: how many there are, and what their values mean.
//!
//! Options that aren't listed here have all five arguments, as addresses, because many of them have some.

use tamis_abi::capability::CAPABILITIES;
use tamis_abi::{Arch, consts};

use super::symbols::signal_name;

/// The meaning of the argument behind the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The option has no further argument.
    Absent,
    Number,
    Signal,
    Capability,
    /// The address of a zero-terminated text.
    Text,
    /// The name of one of these constants, by number.
    Named(&'static [&'static str]),
}

/// An argument as `prctl` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Number(i64),
    Name(String),
    /// The text at an address.
    Text,
}

/// Options with one argument or none, with its meaning.
const OPTIONS: [(&str, Meaning); 17] = [
    ("PR_SET_PDEATHSIG", Meaning::Signal),
    ("PR_GET_DUMPABLE", Meaning::Absent),
    ("PR_SET_DUMPABLE", Meaning::Named(&DUMPABLE)),
    ("PR_GET_KEEPCAPS", Meaning::Absent),
    ("PR_SET_KEEPCAPS", Meaning::Number),
    ("PR_GET_TIMING", Meaning::Absent),
    ("PR_SET_TIMING", Meaning::Named(&TIMING)),
    ("PR_SET_NAME", Meaning::Text),
    ("PR_GET_SECCOMP", Meaning::Absent),
    ("PR_CAPBSET_READ", Meaning::Capability),
    ("PR_CAPBSET_DROP", Meaning::Capability),
    ("PR_GET_SECUREBITS", Meaning::Absent),
    ("PR_SET_TIMERSLACK", Meaning::Number),
    ("PR_GET_TIMERSLACK", Meaning::Absent),
    ("PR_TASK_PERF_EVENTS_DISABLE", Meaning::Absent),
    ("PR_TASK_PERF_EVENTS_ENABLE", Meaning::Absent),
    ("PR_SET_CHILD_SUBREAPER", Meaning::Number),
];

const DUMPABLE: [&str; 3] = ["SUID_DUMP_DISABLE", "SUID_DUMP_USER", "SUID_DUMP_ROOT"];
const TIMING: [&str; 2] = ["PR_TIMING_STATISTICAL", "PR_TIMING_TIMESTAMP"];

/// The number of `prctl`'s arguments with an option, the option included; `None` for all.
pub(super) fn used(option: u32) -> Option<usize> {
    meaning(option).map(|meaning| match meaning {
        Meaning::Absent => 1,
        _ => 2,
    })
}

/// The argument behind an option; `None` if its meaning is unknown.
pub(super) fn argument(option: u32, raw: u64) -> Option<Shown> {
    let named = |names: &[&str]| {
        let index = usize::try_from(raw).ok()?;
        names.get(index).map(|name| Shown::Name((*name).to_owned()))
    };
    match meaning(option)? {
        Meaning::Absent => None,
        Meaning::Number => Some(Shown::Number(raw as i64)),
        Meaning::Signal => Some(Shown::Name(signal_name(raw as i32))),
        Meaning::Capability => {
            named(&CAPABILITIES).or(Some(Shown::Name(format!("{raw:#x} /* CAP_??? */"))))
        }
        Meaning::Text => Some(Shown::Text),
        Meaning::Named(names) => named(names).or(Some(Shown::Number(raw as i64))),
    }
}

fn meaning(option: u32) -> Option<Meaning> {
    let found = OPTIONS
        .iter()
        .find(|(name, _)| consts::value(Arch::X86_64, name) == Some(option.into()));
    found.map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_capabilities_have_the_kernels_numbers() {
        for (name, _) in OPTIONS {
            assert!(consts::value(Arch::X86_64, name).is_some(), "{name}");
        }
        for (number, name) in CAPABILITIES.iter().enumerate() {
            let value = consts::value(Arch::X86_64, name);
            assert_eq!(value, Some(number as u64), "{name}");
        }
        let last = consts::value(Arch::X86_64, "CAP_LAST_CAP");
        assert_eq!(last, Some(CAPABILITIES.len() as u64 - 1));
    }

    #[test]
    fn what_an_option_lacks_is_not_shown() {
        let name = |option, raw| match argument(option, raw) {
            Some(Shown::Name(name)) => name,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            (used(23), name(23, 32)),
            (Some(2), "CAP_MAC_OVERRIDE".to_owned())
        );
        assert_eq!(name(23, 63), "0x3f /* CAP_??? */");
        assert_eq!((used(1), name(1, 9)), (Some(2), "SIGKILL".to_owned()));
        assert_eq!(name(4, 1), "SUID_DUMP_USER");
        assert_eq!((used(3), argument(3, 7)), (Some(1), None));
        assert_eq!(argument(8, 1), Some(Shown::Number(1)));
        assert_eq!(argument(15, 0x7ffe), Some(Shown::Text));
        assert_eq!((used(38), argument(38, 1)), (None, None));
    }
}
