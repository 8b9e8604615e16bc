//! Facts about system calls for the checks, as data with reasons: one file per kind of fact.
//!
//! Names that an architecture lacks are skipped there, so a row may contain the variants of all architectures.

pub(crate) mod dangerous;
pub(crate) mod newer;
pub(crate) mod ring;
pub(crate) mod twins;

/// A call, optionally with a value for one argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The call.
    pub(crate) call: &'static str,
    /// The names of an argument and of its constant.
    pub(crate) with: Option<(&'static str, &'static str)>,
}

/// Any call of this name.
pub(crate) const fn any(call: &'static str) -> Form {
    Form { call, with: None }
}

/// The calls of this name whose argument has this value.
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
    use tamis_abi::{Arch, consts, signature, syscall};

    use super::*;

    /// Names that no architecture has would be skipped silently.
    #[test]
    fn every_name_in_the_tables_exists() {
        let mut names: Vec<&str> = Vec::new();
        for row in twins::ALL {
            names.extend(row.calls.iter().chain(row.ways).map(|form| form.call));
        }
        for row in dangerous::ALL {
            names.extend(row.calls);
        }
        for row in newer::ALL {
            names.extend(row.fallbacks.iter().chain([&row.call]));
        }
        names.extend(ring::CALLS);
        for name in names {
            assert!(syscall::is_known(name), "{name}");
        }
    }

    #[test]
    fn every_form_has_a_meaning_on_x86_64() {
        for row in twins::ALL {
            for form in row.calls.iter().chain(row.ways) {
                let Some((argument, constant)) = form.with else {
                    continue;
                };
                let index = signature::index(Arch::X86_64, form.call, argument);
                assert!(index.is_some(), "{} {argument}", form.call);
                assert!(
                    consts::value(Arch::X86_64, constant).is_some(),
                    "{constant}"
                );
            }
        }
    }
}
