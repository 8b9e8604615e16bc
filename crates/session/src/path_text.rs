//! Paths as text, and back: a path consists of bytes; messages, documents and names of inputs are text.
//!
//! Bytes outside UTF-8 characters, and those of control characters, are written as `\xHH`: control characters would
//! break the line. To keep the mapping injective, a literal `\xHH` in a path is written with `\x5c` for its backslash.
//! All other paths are unchanged.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Conversion of paths to text.
pub trait PathText {
    /// The text; [`path_of`] converts it back.
    fn text(&self) -> String;
}

impl PathText for OsStr {
    /// ```
    /// use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};
    /// use tamis_session::path_text::{PathText, path_of};
    /// assert_eq!(OsStr::new("kürzer.tamis").text(), "kürzer.tamis");
    /// let latin = OsStr::from_bytes(b"k\xfcrzer.tamis");
    /// assert_eq!(latin.text(), r"k\xfcrzer.tamis");
    /// assert_eq!(path_of(&latin.text()), Path::new(latin));
    /// assert_eq!(OsStr::new("two\nlines").text(), r"two\x0alines");
    /// ```
    fn text(&self) -> String {
        let mut text = String::new();
        for chunk in self.as_bytes().utf8_chunks() {
            let valid = chunk.valid();
            for (at, c) in valid.char_indices() {
                let end = at + c.len_utf8();
                match c.is_control() || byte_of(&valid[at..]).is_some() {
                    true => push_codes(&mut text, &valid.as_bytes()[at..end]),
                    false => text.push(c),
                }
            }
            push_codes(&mut text, chunk.invalid());
        }
        text
    }
}

impl PathText for Path {
    fn text(&self) -> String {
        self.as_os_str().text()
    }
}

/// Appends the codes of bytes.
fn push_codes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!(r"\x{byte:02x}"));
    }
}

/// The path that a text represents.
pub fn path_of(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(r"\x") {
        let (before, code) = rest.split_at(at);
        bytes.extend(before.bytes());
        match byte_of(code) {
            Some(byte) => {
                bytes.push(byte);
                rest = &code[4..];
            }
            None => {
                bytes.push(b'\\');
                rest = &code[1..];
            }
        }
    }
    bytes.extend(rest.bytes());
    PathBuf::from(OsString::from_vec(bytes))
}

/// The byte of the code `\xHH` at the start of a text.
fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix(r"\x")?.get(..2)?;
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    are_digits.then(|| u8::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_comes_back_from_its_text_and_no_two_have_the_same() {
        // All sequences of up to five of these pieces, from which codes and invalid characters arise.
        let pieces: [&[u8]; 8] = [b"\\", b"x", b"5c", b"f", b"\n", b"\xff", b"\xc3", b"\xbc"];
        let mut paths = vec![Vec::new()];
        let mut first = 0;
        for _ in 0..5 {
            let end = paths.len();
            for at in first..end {
                for piece in pieces {
                    let longer: Vec<u8> = [&paths[at], piece].concat();
                    paths.push(longer);
                }
            }
            first = end;
        }
        for path in paths {
            let path = PathBuf::from(OsString::from_vec(path));
            assert_eq!(path_of(&path.text()), path, "{}", path.text());
        }
    }
}
