//! Limits of readers against hostile or mistaken texts, shared by all languages.
//!
//! Real policies and programs are an order of magnitude below each limit.

/// The most diagnostics that are reported for one text.
pub const MAX_DIAGNOSTICS: usize = 100;

/// The most tokens, or nodes of a document, that a text may have.
pub const MAX_TOKENS: usize = 1 << 20;

/// The most bytes of a message, label, note or help; longer ones are cut. They quote texts.
pub(crate) const MAX_MESSAGE_BYTES: usize = 2000;

/// The message for a text with more than [`MAX_TOKENS`].
pub fn too_many_tokens() -> String {
    format!("the text has more than {MAX_TOKENS} words and signs")
}

/// A text cut at [`MAX_MESSAGE_BYTES`].
pub(crate) fn cut(text: impl Into<String>) -> String {
    let mut text = text.into();
    if text.len() > MAX_MESSAGE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES));
        text.push('…');
    }
    text
}
