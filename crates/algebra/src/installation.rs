//! The installation requirements of a combination.

use std::error::Error;
use std::fmt;

use tamis_policy::installation::Installation;

use crate::Operation;

/// The flag that leaves out a mitigation: a filter without it is stricter.
const SPEC_ALLOW: &str = "SECCOMP_FILTER_FLAG_SPEC_ALLOW";

/// Two parts that name different listeners, by their places. A task has at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoListeners(pub usize, pub usize);

impl fmt::Display for TwoListeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the policies name different listeners, and a task can have one")
    }
}

impl Error for TwoListeners {}

/// The requirements of a combination: flags of any part, and the listener that is named; an overlay or a difference has
/// those of its first part. A flag that makes a filter looser stays in an intersection if all parts have it.
///
/// # Errors
/// If two parts name different listeners.
pub fn installation(
    operation: Operation,
    parts: &[&Installation],
) -> Result<Installation, TwoListeners> {
    if matches!(operation, Operation::Overlay | Operation::Minus) {
        return Ok(parts.first().copied().cloned().unwrap_or_default());
    }
    let mut flags: Vec<String> = Vec::new();
    for flag in parts.iter().flat_map(|part| &part.flags) {
        let is_everywhere = parts.iter().all(|part| part.flags.contains(flag));
        let is_kept = operation == Operation::Union || flag != SPEC_ALLOW || is_everywhere;
        if is_kept && !flags.contains(flag) {
            flags.push(flag.clone());
        }
    }
    let has_listener =
        |part: &Installation| part.listener_path.is_some() || part.listener_metadata.is_some();
    let mut listening = (0..parts.len()).filter(|index| has_listener(parts[*index]));
    let Some(first) = listening.next() else {
        return Ok(Installation {
            flags,
            ..Installation::default()
        });
    };
    let listener = |index: usize| (&parts[index].listener_path, &parts[index].listener_metadata);
    if let Some(other) = listening.find(|index| listener(*index) != listener(first)) {
        return Err(TwoListeners(first, other));
    }
    Ok(Installation {
        flags,
        ..parts[first].clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flags: &[&str], listener: Option<&str>) -> Installation {
        Installation {
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            listener_path: listener.map(str::to_owned),
            listener_metadata: None,
        }
    }

    #[test]
    fn flags_are_of_any_part_and_the_looser_one_of_all() {
        let left = with(&["SECCOMP_FILTER_FLAG_LOG", SPEC_ALLOW], None);
        let right = with(&["SECCOMP_FILTER_FLAG_TSYNC"], Some("/run/a"));
        let of = |operation| installation(operation, &[&left, &right]).unwrap();
        let both = of(Operation::Intersect);
        assert_eq!(
            both.flags,
            ["SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_TSYNC"]
        );
        assert_eq!(both.listener_path.as_deref(), Some("/run/a"));
        assert!(
            of(Operation::Union)
                .flags
                .iter()
                .any(|flag| flag == SPEC_ALLOW)
        );
        assert_eq!(of(Operation::Minus), left);
        let all = installation(Operation::Intersect, &[&left, &left]).unwrap();
        assert_eq!(all, left);
    }

    #[test]
    fn different_listeners_are_refused_and_equal_ones_are_one() {
        let [a, b, none] = [Some("/run/a"), Some("/run/b"), None].map(|path| with(&[], path));
        let of = |parts: &[&Installation]| installation(Operation::Union, parts);
        assert_eq!(of(&[&none, &a, &a]), Ok(a.clone()));
        assert_eq!(of(&[&a, &none, &b]), Err(TwoListeners(0, 2)));
    }
}
