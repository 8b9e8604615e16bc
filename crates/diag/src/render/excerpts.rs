//! Diagnostics with excerpts of the source, in the style of rustc.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::escape::{harmless, on_one_line};
use crate::source::Sources;

/// The most bytes of excerpts; further diagnostics only name their places. The renderer goes slowly through whole lines,
/// and a hostile file of megabytes may be one.
const MAX_EXCERPT_BYTES: usize = 1 << 16;

/// See [`render`](super::render).
pub(super) fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut left_bytes = MAX_EXCERPT_BYTES;
    let texts: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| {
            render_one(diagnostic, sources, &renderer, &mut left_bytes)
                .unwrap_or_else(|| super::lines(std::slice::from_ref(diagnostic), sources))
        })
        .collect();
    texts.join("\n\n")
}

/// A diagnostic with its excerpts; `None` if they have more bytes than are left.
fn render_one(
    diagnostic: &Diagnostic,
    sources: &Sources,
    renderer: &Renderer,
    left_bytes: &mut usize,
) -> Option<String> {
    let level = match diagnostic.severity {
        Severity::Note => Level::NOTE,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let mut group = Group::with_title(
        level
            .primary_title(harmless(&diagnostic.message))
            .id(diagnostic.code.id),
    );
    for (index, label) in diagnostic.labels.iter().enumerate() {
        let source = sources.get(label.span.source);
        let kind = if index == 0 {
            AnnotationKind::Primary
        } else {
            AnnotationKind::Context
        };
        // Pass only the lines that are shown: the renderer scans its whole input for each label.
        let (start, end) = (label.span.start as usize, label.span.end as usize);
        let text = &*source.text;
        let first = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let last = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
        *left_bytes = left_bytes.checked_sub(last - first)?;
        group = group.element(
            Snippet::source(&text[first..last])
                .path(on_one_line(&source.name))
                .line_start(sources.position(label.span).line as usize)
                .annotation(
                    kind.span(start - first..end - first)
                        .label(harmless(&label.text)),
                ),
        );
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(harmless(note)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(harmless(help)));
    }
    Some(renderer.render(&[group]).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;
    use crate::source::Span;

    #[test]
    fn of_a_line_without_end_only_the_place_is_shown() {
        let mut sources = Sources::new();
        let text = format!("allow {}\n", "raed, ".repeat(MAX_EXCERPT_BYTES));
        let source = sources.add("a.tamis", text);
        let diagnostic = Diagnostic::error(code::NOT_A_CALL, "unknown system call `raed`")
            .label(Span::new(source, 12, 16), "no such call");
        let text = render(&[diagnostic], &sources, false);
        assert!(text.len() < 200 && text.contains("a.tamis:1:13"), "{text}");
    }

    #[test]
    fn a_rendering_shows_code_file_line_caret_and_help() {
        let mut sources = Sources::new();
        let source = sources.add("a.tamis", "allow read\nallow raed\n");
        let diagnostic = Diagnostic::error(code::NOT_A_CALL, "unknown system call `raed`")
            .label(Span::new(source, 17, 21), "no such call")
            .help("did you mean `read`?");
        let text = render(&[diagnostic], &sources, false);
        for part in [
            "error[TM0003]",
            "a.tamis:2:7",
            "^^^^ no such call",
            "did you mean `read`?",
        ] {
            assert!(text.contains(part), "{part} not in:\n{text}");
        }
    }
}
