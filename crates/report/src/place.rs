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
    let line = text.split_inclusive('\n').nth(origin.line as usize - 1)?;
    let line_start = line.as_ptr() as usize - text.as_ptr() as usize;
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
    for (index, line) in source.text.lines().enumerate().skip(first) {
        // The first line of the list may have other text before its first name.
        let skipped = match index == first {
            true => line.char_indices().nth(origin.column as usize - 1)?.0,
            false => 0,
        };
        let part = &line[skipped..];
        let (part, is_last) = match part.split_once(']') {
            Some((part, _)) => (part, true),
            None => (part, false),
        };
        let is_list = index == first || part.trim_start().starts_with(['"', '-']) || is_last;
        if !is_list {
            return None;
        }
        let item = part.trim().trim_start_matches("- ");
        let at = match part.find(&format!("\"{name}\"")) {
            Some(at) => Some(at),
            None => (item == name).then(|| part.len() - part.trim_start().len()),
        };
        if let Some(at) = at {
            let column = line[..skipped + at].chars().count() as u32 + 1;
            let is_dash = line[skipped + at..].starts_with("- ");
            return Some(Origin {
                line: index as u32 + 1,
                column: if is_dash { column + 2 } else { column },
                ..origin.clone()
            });
        }
        if is_last {
            return None;
        }
    }
    None
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
