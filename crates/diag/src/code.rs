//! The catalogue of diagnostic codes.
//!
//! A code is `TM` and four digits, grouped by hundred: 00 reading input, 01 programs and assembler,
//! 02 the tamis language, 03 OCI profiles, 04 compiling, 05 the ruleset text form, 06 profiles, 07 lint,
//! 08 Firecracker filters, 09 minijail policies, 10 kafel policies, 11 systemd units,
//! 12 resources of the security-profiles-operator, 13 exporting, 14 matrices of options, 15 extended BPF, 16 checks,
//! 17 combining. A number is
//! never given a second meaning. [`Code::explanation`] is what `tamis explain TM0201` prints.

/// A stable name for one kind of diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    /// `TM0201`.
    pub id: &'static str,
    /// A short title.
    pub title: &'static str,
    /// The reason and the correction: a paragraph or more of plain text.
    pub explanation: &'static str,
}

/// Declares the codes of one group and the group's list.
macro_rules! codes {
    ($list:ident; $($(#[$doc:meta])* $name:ident = $id:literal, $title:literal, $explanation:literal;)*) => {
        $(
            $(#[$doc])*
            #[doc = concat!("`", $id, "`: ", $title, ".")]
            pub const $name: $crate::code::Code = $crate::code::Code {
                id: $id,
                title: $title,
                explanation: $explanation,
            };
        )*
        /// All codes of this group, ascending.
        pub(super) const $list: &[$crate::code::Code] = &[$($name),*];
    };
}

mod checks;
mod combine;
mod compile;
mod export;
mod extended;
mod firecracker;
mod input;
mod kafel;
mod lint;
mod matrix;
mod minijail;
mod oci;
mod profile;
mod program;
mod ruleset;
mod spo;
mod systemd;
mod tamis;

pub use self::{
    checks::*, combine::*, compile::*, export::*, extended::*, firecracker::*, input::*, kafel::*,
    lint::*, matrix::*, minijail::*, oci::*, profile::*, program::*, ruleset::*, spo::*,
    systemd::*, tamis::*,
};

/// All codes, ascending.
pub fn all() -> impl Iterator<Item = Code> {
    [
        input::INPUT,
        program::PROGRAM,
        tamis::TAMIS,
        oci::OCI,
        compile::COMPILE,
        ruleset::RULESET,
        profile::PROFILE,
        lint::LINT,
        firecracker::FIRECRACKER,
        minijail::MINIJAIL,
        kafel::KAFEL,
        systemd::SYSTEMD,
        spo::SPO,
        export::EXPORT,
        matrix::MATRIX,
        extended::EXTENDED,
        checks::CHECKS,
        combine::COMBINE,
    ]
    .into_iter()
    .flatten()
    .copied()
}

impl Code {
    /// The code with this id.
    pub fn from_id(id: &str) -> Option<Code> {
        all().find(|code| code.id.eq_ignore_ascii_case(id))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn explanations_are_longer_than_titles_and_say_why() {
        for code in super::all() {
            let explanation = code.explanation;
            assert!(
                explanation.chars().count() >= 60,
                "{}: {explanation}",
                code.id
            );
            assert!(explanation.ends_with('.'), "{}: {explanation}", code.id);
        }
    }

    #[test]
    fn ids_are_unique_ascending_and_well_formed() {
        let ids: Vec<&str> = super::all().map(|code| code.id).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        for id in ids {
            assert!(id.len() == 6 && id.starts_with("TM"), "{id}");
            assert!(id[2..].bytes().all(|byte| byte.is_ascii_digit()), "{id}");
        }
    }
}
