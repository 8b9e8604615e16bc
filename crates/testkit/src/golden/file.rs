//! The text of a golden: a free preamble, then sections.
//!
//! A section begins with a line `-- name`, which may have an argument, and ends before the next one. Blank lines at
//! the end of a section separate it from the next and are not part of it, so a section cannot distinguish one final
//! newline from several.

use std::fmt;

/// The kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionKind {
    /// A `tamis` command line; begins a step.
    Run,
    /// A pass of the compiler, named by the argument; also begins a step.
    Pass,
    /// Standard input, or, with an argument, a file of that name.
    Input,
    /// The expected standard output of the command.
    Output,
    /// The expected standard error of the command.
    Error,
    /// The expected exit code of the command, as the argument.
    Exit,
    /// The expected measures of the command's output, which is a program.
    Stats,
    /// Calls with the actions that all programs and rulesets of the file must return.
    Eval,
    /// All programs and rulesets of the file must be equivalent.
    Same,
    /// The file is for x86-64 alone: its commands take the machine's architecture.
    X86_64,
}

impl SectionKind {
    const ALL: [SectionKind; 10] = [
        SectionKind::Run,
        SectionKind::Pass,
        SectionKind::Input,
        SectionKind::Output,
        SectionKind::Error,
        SectionKind::Exit,
        SectionKind::Stats,
        SectionKind::Eval,
        SectionKind::Same,
        SectionKind::X86_64,
    ];

    /// The word after the dashes.
    pub(super) const fn name(self) -> &'static str {
        match self {
            SectionKind::Run => "run",
            SectionKind::Pass => "pass",
            SectionKind::Input => "input",
            SectionKind::Output => "output",
            SectionKind::Error => "error",
            SectionKind::Exit => "exit",
            SectionKind::Stats => "stats",
            SectionKind::Eval => "eval",
            SectionKind::Same => "same",
            SectionKind::X86_64 => "x86_64",
        }
    }

    fn from_name(name: &str) -> Option<SectionKind> {
        SectionKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// Whether the section begins a step.
    pub(super) const fn begins_step(self) -> bool {
        matches!(self, SectionKind::Run | SectionKind::Pass)
    }

    /// Whether the section is about the whole file and not about a step.
    pub(super) const fn is_about_the_file(self) -> bool {
        matches!(
            self,
            SectionKind::Eval | SectionKind::Same | SectionKind::X86_64
        )
    }

    /// Whether the section takes an argument: `Some(true)` if it must have one, `None` if it may.
    const fn argument(self) -> Option<bool> {
        match self {
            SectionKind::Exit | SectionKind::Pass => Some(true),
            SectionKind::Input => None,
            SectionKind::Run
            | SectionKind::Output
            | SectionKind::Error
            | SectionKind::Stats
            | SectionKind::Eval
            | SectionKind::Same
            | SectionKind::X86_64 => Some(false),
        }
    }
}

/// One section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Its kind.
    pub(super) kind: SectionKind,
    /// The rest of the header line.
    pub(super) argument: String,
    /// The line of the header, from 1; 0 if the section was added.
    pub(super) line: usize,
    /// The lines below the header without trailing blank lines, each ended by a newline.
    pub(super) body: String,
}

/// A golden file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Golden {
    preamble: String,
    /// The sections in order.
    pub(super) sections: Vec<Section>,
}

/// A text without trailing blank lines, with one final newline unless it is empty.
pub(super) fn normal(text: &str) -> String {
    let mut text = text.trim_end_matches('\n').to_owned();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

impl Golden {
    /// Parses a golden.
    ///
    /// # Errors
    /// The first unknown section, wrong argument or missing step, as a sentence with the line.
    pub(super) fn parse(text: &str) -> Result<Golden, String> {
        let mut preamble = String::new();
        let mut sections: Vec<Section> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if let Some(header) = line.strip_prefix("-- ") {
                sections.push(Section::from_header(header, index + 1)?);
                continue;
            }
            let body = match sections.last_mut() {
                Some(section) => &mut section.body,
                None => &mut preamble,
            };
            body.push_str(line);
            body.push('\n');
        }
        preamble = normal(&preamble);
        for section in &mut sections {
            section.body = normal(&section.body);
        }
        if !sections.iter().any(|section| section.kind.begins_step()) {
            return Err("the golden has no `-- run` or `-- pass`, so it tests nothing".to_owned());
        }
        Ok(Golden { preamble, sections })
    }

    /// The sections of one kind, in order.
    pub(super) fn sections_of(&self, kind: SectionKind) -> impl Iterator<Item = &Section> {
        let sections = self.sections.iter();
        sections.filter(move |section| section.kind == kind)
    }
}

impl Section {
    /// A section with a body normalised by [`normal`].
    pub(super) fn new(kind: SectionKind, body: String) -> Section {
        Section {
            kind,
            argument: String::new(),
            line: 0,
            body,
        }
    }

    fn from_header(header: &str, line: usize) -> Result<Section, String> {
        let (name, argument) = header.split_once(' ').unwrap_or((header, ""));
        let argument = argument.trim();
        let kind = SectionKind::from_name(name).ok_or_else(|| {
            let known = SectionKind::ALL.map(SectionKind::name).join(", ");
            format!("line {line}: no section is called `{name}`; there are {known}")
        })?;
        match kind.argument() {
            Some(true) if argument.is_empty() => {
                return Err(format!("line {line}: `-- {name}` needs an argument"));
            }
            Some(false) if !argument.is_empty() => {
                return Err(format!("line {line}: `-- {name}` takes no argument"));
            }
            Some(_) | None => {}
        }
        Ok(Section {
            argument: argument.to_owned(),
            line,
            ..Section::new(kind, String::new())
        })
    }
}

impl fmt::Display for Golden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.preamble)?;
        for (index, section) in self.sections.iter().enumerate() {
            if index > 0 || !self.preamble.is_empty() {
                f.write_str("\n")?;
            }
            let header = format!("-- {} {}", section.kind.name(), section.argument);
            writeln!(f, "{}", header.trim_end())?;
            f.write_str(&section.body)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_golden_prints_as_it_was_written() {
        let text = "Why.\n\n-- run\ntamis asm\n\n-- input a.txt\nx\n\ny\n\n-- exit 2\n";
        assert_eq!(Golden::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn blank_lines_inside_a_section_stay_and_those_at_its_end_go() {
        let golden = Golden::parse("-- run\na\n\nb\n\n\n").unwrap();
        assert_eq!(golden.sections[0].body, "a\n\nb\n");
    }

    #[test]
    fn mistakes_name_the_line() {
        let unknown = Golden::parse("-- run\nx\n-- ouptut\n").unwrap_err();
        assert!(unknown.starts_with("line 3: no section is called `ouptut`"));
        let argument = Golden::parse("-- run x\n").unwrap_err();
        assert_eq!(argument, "line 1: `-- run` takes no argument");
        assert!(Golden::parse("nothing\n").is_err());
    }
}
