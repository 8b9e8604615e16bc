//! The files in a text: one, or those of a unit in the output of `systemctl cat`.
//!
//! `systemctl cat` prints `# PATH` before each file, the unit first and then its drop-ins, with an empty line in
//! between. A comment may have the same form, so the text must satisfy two conditions: the first line is such a title,
//! and the name of the input isn't that of a unit or drop-in, whose text is a single file. Drop-ins may be in the
//! folder of the unit, of its other names, of its template, of a prefix of its name or of its type; all have its type.
//! Ambiguous comments are errors of [`unit`](super::unit) if they matter.

use super::unit::{Line, lines};

/// The sections of units that run programs.
pub(super) const SECTIONS: [&str; 4] = ["Service", "Socket", "Mount", "Swap"];
/// The extensions of such units, in the same order.
const TYPES: [&str; 4] = ["service", "socket", "mount", "swap"];

/// The file of a unit that runs programs, or of a drop-in of one.
#[derive(Clone, Copy, Debug)]
struct UnitFile<'t> {
    /// The name of the unit: `x.service`; of a drop-in for all units of a type, the type.
    unit: &'t str,
    /// Its index in [`TYPES`].
    kind: usize,
    is_drop_in: bool,
}

impl<'t> UnitFile<'t> {
    /// From the path or the name of a file.
    fn of_path(path: &'t str) -> Option<UnitFile<'t>> {
        let mut components = path.rsplit('/');
        let name = components.next()?;
        let is_drop_in = name.ends_with(".conf");
        let unit = match is_drop_in {
            true => components.next()?.strip_suffix(".d")?,
            false => name,
        };
        let (stem, extension) = unit.rsplit_once('.').unwrap_or(("", unit));
        let kind = TYPES.iter().position(|kind| *kind == extension)?;
        let is_type = stem.is_empty() && !is_drop_in;
        (!is_type).then_some(UnitFile {
            unit,
            kind,
            is_drop_in,
        })
    }

    /// From the line that `systemctl cat` prints before the file.
    fn of_title(line: &'t str) -> Option<UnitFile<'t>> {
        let path = line.strip_prefix("# ")?;
        let is_path = path.starts_with('/') && !path.contains(char::is_whitespace);
        is_path.then(|| UnitFile::of_path(path))?
    }
}

/// The files of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Titles<'t> {
    /// The input itself, or the first file in it.
    first: Option<UnitFile<'t>>,
    /// Whether the text is output of `systemctl cat`.
    is_printed: bool,
    /// Whether it may be, but has the name of a single file.
    looks_printed: bool,
}

impl<'t> Titles<'t> {
    /// From the name and the text of an input.
    pub(super) fn new(input: &'t str, text: &'t str) -> Titles<'t> {
        let own = UnitFile::of_path(input);
        let line = lines(text).next().map_or("", |line| line.text);
        let title = UnitFile::of_title(line);
        let printed = title.filter(|_| own.is_none());
        let begins_another =
            |line: Line| line.follows_empty && UnitFile::of_title(line.text).is_some();
        Titles {
            looks_printed: own.is_some() && title.is_some() && lines(text).any(begins_another),
            first: own.or(printed),
            is_printed: printed.is_some(),
        }
    }

    /// Whether the name identifies a single file, but the text resembles several.
    pub(super) fn looks_printed(&self) -> bool {
        self.looks_printed
    }

    /// The section that applies, if the name determines it.
    pub(super) fn section(&self) -> Option<&'static str> {
        self.first.map(|first| SECTIONS[first.kind])
    }

    /// Whether the first file is a drop-in.
    pub(super) fn is_drop_in(&self) -> bool {
        self.first.is_some_and(|first| first.is_drop_in)
    }

    /// Whether a line is the title of a file.
    pub(super) fn begins_file(&self, line: &Line) -> bool {
        (line.start == 0 || line.follows_empty) && self.file(line.text).is_some()
    }

    /// Whether a line is the title of a drop-in at a possible place.
    pub(super) fn begins_drop_in(&self, line: &str) -> bool {
        self.file(line).is_some_and(|file| file.is_drop_in)
    }

    /// Whether a line would be the title of another unit that runs programs.
    pub(super) fn names_other_unit(&self, line: &str) -> bool {
        let is_unit = |file: UnitFile<'_>| !file.is_drop_in;
        self.is_printed
            && self.file(line).is_none()
            && UnitFile::of_title(line).is_some_and(is_unit)
    }

    /// The file in a title, if it belongs to the unit.
    fn file<'l>(&self, line: &'l str) -> Option<UnitFile<'l>> {
        let first = self.first.filter(|_| self.is_printed)?;
        let file = UnitFile::of_title(line)?;
        let is_ours = match file.is_drop_in {
            true => file.kind == first.kind,
            false => file.unit == first.unit,
        };
        is_ours.then_some(file)
    }
}
