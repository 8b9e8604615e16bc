//! The places of rules in their source texts.

use std::iter;

use tamis_abi::{Arch, Nr, SeccompData, syscall};
use tamis_diag::escape::on_one_line;
use tamis_diag::{Sources, Span};
use tamis_rules::Origin;

/// The word at an origin; `None` if its text is not among the sources.
pub fn span(origin: &Origin, sources: &Sources) -> Option<Span> {
    let mut all = sources.with_ids();
    let (source, text) = all.find(|(_, source)| source.name == origin.file)?;
    let (line_start, line) = text.line(origin.line)?;
    let column = origin.column as usize - 1;
    let within = line.char_indices().nth(column).map(|(at, _)| at)?;
    let rest = &line[within..];
    let is_word = |char: char| char.is_alphanumeric() || "_-@".contains(char);
    let length = match rest.strip_prefix('"') {
        Some(quoted) => quoted
            .find('"')
            .map_or(rest.trim_end().len(), |end| end + 2),
        None => rest
            .find(|char| !is_word(char))
            .unwrap_or(rest.len())
            .max(1),
    };
    let start = (line_start + within) as u32;
    Some(Span {
        source,
        start,
        end: start + length as u32,
    })
}

/// The place of a call within the list of names that a rule begins with, or that of the rule if the list doesn't
/// contain the name.
///
/// Front ends give a rule the place of its first name. A profile has hundreds of names in one list, each on a line.
pub fn of_call(origin: &Origin, data: &SeccompData, sources: &Sources) -> Origin {
    element_of(origin, data, sources).unwrap_or_else(|| origin.clone())
}

/// The place of a call within the list of names that a rule begins with, if the list contains it.
pub fn element_of(origin: &Origin, data: &SeccompData, sources: &Sources) -> Option<Origin> {
    let arch = Arch::of_call(data.arch, data.nr)?;
    let name = syscall::name(arch, Nr(data.nr))?;
    let mut all = listed(origin, sources);
    Some(all.find(|own| own.name == name)?.place(origin))
}

/// The names in the list that begins at an origin, with their places: of a JSON list, or of a YAML list with one element
/// per line.
pub fn elements<'s>(
    origin: &Origin,
    sources: &'s Sources,
) -> impl Iterator<Item = (&'s str, Origin)> {
    listed(origin, sources).map(|own| (own.name, own.place(origin)))
}

/// A name in a list.
struct Element<'s> {
    name: &'s str,
    /// Its line, of the list's lines, and the text of the list in that line before it.
    index: u32,
    before: &'s str,
}

impl Element<'_> {
    /// The place, for the origin of the list.
    fn place(&self, origin: &Origin) -> Origin {
        let first_column = if self.index == 0 { origin.column } else { 1 };
        Origin {
            line: origin.line + self.index,
            column: first_column + self.before.chars().count() as u32,
            ..origin.clone()
        }
    }
}

fn listed<'s>(origin: &Origin, sources: &'s Sources) -> impl Iterator<Item = Element<'s>> {
    let (list, is_closed) = list(origin, sources).unwrap_or_default();
    let mut end = 0;
    let lines = list.split_inclusive('\n').enumerate();
    let lines = lines.map_while(move |(index, line)| {
        end += line.len();
        let is_last = is_closed && end == list.len();
        // The first line may have other text before its first name.
        let is_list = index == 0 || line.trim_start().starts_with(['"', '-']) || is_last;
        is_list.then_some((index as u32, line))
    });
    lines.flat_map(|(index, line)| {
        names(line).map(move |(name, at)| Element {
            name,
            index,
            before: &line[..at],
        })
    })
}

/// The text from an origin to the end of its JSON list, and whether that has an end.
fn list<'s>(origin: &Origin, sources: &'s Sources) -> Option<(&'s str, bool)> {
    let source = sources.iter().find(|source| source.name == origin.file)?;
    let (start_of_line, line) = source.line(origin.line)?;
    let start = start_of_line + line.char_indices().nth(origin.column as usize - 1)?.0;
    let text = &source.text[start..];
    Some(match text.split_once(']') {
        Some((list, _)) => (list, true),
        None => (text, false),
    })
}

/// The quoted names of a line, and the whole element without quotes, each with its place.
fn names(line: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut quotes = line.match_indices('"').map(|(at, _)| at);
    let quoted = iter::from_fn(move || {
        let (open, close) = (quotes.next()?, quotes.next()?);
        Some((&line[open + 1..close], open))
    });
    let item = line.trim_start();
    let bare = item.trim_start_matches("- ").trim_end();
    let dash = if item.starts_with("- ") { 2 } else { 0 };
    quoted.chain(iter::once((bare, line.len() - item.len() + dash)))
}

/// An origin on one line, with the name of its file escaped.
pub fn text(origin: &Origin) -> String {
    on_one_line(&origin.to_string()).into_owned()
}

/// The line of an origin, trimmed; `None` if its text is not among the sources.
pub fn line(origin: &Origin, sources: &Sources) -> Option<String> {
    let source = sources.iter().find(|source| source.name == origin.file)?;
    let (_, line) = source.line(origin.line)?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, line: u32, column: u32) -> Vec<(String, u32, u32)> {
        let mut sources = Sources::new();
        sources.add("list", text);
        let origin = Origin {
            file: "list".into(),
            line,
            column,
        };
        let all = elements(&origin, &sources);
        all.filter(|(name, _)| name.chars().all(char::is_alphabetic))
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, place)| (name.to_owned(), place.line, place.column))
            .collect()
    }

    #[test]
    fn elements_have_the_places_of_their_names() {
        let read = ("read".to_owned(), 1, 12);
        let json = "{\"names\": [\"read\", \"é\",\n  \"write\"\n], \"other\": 1}\n";
        let others = [("é".to_owned(), 1, 20), ("write".to_owned(), 2, 3)];
        assert_eq!(found(json, 1, 12), [&[read][..], &others].concat());
        let yaml = "names:\n- read\n- \"write\"\nother: close\n- open\n";
        let listed = [("read".to_owned(), 2, 3), ("write".to_owned(), 3, 3)];
        assert_eq!(found(yaml, 2, 3), listed);
    }
}
