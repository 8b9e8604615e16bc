//! Diagnostics as text for people.
//!
//! With the feature `excerpts`, a diagnostic shows the lines that it is about. Without it, only their numbers:
//! programs that compile policies as they start have little use for more, and need three packages less.

#[cfg(feature = "excerpts")]
mod excerpts;

use crate::diagnostic::{Diagnostic, Severity};
use crate::escape::{harmless, on_one_line};
use crate::source::Sources;

/// Renders diagnostics for a person, one after the other, without a trailing newline. Only excerpts have colour.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    #[cfg(feature = "excerpts")]
    return excerpts::render(diagnostics, sources, colour);
    #[cfg(not(feature = "excerpts"))]
    {
        let _ = colour;
        lines(diagnostics, sources)
    }
}

/// Renders diagnostics as lines: place, severity, code and message; then further places, notes and help.
///
/// ```
/// use tamis_diag::{Diagnostic, Sources, Span, code, render};
///
/// let mut sources = Sources::new();
/// let source = sources.add("my.policy", "allow\n  raed\n");
/// let unknown = Diagnostic::error(code::NOT_A_CALL, "no such call")
///     .label(Span::new(source, 8, 12), "on no architecture")
///     .help("did you mean `read`?");
/// let expected = format!(
///     "my.policy:2:3: error[{}]: no such call: on no architecture\n  help: did you mean `read`?",
///     code::NOT_A_CALL.id,
/// );
/// assert_eq!(render::lines(&[unknown], &sources), expected);
/// ```
pub fn lines(diagnostics: &[Diagnostic], sources: &Sources) -> String {
    let lines = diagnostics.iter().flat_map(|diagnostic| {
        let severity = match diagnostic.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let mut labels = diagnostic.labels.iter().map(|label| {
            let at = sources.position(label.span);
            let place = format!(
                "{}:{}:{}: ",
                on_one_line(sources.name(label.span.source)),
                at.line,
                at.column
            );
            let text = match label.text.is_empty() {
                true => String::new(),
                false => format!(": {}", label.text),
            };
            (place, text)
        });
        let (place, text) = labels.next().unwrap_or_default();
        let Diagnostic { code, message, .. } = diagnostic;
        let first = format!("{place}{severity}[{}]: {message}{text}", code.id);
        let places = labels.map(|(place, text)| format!("  {place}here{text}"));
        let notes = diagnostic
            .notes
            .iter()
            .map(|note| format!("  note: {note}"));
        let help = diagnostic.help.iter().map(|help| format!("  help: {help}"));
        let rest: Vec<String> = places.chain(notes).chain(help).collect();
        [first].into_iter().chain(rest)
    });
    harmless(&lines.collect::<Vec<String>>().join("\n")).into_owned()
}
