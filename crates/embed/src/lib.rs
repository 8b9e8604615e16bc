//! Compiled filters as source code of the programs that install them.
//!
//! A program with an embedded filter needs neither tamis nor a compiler at run time: it copies the instructions,
//! stores the values of the policy's variables in their places, and installs the result. [`Source`] is the input of a
//! text, and each language is one file that writes it and one entry of [`ALL`]; to add a language, copy the file of
//! the most similar one. Filters are proved before; this crate does not interpret their instructions.
#![forbid(unsafe_code)]

pub mod annotation;
pub mod build;
mod c;
pub mod digest;
pub mod family;
mod file;
mod go;
pub mod name;
mod rust;

use tamis_abi::{Arch, Endian, Word, syscall};
use tamis_bpf::{Insn, disasm};
use tamis_compiler::Compiled;
use tamis_rules::{Variable, VariableWidth};

pub use file::{EmbedError, Embedded, PolicyFile};
pub use rust::LANGUAGE as RUST;
pub use tamis_policy::front_end::ParseOptions;
pub use tamis_session::Assignment;

use self::family::Family;

/// A target language of filters.
#[derive(Debug)]
pub struct Language {
    /// The name for `--emit`.
    pub name: &'static str,
    /// The description for the help.
    pub about: &'static str,
    /// The item named by `--name`; `None` if there is none.
    pub named: Option<&'static str>,
    /// Identifiers that are not available, because they are reserved or used by the text.
    pub reserved: &'static [&'static str],
    /// The condition that the target machine has the architecture, in the language's syntax; `None` if the language
    /// does not support it.
    pub target: fn(Arch) -> Option<&'static str>,
    write: fn(&Source<'_>, &[Target]) -> String,
    write_family: fn(&Family<'_>, &[Target]) -> String,
}

/// The languages, in the order of the help.
pub static ALL: [&Language; 3] = [&c::LANGUAGE, &rust::LANGUAGE, &go::LANGUAGE];

/// The input of a text.
pub struct Source<'a> {
    /// The identifier given by `--name`.
    pub name: &'a str,
    /// The name of the policy in the text.
    pub policy: &'a str,
    /// The architectures that the policy has rules for.
    pub archs: &'a [Arch],
    /// The instructions, with the places of the variables.
    pub filter: &'a Compiled,
}

/// A machine that the text can be built for.
struct Target {
    /// The condition for it, in the language's syntax.
    condition: &'static str,
    /// The number of seccomp(2).
    seccomp_nr: u32,
}

/// A member of the structure of values: a variable, or a set of them.
struct Field {
    identifier: String,
    name: String,
    width: VariableWidth,
    /// The number of values of a set.
    count: Option<usize>,
    range: (u64, u64),
}

/// A variable, with the expression that reads it.
struct Value<'a> {
    /// `fd`, or `fds[2]`, with the field's identifier.
    place: String,
    variable: &'a Variable,
}

impl Language {
    /// The text; `None` if the language supports none of the policy's architectures.
    pub fn text(&self, source: &Source<'_>) -> Option<String> {
        let targets = self.targets(source.archs);
        (!targets.is_empty()).then(|| (self.write)(source, &targets))
    }

    /// The text for the filters of a family.
    pub fn family_text(&self, family: &Family<'_>) -> Option<String> {
        let targets = self.targets(family.archs);
        (!targets.is_empty()).then(|| (self.write_family)(family, &targets))
    }

    /// The targets for these architectures that the language supports.
    fn targets(&self, archs: &[Arch]) -> Vec<Target> {
        let targets = archs.iter().filter_map(|arch| {
            Some(Target {
                condition: (self.target)(*arch)?,
                seccomp_nr: syscall::number(*arch, "seccomp")?.0,
            })
        });
        targets.collect()
    }
}

