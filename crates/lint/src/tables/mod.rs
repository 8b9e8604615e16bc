//! Facts about system calls for the checks, as data with reasons: one file per kind of fact.
//!
//! Names that an architecture lacks are skipped there, so a row may contain the variants of all architectures.

pub(crate) mod dangerous;
pub(crate) mod essential;
pub(crate) mod families;
pub(crate) mod needs;
pub(crate) mod newer;
pub(crate) mod ring;
pub(crate) mod start_up;
pub(crate) mod twins;

use std::fmt;

use tamis_abi::{Arch, consts};

/// Whether programs need a call: each makes it to start or to end, or nearly each in every run.
///
/// ```
/// use tamis_lint::is_essential;
/// assert!(is_essential("mmap") && is_essential("exit_group") && is_essential("ioctl"));
/// assert!(!is_essential("personality"));
/// ```
pub fn is_essential(call: &str) -> bool {
    let mut start = start_up::PROGRAM.iter().flat_map(|need| need.forms);
    let mut rows = essential::ALL.iter();
    let mut starts = start_up::STARTS.iter().chain(&essential::EVERYDAY);
    start.any(|form| form.call == call)
        || rows.any(|row| row.call == call)
        || starts.any(|name| *name == call)
}

/// A call, optionally with a value of one argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The call.
    pub(crate) call: &'static str,
    /// The names of an argument and of its value: constants separated by `|`.
    pub(crate) with: Option<(&'static str, &'static str)>,
}

impl Form {
    /// The value of the argument; `None` if the architecture lacks a constant, or there is no argument.
    pub(crate) fn value(&self, arch: Arch) -> Option<u32> {
        let (_, constants) = self.with?;
        let mut values = constants.split('|');
        values.try_fold(0, |sum, name| Some(sum | consts::value(arch, name)? as u32))
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.with {
            None => f.write_str(self.call),
            Some((argument, value)) => write!(f, "{}({argument} == {value})", self.call),
        }
    }
}

/// Any call of this name.
pub(crate) const fn any(call: &'static str) -> Form {
    Form { call, with: None }
}

/// The calls with this name and this value of an argument: constants separated by `|`.
pub(crate) const fn with(
    call: &'static str,
    argument: &'static str,
    constant: &'static str,
) -> Form {
    Form {
        call,
        with: Some((argument, constant)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tamis_abi::{Arch, consts, signature, syscall};

    use super::*;

    fn needs() -> impl Iterator<Item = &'static Form> {
        let runtimes = [&start_up::RUNC, &start_up::CRUN].into_iter();
        let needs = runtimes.flat_map(|needs| [needs.always, needs.with_privileges]);
        let needs = needs.chain([start_up::PROGRAM]);
        needs.flatten().flat_map(|need| need.forms)
    }

    /// A name that no architecture has would be skipped silently.
    #[test]
    fn every_name_in_the_tables_exists() {
        let mut names: Vec<&str> = Vec::new();
        for row in twins::ALL {
            names.extend(row.calls.iter().chain(row.ways).map(|form| form.call));
        }
        for row in dangerous::ALL {
            names.extend(row.calls.iter().map(|form| form.call));
        }
        for row in newer::ALL {
            names.extend(row.fallbacks.iter().chain([&row.call]));
        }
        for row in essential::ALL {
            names.extend(row.needed_after.iter().chain([&row.call]));
        }
        names.extend(ring::CALLS);
        names.extend(essential::EVERYDAY);
        names.extend(needs().map(|form| form.call));
        for name in names {
            assert!(syscall::is_known(name), "{name}");
        }
    }

    #[test]
    fn every_form_has_a_meaning_on_x86_64() {
        let twins = twins::ALL
            .iter()
            .flat_map(|row| row.calls.iter().chain(row.ways));
        let dangerous = dangerous::ALL.iter().flat_map(|row| row.calls);
        let needs = needs().filter(|form| form.call != "mmap2");
        for form in twins.chain(dangerous).chain(needs) {
            let Some((argument, _)) = form.with else {
                continue;
            };
            let index = signature::index(Arch::X86_64, form.call, argument);
            assert!(
                index.is_some() && form.value(Arch::X86_64).is_some(),
                "{form}"
            );
        }
    }

    #[test]
    fn every_family_has_a_number_and_stands_once() {
        let mut numbers = BTreeSet::new();
        for name in families::ALL.iter().flat_map(|row| row.families) {
            let number = consts::value(Arch::X86_64, name);
            assert!(
                number.is_some_and(|number| numbers.insert(number)),
                "{name}"
            );
        }
    }
}
