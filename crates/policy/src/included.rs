//! Errors for included files that are not policies.
//!
//! An error normally shows its line. An included file may be any file of the user who compiles, possibly a confidential
//! one, so the error for a file in another language shows only the position of the first mistake.

use tamis_diag::{Code, Diagnostic, Sources, Span};

use crate::sink::Sink;

/// The help for an included file that can't be read: policies often contain the absolute paths of their deployment.
pub(crate) fn help_to_find(path: &str, relative: &'static str) -> &'static str {
    match path.starts_with('/') {
        true => "name the folder that has the file here: `--include-dir DIR`",
        false => relative,
    }
}

/// The first mistake that a lexer reports to an empty sink.
pub(crate) fn first_mistake(lex: impl FnOnce(&mut Sink)) -> Option<Span> {
    let mut sink = Sink::new(false);
    lex(&mut sink);
    let diagnostics = sink.into_diagnostics();
    let errors = diagnostics.iter().filter(|own| own.is_error());
    let mut labels = errors.flat_map(|mistake| &mistake.labels);
    labels.next().map(|label| label.span)
}

/// The error for an included file that isn't a policy from a place on.
#[cfg(feature = "languages")]
pub(crate) fn not_a_policy(
    code: Code,
    path: &str,
    include: Span,
    sources: &Sources,
    mistake: Span,
) -> Diagnostic {
    not_of_language("a policy", code, path, include, sources, mistake)
}

/// The error for an included file that isn't one of its language, such as `a policy`, from a place on.
pub(crate) fn not_of_language(
    file: &str,
    code: Code,
    path: &str,
    include: Span,
    sources: &Sources,
    mistake: Span,
) -> Diagnostic {
    let at = sources.position(mistake);
    let message = format!("cannot include `{path}`: it doesn't read as {file}");
    let place = format!(
        "the first mistake is in its line {}, column {}; lines of such a file are not shown",
        at.line, at.column
    );
    Diagnostic::error(code, message)
        .label(include, "included here")
        .note(place)
}
