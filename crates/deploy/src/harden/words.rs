//! Words of command lines in systemd's syntax: quotes and escapes of C, then specifiers (`%n`), then variables
//! (`${X}`).
//!
//! [`first`] parses quotes and escapes like `extract_first_word_and_warn`: an escape of C is its byte, in quotes and
//! outside; an unknown one is kept. [`Writer`] writes bytes so that they are parsed unchanged: characters that begin an
//! expansion are doubled, and those that a unit can't contain are escaped. Lists of paths have no escapes of C, so
//! [`listed`] can't write some paths.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// White space in systemd's syntax.
const WHITE_SPACE: [u8; 4] = *b" \t\n\r";

/// A word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    /// The word as written.
    pub(super) written: &'t str,
    /// The word without quotes and escapes.
    pub(super) bytes: Vec<u8>,
}

/// An unterminated quote, or a backslash at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unbalanced;

/// Splits a line after its first word and the white space; `None` if there is no word.
///
/// # Errors
/// If its quotes don't end.
pub(super) fn first(line: &str) -> Result<Option<(Word<'_>, &str)>, Unbalanced> {
    let line = line.trim_start_matches(|c: char| is_space(c as u32));
    if line.is_empty() {
        return Ok(None);
    }
    let (bytes, length) = match extract(line.as_bytes(), Escapes::Known) {
        Ok(word) => word,
        Err(Unbalanced) => extract(line.as_bytes(), Escapes::All)?,
    };
    let word = Word {
        written: &line[..length],
        bytes,
    };
    let rest = line[length..].trim_start_matches(|c: char| is_space(c as u32));
    Ok(Some((word, rest)))
}

fn is_space(code: u32) -> bool {
    u8::try_from(code).is_ok_and(|byte| WHITE_SPACE.contains(&byte))
}

/// The permitted backslashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escapes {
    /// Only escapes of C.
    Known,
    /// All; unknown ones are kept.
    All,
}

/// The bytes of a line's first word, and its written length.
fn extract(line: &[u8], escapes: Escapes) -> Result<(Vec<u8>, usize), Unbalanced> {
    let mut bytes = Vec::new();
    let mut quote = None;
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        at += 1;
        match (quote, byte) {
            (_, b'\\') => match (escape(&line[at..]), line.get(at)) {
                (Some((own, length)), _) => {
                    bytes.extend(own);
                    at += length;
                }
                (None, Some(&next)) if escapes == Escapes::All => {
                    bytes.extend([b'\\', next]);
                    at += 1;
                }
                (None, None) if escapes == Escapes::All && quote.is_none() => bytes.push(b'\\'),
                _ => return Err(Unbalanced),
            },
            (Some(open), _) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, _) if WHITE_SPACE.contains(&byte) => return Ok((bytes, at - 1)),
            _ => bytes.push(byte),
        }
    }
    match quote {
        None => Ok((bytes, at)),
        Some(_) => Err(Unbalanced),
    }
}

/// The bytes of an escape, and its length after the backslash; `None` if systemd doesn't define it.
fn escape(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let number = |digits: std::ops::Range<usize>, radix: u32| {
        let digits = text.get(digits)?;
        let is_digit = |byte: &u8| (*byte as char).is_digit(radix);
        let digits = digits.iter().all(is_digit).then_some(digits)?;
        u32::from_str_radix(str::from_utf8(digits).ok()?, radix).ok()
    };
    let byte = |number: u32| u8::try_from(number).ok().filter(|byte| *byte != 0);
    let one = match *text.first()? {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b's' => b' ',
        own @ (b'\\' | b'"' | b'\'') => own,
        b'x' => return Some((vec![byte(number(1..3, 16)?)?], 3)),
        b'0'..=b'7' => return Some((vec![byte(number(0..3, 8)?)?], 3)),
        b'u' => return Some((utf8(number(1..5, 16)?)?, 5)),
        b'U' => {
            let code = number(1..9, 16)?;
            let is_character = char::from_u32(code).is_some();
            let is_reserved = (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe;
            return (is_character && !is_reserved)
                .then(|| utf8(code))?
                .map(|own| (own, 9));
        }
        _ => return None,
    };
    Some((vec![one], 1))
}

/// A code as UTF-8, also for unpaired surrogates; `None` for 0.
fn utf8(code: u32) -> Option<Vec<u8>> {
    if code == 0 {
        return None;
    }
    if let Some(character) = char::from_u32(code) {
        return Some(character.to_string().into_bytes());
    }
    let part = |shift: u32| (code >> shift & 0x3f) as u8 | 0x80;
    Some(vec![(code >> 12) as u8 | 0xe0, part(6), part(0)])
}

/// The writer of words that systemd expands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer {
    /// Whether percent signs are literal and therefore doubled; otherwise they begin specifiers.
    pub(super) has_plain_percent: bool,
    /// Whether dollar signs are literal in a place where systemd expands variables, and therefore doubled.
    pub(super) has_plain_dollar: bool,
}

impl Writer {
    /// The writer for literal bytes in a place without variables.
    pub(super) const PLAIN: Writer = Writer {
        has_plain_percent: true,
        has_plain_dollar: true,
    };

    /// Bytes as a word of a line.
    pub(super) fn word(self, bytes: &[u8]) -> String {
        let mut text = String::new();
        for chunk in bytes.utf8_chunks() {
            for sign in chunk.valid().chars() {
                match sign {
                    '\\' | '"' => text.extend(['\\', sign]),
                    '%' if self.has_plain_percent => text.push_str("%%"),
                    '$' if self.has_plain_dollar => text.push_str("$$"),
                    _ if sign.is_control() => {
                        let mut code = [0; 4];
                        let bytes = sign.encode_utf8(&mut code).bytes();
                        text.extend(bytes.map(|byte| format!("\\x{byte:02x}")));
                    }
                    _ => text.push(sign),
                }
            }
            let invalid = chunk.invalid().iter();
            text.extend(invalid.map(|byte| format!("\\x{byte:02x}")));
        }
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-@:+=%$".contains(sign);
        match !text.is_empty() && text.chars().all(is_plain) {
            true => text,
            false => format!("\"{text}\""),
        }
    }

    /// A path as a word of a line.
    pub(super) fn path(self, path: &Path) -> String {
        self.word(path.as_os_str().as_bytes())
    }
}

/// A path as a word of a list of paths; `None` if that is impossible.
pub(super) fn listed(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let is_normal = !text
        .split('/')
        .skip(1)
        .any(|part| ["", ".", ".."].contains(&part));
    let is_writable = |sign: char| !sign.is_control() && !"\"'\\".contains(sign);
    if !text.starts_with('/') || !is_normal || !text.chars().all(is_writable) {
        return None;
    }
    let text = text.replace('%', "%%");
    Some(match text.contains(' ') {
        true => format!("\"{text}\""),
        false => text,
    })
}

#[cfg(test)]
mod tests;
