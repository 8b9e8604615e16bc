//! The places of rules in their source texts.

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

/// The line of an origin, trimmed; `None` if its text is not among the sources.
pub fn line(origin: &Origin, sources: &Sources) -> Option<String> {
    let source = sources.iter().find(|source| source.name == origin.file)?;
    let line = source.text.lines().nth(origin.line as usize - 1)?;
    Some(line.trim().to_owned())
}
