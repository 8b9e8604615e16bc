//! Untrusted texts on a terminal: names of files and words of policies, without characters that change the display.
//!
//! A terminal obeys control characters. Format characters of Unicode are invisible and change the order or the shape of
//! others: after U+202E `nur.tamis` reads backwards, and U+200B makes two names that look the same. All of them are
//! shown as `\u{…}`. Letters that resemble others stay.

use std::borrow::Cow;

/// The text with its lines, and with control and invisible characters escaped.
///
/// ```
/// use tamis_diag::escape::harmless;
/// assert_eq!(harmless("a\u{202e}b\n\u{1b}[1m"), "a\\u{202e}b\n\\u{1b}[1m");
/// ```
pub fn harmless(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unseen(c) && c != '\n' && c != '\t')
}

/// The same on one line, for a name.
///
/// ```
/// use tamis_diag::escape::on_one_line;
/// assert_eq!(on_one_line("a\nb"), "a\\nb");
/// ```
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unseen)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_escaped(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Control characters, and those of Unicode's categories Cf, Zl and Zp.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_stays() {
        for text in ["kürzer.tamis", "日本", "a\tb\nc", "é", "\u{a0}"] {
            assert!(matches!(harmless(text), Cow::Borrowed(_)), "{text}");
        }
    }

    /// The standard library escapes unprintable characters; it has the table of categories.
    #[test]
    fn what_is_unseen_is_not_printable() {
        let unseen = ('\0'..=char::MAX).filter(|c| is_unseen(*c));
        assert!(unseen.clone().count() > 200);
        for c in unseen {
            assert_ne!(c.escape_debug().to_string(), c.to_string());
        }
    }
}
