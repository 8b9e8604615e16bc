//! Many warnings of one kind, shown as a few and a count.
//!
//! A profile written for other machines names dozens of calls that this one lacks. Each is true, and together they hide
//! the one warning that matters. Documents for programs have all of them.

use tamis_diag::Diagnostic;

/// How many warnings of one code are shown.
const MOST_SHOWN: usize = 3;

/// The warnings that are shown, and a line for each code with more of them.
pub(super) fn fold(warnings: &[Diagnostic]) -> (Vec<Diagnostic>, Vec<String>) {
    let mut shown: Vec<Diagnostic> = Vec::new();
    // In the order of their first warning.
    let mut folded: Vec<(&'static str, usize)> = Vec::new();
    for warning in warnings {
        let code = warning.code.id;
        let same = shown.iter().filter(|other| other.code == warning.code);
        if same.count() < MOST_SHOWN {
            shown.push(warning.clone());
            continue;
        }
        match folded.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => folded.push((code, 1)),
        }
    }
    let line = |(code, count): (&str, usize)| {
        format!(
            "warning[{code}]: and {count} more of this kind: `--json` has all, `tamis explain {code}` says why"
        )
    };
    (shown, folded.into_iter().map(line).collect())
}
