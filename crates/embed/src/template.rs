//! Templates of generated source code.
//!
//! | In a template | In the text |
//! |---|---|
//! | `@key@` | the value of the key |
//! | `@key?text@`, `@key?text\|other@` | the text if the value is not empty, otherwise the other |
//! | a line that ends with `@key@` | the line once for each line of the value, so that all have its indentation |
//! | a line `@if key@` or `@if !key@`, up to `@else@` or `@end@` | the lines between if the value is, or is not, empty |

/// The values of a template's keys.
#[derive(Debug, Default)]
pub(crate) struct Values(Vec<(&'static str, String)>);

impl Values {
    /// Sets a value.
    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<String>) {
        self.0.push((key, value.into()));
    }

    /// Sets a value of several lines.
    pub(crate) fn lines(&mut self, key: &'static str, lines: impl IntoIterator<Item = String>) {
        self.set(key, lines.into_iter().collect::<Vec<_>>().join("\n"));
    }

    /// # Panics
    /// If the key has no value, which is a bug in the template.
    fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| *name == key);
        &found.unwrap_or_else(|| panic!("`@{key}@` has no value")).1
    }

    fn is_set(&self, key: &str) -> bool {
        !self.get(key).is_empty()
    }

    /// Fills in a template. Values are not searched for keys.
    ///
    /// # Panics
    /// If the template has a key without a value in lines that are kept, or an `@end@` without an `@if@`.
    pub(crate) fn fill(&self, template: &str) -> String {
        let mut text = String::new();
        let mut open: Vec<bool> = Vec::new();
        for line in template.lines() {
            let is_kept = open.iter().all(|holds| *holds);
            match directive(line) {
                Some(Directive::If(key, expected)) => {
                    open.push(is_kept && self.is_set(key) == expected);
                }
                Some(Directive::Else) => {
                    let last = open.last_mut().expect("`@else@` follows `@if@`");
                    *last = !*last;
                }
                Some(Directive::End) => {
                    open.pop().expect("`@end@` follows `@if@`");
                }
                None if is_kept => self.fill_line(line, &mut text),
                None => {}
            }
        }
        text
    }

    fn fill_line(&self, line: &str, text: &mut String) {
        let pieces: Vec<&str> = line.split('@').collect();
        let (before, lines) = match pieces.as_slice() {
            [before @ .., key, ""] if !key.contains('?') => (before, self.get(key)),
            all => (all, "\n"),
        };
        let filled = before.iter().enumerate().map(|(index, piece)| {
            if index % 2 == 0 {
                piece
            } else {
                self.inline(piece)
            }
        });
        let prefix: String = filled.collect();
        for line in lines.lines() {
            *text += format!("{prefix}{line}").trim_end();
            text.push('\n');
        }
    }

    fn inline<'a>(&'a self, piece: &'a str) -> &'a str {
        let Some((key, texts)) = piece.split_once('?') else {
            return self.get(piece);
        };
        let (text, other) = texts.split_once('|').unwrap_or((texts, ""));
        if self.is_set(key) { text } else { other }
    }
}

/// A line of a template that selects lines.
enum Directive<'a> {
    /// The lines that follow are for a key whose value is set, or isn't.
    If(&'a str, bool),
    Else,
    End,
}

fn directive(line: &str) -> Option<Directive<'_>> {
    match line.strip_prefix('@')?.strip_suffix('@')? {
        "else" => Some(Directive::Else),
        "end" => Some(Directive::End),
        text => {
            let key = text.strip_prefix("if ")?;
            Some(match key.strip_prefix('!') {
                Some(key) => Directive::If(key, false),
                None => Directive::If(key, true),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> String {
        let mut values = Values::default();
        values.set("a", "@b@");
        values.set("b", "c");
        values.set("none", "");
        values.lines("lines", ["1", "", "2"].map(str::to_owned));
        values.fill(template)
    }

    #[test]
    fn values_are_not_filled_in_again() {
        assert_eq!(filled("x @a@ @b@;"), "x @b@ c;\n");
    }

    #[test]
    fn each_line_of_a_value_has_the_indentation_of_its_key() {
        assert_eq!(filled("{\n\t@lines@\n\t@none@\n}"), "{\n\t1\n\n\t2\n}\n");
        assert_eq!(filled(" * @b@: @lines@"), " * c: 1\n * c:\n * c: 2\n");
    }

    #[test]
    fn empty_values_are_false() {
        let template = "@if a@\n@if none@\n1\n@else@\n2\n@end@\n@end@\n@if !none@\n3\n@end@";
        assert_eq!(filled(template), "2\n3\n");
        assert_eq!(filled("@a?x|y@ @none?x|y@ @none?x@."), "x y .\n");
    }

    #[test]
    fn omitted_lines_need_no_values() {
        let template = "@if !a@\n@if missing@\n@missing@\n@else@\n1\n@end@\n@else@\n2\n@end@";
        assert_eq!(filled(template), "2\n");
    }
}
