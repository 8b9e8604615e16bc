//! Many diagnostics of one kind, shown as a few and a count.
//!
//! A profile written for other machines names dozens of calls that this one lacks; a file that is no policy has a mistake in
//! each line. All of them are true, and together they hide the one that matters. Documents for programs have all of them.

use tamis_diag::render;
use tamis_diag::{Diagnostic, Severity, Sources};

/// How many warnings of one code are shown.
pub(super) const WARNINGS: usize = 3;
/// How many errors of one code are shown.
pub(super) const ERRORS: usize = 20;

/// Diagnostics for a person: of each code at most so many, and a line for each with more of them.
pub(super) fn render(
    diagnostics: &[Diagnostic],
    most_shown: usize,
    sources: &Sources,
    has_colours: bool,
) -> String {
    let mut shown: Vec<Diagnostic> = Vec::new();
    // In the order of their first one.
    let mut folded: Vec<(&'static str, Severity, usize)> = Vec::new();
    for diagnostic in diagnostics {
        let code = diagnostic.code.id;
        let same = shown.iter().filter(|other| other.code == diagnostic.code);
        if same.count() < most_shown {
            shown.push(diagnostic.clone());
            continue;
        }
        match folded.iter_mut().find(|(known, ..)| *known == code) {
            Some((.., count)) => *count += 1,
            None => folded.push((code, diagnostic.severity, 1)),
        }
    }
    let mut text = render::render(&shown, sources, has_colours);
    for (code, severity, count) in folded {
        let severity = severity.name();
        text += &format!(
            "\n{severity}[{code}]: and {count} more of this kind: `--json` has all, `tamis explain {code}` says why"
        );
    }
    text
}