impl Source<'_> {
    /// The first lines of every text, to be made a comment.
    fn about(&self) -> Vec<String> {
        let archs: Vec<&str> = self.archs.iter().map(|arch| arch.name()).collect();
        let proof = match self.filter.variables() {
            [] => "Proved to answer every call as the policy says.",
            _ => "Proved to answer every call as the policy says, for all values of its variables.",
        };
        vec![
            format!("For {}; {} machines.", archs.join(", "), self.byte_order()),
            proof.to_owned(),
        ]
    }

    /// The name of the policy in a comment.
    fn policy_in_comment(&self) -> String {
        in_comment(self.policy)
    }

    fn byte_order(&self) -> &'static str {
        match self.filter.endian() {
            Endian::Little => "little-endian",
            Endian::Big => "big-endian",
        }
    }

    /// The instructions, one per line: in the language's syntax, with a column of comments that explain them.
    fn listing(&self, entry: fn(Insn) -> String, comment: fn(&str) -> String) -> Vec<String> {
        let insns = self.filter.template().unbound().insns();
        let entries: Vec<String> = insns.iter().copied().map(entry).collect();
        let width = entries.iter().map(String::len).max().unwrap_or(0);
        let lines = entries.iter().zip(self.notes());
        lines
            .map(|(entry, note)| format!("{entry:width$} {}", comment(&note)))
            .collect()
    }

    /// The explanation of each instruction.
    fn notes(&self) -> Vec<String> {
        let template = self.filter.template();
        let text = disasm::disassemble(template.unbound(), disasm::Style::Commented);
        let on_one_space = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut notes: Vec<String> = text.lines().map(on_one_space).collect();
        for patch in template.patches() {
            let half = patch.word.index() - Word::COUNT;
            let title = self.filter.variables()[half / 2].title();
            let part = [".low", ".high"][half % 2];
            let note = &mut notes[patch.pc.0];
            let end = note.find(';').unwrap_or(note.len());
            *note = format!("{} ; {title}{part}", note[..end].trim_end());
        }
        notes
    }

    /// The places of values: the instruction, and the index of its constant among the [`words`](Self::words).
    fn patches(&self) -> impl Iterator<Item = (usize, usize)> {
        let patches = self.filter.template().patches().iter();
        patches.map(|patch| (patch.pc.0, patch.word.index() - Word::COUNT))
    }

    /// The members of the structure of values.
    fn fields(&self, reserved: &[&str], style: fn(&str) -> String) -> Vec<Field> {
        fields_of(self.filter.variables(), reserved, style)
    }

    /// All variables, with their places among the fields.
    fn values<'s>(&'s self, fields: &'s [Field]) -> impl Iterator<Item = Value<'s>> {
        self.filter.variables().iter().filter_map(|variable| {
            let mut named = fields.iter().filter(|field| field.name == *variable.name);
            let identifier = &named.next()?.identifier;
            let place = match variable.element {
                None => identifier.clone(),
                Some(element) => format!("{identifier}[{element}]"),
            };
            Some(Value { place, variable })
        })
    }

    /// The words of all variables, two each, from the expressions for 32-bit and for 64-bit variables.
    fn words(
        &self,
        fields: &[Field],
        narrow: impl Fn(&str) -> String,
        wide: impl Fn(&str) -> String,
    ) -> Vec<String> {
        let words = self.values(fields).map(|value| match value.variable.width {
            VariableWidth::U32 => narrow(&value.place),
            VariableWidth::U64 => wide(&value.place),
        });
        words.collect()
    }
}

/// The members of a structure of values for these variables.
fn fields_of(variables: &[Variable], reserved: &[&str], style: fn(&str) -> String) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    for variable in variables {
        if let Some(field) = fields.iter_mut().find(|field| field.name == *variable.name) {
            field.count = field.count.map(|count| count + 1);
            continue;
        }
        let taken = |text: &str| {
            reserved.contains(&text) || fields.iter().any(|other| other.identifier == text)
        };
        fields.push(Field {
            identifier: name::free(style(&variable.name), taken),
            name: variable.name.to_string(),
            width: variable.width,
            count: variable.element.map(|_| 1),
            range: variable.range,
        });
    }
    fields
}

impl Field {
    /// The range, unless it is that of the whole width.
    fn narrow_range(&self) -> Option<(u64, u64)> {
        let is_all = self.range == (0, self.width.max());
        (!is_all).then_some(self.range)
    }
}

impl Value<'_> {
    /// The condition that the value is out of range; `None` if that is impossible. `read` is the expression that
    /// reads it, `suffix` follows numbers.
    fn out_of_range(&self, read: &str, suffix: &str) -> Option<String> {
        let (first, last) = self.variable.range;
        let below = (first > 0).then(|| format!("{read} < {first}{suffix}"));
        let above = (last < self.variable.width.max()).then(|| format!("{read} > {last}{suffix}"));
        match (below, above) {
            (Some(below), Some(above)) => Some(format!("{below} || {above}")),
            (below, above) => below.or(above),
        }
    }
}

/// A text without line breaks and ends of comments.
fn in_comment(text: &str) -> String {
    let is_harmless = |c: &char| !c.is_control() && !matches!(c, '*' | '\u{2028}' | '\u{2029}');
    text.chars()
        .map(|c| if is_harmless(&c) { c } else { '?' })
        .collect()
}

/// A text with `@key@` replaced by the values.
///
/// # Panics
/// If the text has a key without a value, which is a bug in the text.
fn fill(text: &str, values: &[(&str, String)]) -> String {
    let value = |key: &str| {
        let found = values.iter().find(|(name, _)| *name == key);
        &*found.unwrap_or_else(|| panic!("`@{key}@` has no value")).1
    };
    let pieces = text.split('@').enumerate();
    pieces
        .map(|(index, piece)| match index % 2 {
            0 => piece,
            _ => value(piece),
        })
        .collect()
}

/// Lines, each with a prefix.
fn indented(before: &str, lines: impl IntoIterator<Item = String>) -> String {
    let lines = lines.into_iter().map(|line| format!("{before}{line}\n"));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_read_again() {
        let values = [("a", "@b@".to_owned()), ("b", "c".to_owned())];
        assert_eq!(fill("x @a@ @b@", &values), "x @b@ c");
    }
}
