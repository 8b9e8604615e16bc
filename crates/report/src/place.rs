//! The places of rules in their source texts.

use tamis_abi::{Arch, Nr, SeccompData, syscall};
use tamis_diag::escape::on_one_line;
use tamis_diag::{Sources, Span};
use tamis_rules::Origin;

/// The word at an origin; `None` if its text is not among the sources.
pub fn span(origin: &Origin, sources: &Sources) -> Option<Span> {
    let (source, text) = sources
        .with_ids()
        .find_map(|(id, source)| (source.name == origin.file).then(|| (id, source.text.clone())))?;
    let (line_start, line) = nth_line(&text, origin.line as usize - 1)?;
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
    element(origin, syscall::name(arch, Nr(data.nr))?, sources)
}

/// The element with this name in a JSON list, or in a YAML list with one element per line.
fn element(origin: &Origin, name: &str, sources: &Sources) -> Option<Origin> {
    let source = sources.iter().find(|source| source.name == origin.file)?;
    let first = origin.line as usize - 1;
    let (start_of_line, line) = nth_line(&source.text, first)?;
    // The first line of the list may have other text before its first name.
    let start = start_of_line + line.char_indices().nth(origin.column as usize - 1)?.0;
    let list = &source.text[start..];
    let (list, is_closed) = match list.split_once(']') {
        Some((list, _)) => (list, true),
        None => (list, false),
    };
    let quoted = list.find(&format!("\"{name}\""));
    let mut at = 0;
    for (index, part) in list.split_inclusive('\n').enumerate() {
        let item = part.trim_start();
        let is_last = is_closed && at + part.len() == list.len();
        let is_list = index == 0 || item.starts_with(['"', '-']) || is_last;
        if !is_list {
            return None;
        }
        let indent = part.len() - item.len();
        let is_bare = || item.trim_end().trim_start_matches("- ") == name;
        let found = match quoted.filter(|quoted| (at..at + part.len()).contains(quoted)) {
            Some(quoted) => Some(quoted),
            None if is_bare() => Some(at + indent),
            None => None,
        };
        if let Some(found) = found {
            let place = start + found;
            let line_start = source.text[..place].rfind('\n').map_or(0, |end| end + 1);
            let column = source.text[line_start..place].chars().count() as u32 + 1;
            let is_dash = list[found..].starts_with("- ");
            return Some(Origin {
                line: (first + index) as u32 + 1,
                column: if is_dash { column + 2 } else { column },
                ..origin.clone()
            });
        }
        at += part.len();
    }
    None
}

/// A line, counted from 0, with its place in the text.
fn nth_line(text: &str, index: usize) -> Option<(usize, &str)> {
    let line = text.split_inclusive('\n').nth(index)?;
    Some((line.as_ptr() as usize - text.as_ptr() as usize, line))
}

/// An origin on one line, with the name of its file escaped.
pub fn text(origin: &Origin) -> String {
    on_one_line(&origin.to_string()).into_owned()
}

/// The line of an origin, trimmed; `None` if its text is not among the sources.
pub fn line(origin: &Origin, sources: &Sources) -> Option<String> {
    let source = sources.iter().find(|source| source.name == origin.file)?;
    let line = source.text.lines().nth(origin.line as usize - 1)?;
    Some(line.trim().to_owned())
}
