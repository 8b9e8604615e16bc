//! The registry of diagnostic codes: those of all crates, and those of the commands themselves.

pub(crate) use tamis_assertions::code::*;
use tamis_diag::Code;
use tamis_ebpf::code::EXTENDED;
pub(crate) use tamis_export::code::*;
pub(crate) use tamis_lint::code::*;
use tamis_policy::front_end;
pub(crate) use tamis_session::code::*;

tamis_diag::codes! { COMBINE;
    COMBINE_EMPTY = "TM1701", "combination that allows no call",
        "The combination of the policies denies every call, so no program runs under it: the policies have no allowed call \
         in common, or one takes away all that the other allows. The message shows a call that one policy allows, and the \
         place at which another denies it. Often one of them is for another architecture. Nothing is written.";
}

/// All codes, ascending.
pub(crate) fn all() -> Vec<Code> {
    let groups = [
        INPUT, PROGRAM, COMPILE, RULESET, MEANING, PROFILE, LINT, SHARED, EXPORT, MATRIX, EXTENDED,
        CHECKS, COMBINE,
    ];
    let languages = front_end::ALL.iter().map(|language| language.codes);
    let mut codes: Vec<Code> = groups
        .into_iter()
        .chain(languages)
        .flatten()
        .copied()
        .collect();
    codes.sort();
    // Two languages may share their codes.
    codes.dedup();
    codes
}

/// The code with this id, in upper or lower case.
pub(crate) fn from_id(id: &str) -> Option<Code> {
    all()
        .into_iter()
        .find(|code| code.id.eq_ignore_ascii_case(id))
}

#[cfg(test)]
mod tests {
    #[test]
    fn explanations_are_longer_than_titles_and_say_why() {
        for code in super::all() {
            let explanation = code.explanation;
            let is_long = explanation.chars().count() >= 60;
            assert!(
                is_long && explanation.ends_with('.'),
                "{}: {explanation}",
                code.id
            );
        }
    }

    #[test]
    fn ids_are_unique_and_well_formed() {
        let ids: Vec<&str> = super::all().iter().map(|code| code.id).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        for id in ids {
            assert!(id.len() == 6 && id.starts_with("TM"), "{id}");
            assert!(id[2..].bytes().all(|byte| byte.is_ascii_digit()), "{id}");
        }
    }
}
