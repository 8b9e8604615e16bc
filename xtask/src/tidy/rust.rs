//! A Rust source file with code, comments and literals told apart.
//!
//! This is a scanner, not a parser: it knows comments, strings, characters and lifetimes, which is
//! enough to match braces and to search for words in code alone or in comments alone.

use std::ops::Range;

/// A scanned file. `code` and `comments` have the lines of the file; in each, what belongs to the
/// other, and the contents of literals, are blanks.
pub(super) struct RustFile {
    /// Everything but comments and the contents of literals.
    pub(super) code: String,
    /// The comments with their markers.
    pub(super) comments: String,
    /// Whether a program wrote the file.
    pub(super) is_generated: bool,
}

/// A function with a body.
pub(super) struct Function {
    /// Its name.
    pub(super) name: String,
    /// The line of `fn`, from 1.
    pub(super) line: usize,
    /// Lines from `fn` to the closing brace.
    pub(super) lines_count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Code,
    Comment,
    Literal,
}

impl RustFile {
    /// Scans a file.
    pub(super) fn new(text: &str) -> RustFile {
        let chars: Vec<char> = text.chars().collect();
        let mut code = String::with_capacity(text.len());
        let mut comments = String::with_capacity(text.len());
        let mut at = 0;
        while at < chars.len() {
            let (class, end) = token(&chars, at);
            for char in &chars[at..end] {
                let is_space = char.is_whitespace();
                let shown = |is_shown: bool| if is_shown || is_space { *char } else { ' ' };
                code.push(shown(class == Class::Code));
                comments.push(shown(class == Class::Comment));
            }
            at = end;
        }
        let is_generated = text.lines().take(5).any(|line| line.contains("@generated"));
        RustFile {
            code,
            comments,
            is_generated,
        }
    }

    /// The code without modules that exist for tests only.
    pub(super) fn product_code(&self) -> String {
        let mut code = self.code.clone();
        let marker = "#[cfg(test)]";
        while let Some(start) = code.find(marker) {
            let after = start + marker.len();
            let end = body_after(&code, after).map_or(after, |body| body.end);
            let blank: String = code[start..end]
                .chars()
                .map(|char| if char == '\n' { '\n' } else { ' ' })
                .collect();
            code.replace_range(start..end, &blank);
        }
        code
    }

    /// All functions that have a body.
    pub(super) fn functions(&self) -> Vec<Function> {
        let code = &self.code;
        words(code, "fn")
            .filter_map(|start| {
                let signature = code[start + 2..].trim_start();
                let is_name_part = |char: char| char.is_alphanumeric() || char == '_';
                let name: String = signature.chars().take_while(|c| is_name_part(*c)).collect();
                let body = body_after(code, start)?;
                (!name.is_empty()).then(|| Function {
                    name,
                    line: line_of(code, start),
                    lines_count: code[start..body.end].lines().count(),
                })
            })
            .collect()
    }
}

/// The line of a byte offset, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// The byte offsets at which a word stands alone.
pub(super) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |char: Option<char>| char.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !is_part(before) && !is_part(after)
        })
}

/// The braces that follow a signature or attribute, unless a semicolon comes first.
fn body_after(code: &str, start: usize) -> Option<Range<usize>> {
    let mut depth = 0_usize;
    let mut open = None;
    for (at, char) in code[start..].char_indices() {
        match char {
            '(' | '[' if open.is_none() => depth += 1,
            ')' | ']' if open.is_none() => depth = depth.saturating_sub(1),
            ';' if open.is_none() && depth == 0 => return None,
            '{' if open.is_none() && depth == 0 => {
                open = Some(start + at);
                depth = 1;
            }
            '{' if open.is_some() => depth += 1,
            '}' if open.is_some() => {
                depth -= 1;
                if depth == 0 {
                    return open.map(|open| open..start + at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The class and the end of the token at `at`; code is taken one character or word at a time.
fn token(chars: &[char], at: usize) -> (Class, usize) {
    let rest = &chars[at..];
    match rest {
        ['/', '/', ..] => (Class::Comment, until(chars, at, '\n')),
        ['/', '*', ..] => (Class::Comment, block_comment_end(chars, at)),
        ['"', ..] => (Class::Literal, string_end(chars, at)),
        ['\'', '\\', ..] => (Class::Literal, until(chars, at + 3, '\'') + 1),
        ['\'', _, '\'', ..] => (Class::Literal, at + 3),
        [first, ..] if first.is_alphanumeric() || *first == '_' => word_end(chars, at),
        _ => (Class::Code, at + 1),
    }
}

fn until(chars: &[char], from: usize, end: char) -> usize {
    let from = from.min(chars.len());
    let found = chars[from..].iter().position(|char| *char == end);
    found.map_or(chars.len(), |distance| from + distance)
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < chars.len() {
        match &chars[at..] {
            ['/', '*', ..] => {
                depth += 1;
                at += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// A word, or the raw string that it introduces.
fn word_end(chars: &[char], start: usize) -> (Class, usize) {
    let is_part = |char: &char| char.is_alphanumeric() || *char == '_';
    let length = chars[start..]
        .iter()
        .take_while(|char| is_part(char))
        .count();
    let end = start + length;
    let word: String = chars[start..end].iter().collect();
    if !matches!(word.as_str(), "r" | "br" | "cr") {
        return (Class::Code, end);
    }
    let hashes = chars[end..].iter().take_while(|char| **char == '#').count();
    if chars.get(end + hashes) != Some(&'"') {
        return (Class::Code, end);
    }
    let mut at = end + hashes + 1;
    while at < chars.len() {
        let closing = chars[at + 1..].iter().take_while(|char| **char == '#');
        if chars[at] == '"' && closing.count() >= hashes {
            return (Class::Literal, at + 1 + hashes);
        }
        at += 1;
    }
    (Class::Literal, chars.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_and_words_in_comments_and_literals_are_not_code() {
        let text = "fn a<'x>() { // { todo\n let s = \"{ // \\\" {\"; let c = '{'; let e = '\\''; \
                    let r = r#\"{\" {\"#; /* { /* { */ { */ }\nfn b() {}\n";
        let file = RustFile::new(text);
        let names: Vec<String> = file.functions().into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(!file.code.contains("todo") && file.comments.contains("todo"));
        assert_eq!(file.code.lines().count(), text.lines().count());
    }

    #[test]
    fn a_function_is_as_long_as_from_fn_to_its_brace() {
        let text = "trait T {\n  fn no_body(&self, x: [u8; 4]);\n}\nfn f<T>(x: [u8; 4]) -> u8\nwhere\n  T: Copy,\n{\n  0\n}\n";
        let functions = RustFile::new(text).functions();
        let [f] = functions.as_slice() else {
            panic!("one function has a body, not {}", functions.len());
        };
        assert_eq!((f.name.as_str(), f.line, f.lines_count), ("f", 4, 6));
    }

    #[test]
    fn product_code_has_no_test_modules() {
        let text =
            "use a;\n#[cfg(test)]\nmod tests {\n use b;\n}\n#[cfg(test)]\nmod more;\nuse c;\n";
        let code = RustFile::new(text).product_code();
        assert!(code.contains("use a") && code.contains("use c") && !code.contains("use b"));
        assert_eq!(code.lines().count(), text.lines().count());
    }
}
