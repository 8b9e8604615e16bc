//! Unparsed inputs: bytes with a name.

use tamis_diag::{Diagnostic, SourceId, Sources, Span};
use tamis_policy::front_end::FrontEnd;

use crate::code;
use crate::error::Error;

/// An unparsed input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The name in messages: the [text](crate::path_text) of the path, `<stdin>`, or the name of the embedded policy.
    /// The extension determines the kind, and the folder is the base of included files.
    pub name: String,
    /// The content.
    pub bytes: Vec<u8>,
}

impl Input {
    /// An input with this name.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Input {
        Input {
            name: name.into(),
            bytes: bytes.into(),
        }
    }

    /// An embedded policy by its name.
    pub fn embedded(name: &str) -> Option<Input> {
        let policy = tamis_policy::embedded(name)?;
        Some(Input::new(policy.name, policy.text))
    }

    /// Adds the input to the sources as text.
    ///
    /// # Errors
    /// If it isn't UTF-8.
    pub fn add_to(self, sources: &mut Sources) -> Result<SourceId, Error> {
        match String::from_utf8(self.bytes) {
            Ok(text) => Ok(sources.add(self.name, without_byte_order_mark(&text))),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Err(not_utf8(self.name, &text, at))
            }
        }
    }
}

impl Input {
    /// Refuses a byte order mark before a text in a language whose programs read no text with it.
    pub(crate) fn refuse_byte_order_mark(&self, front_end: &FrontEnd) -> Result<(), Error> {
        let text = match str::from_utf8(&self.bytes) {
            Ok(text) if text.starts_with(BYTE_ORDER_MARK) => text,
            _ => return Ok(()),
        };
        let mut sources = Sources::new();
        let source = sources.add(self.name.clone(), text);
        let span = Span::new(source, 0, BYTE_ORDER_MARK.len_utf8());
        let message = format!("a byte order mark stands before {}", front_end.title);
        let diagnostic = Diagnostic::error(code::NOT_UTF8, message)
            .label(span, "programs that read this format refuse it")
            .help("save the file as UTF-8 without a byte order mark");
        Err(Error::diagnostic(diagnostic, sources))
    }
}

/// What some editors write before a text; it means nothing in UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The text that follows a byte order mark.
fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The diagnostic points into the text with every invalid byte replaced. The text before the first invalid byte is
/// unchanged, so the offset is right.
fn not_utf8(name: String, lossy: &str, at: usize) -> Error {
    let mut sources = Sources::new();
    let source = sources.add(name, lossy);
    let end = at + lossy[at..].chars().next().map_or(0, char::len_utf8);
    let span = Span::new(source, at, end);
    let help = match lossy.starts_with("\u{fffd}\u{fffd}") {
        true => "it looks like UTF-16: save it as UTF-8",
        false => "a raw program is read with `--from bpf`",
    };
    let diagnostic = Diagnostic::error(code::NOT_UTF8, "the text is not UTF-8")
        .label(span, format!("byte {at} is not part of a valid character"))
        .help(help);
    Error::diagnostic(diagnostic, sources)
}
