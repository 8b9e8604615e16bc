//! Truncation of many diagnostics with the same code.
//!
//! A profile for other machines names dozens of calls that this machine lacks, and a file that is not a policy has an
//! error on each line; the important diagnostic would be lost among them. JSON documents are not truncated.

use tamis_diag::render;
use tamis_diag::{Diagnostic, Severity, Sources};

/// The most warnings of one code.
pub(super) const WARNINGS: usize = 3;
/// The most errors of one code.
pub(super) const ERRORS: usize = 20;

/// Renders at most this many diagnostics of each code, with a line that counts the others.
pub(super) fn render(
    diagnostics: &[Diagnostic],
    most_shown: usize,
    sources: &Sources,
    has_colours: bool,
) -> String {
    let mut shown: Vec<Diagnostic> = Vec::new();
    // In order of first occurrence.
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
