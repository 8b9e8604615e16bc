//! The filters of a family as source code: one for each combination of a policy's options.
//!
//! The text has a type for each option, a structure of them, and a function that looks up the filter of a
//! combination, assembles it and binds its variables. It consists of tables and loops over them, the same in every
//! language: combinations are numbered as in [`Family::members`], the programs are [stored together](share), and
//! values are compared with the ranges of a combination. Each language is one file beside this one;
//! [`assemble`] makes the family of a matrix from its filters.

pub mod assemble;
pub(super) mod c;
pub(super) mod go;
pub(super) mod rust;
pub mod share;

use tamis_abi::{Arch, Endian};
use tamis_bpf::Program;
use tamis_policy::matrix::OptionAxis;
use tamis_rules::Variable;

use self::share::{COUNT_BITS, FROM_END_BITS, Shared};
use super::{Field, fill, in_comment, name};

/// The table entry of a combination without a filter.
const EXCLUDED: u16 = u16::MAX;

/// The number of numbers on a line.
const NUMBERS_A_LINE: usize = 16;

/// The input of a text.
#[derive(Debug)]
pub struct Family<'a> {
    /// The identifier given by `--name` or by the matrix.
    pub name: &'a str,
    /// The name of the matrix in the text.
    pub matrix: &'a str,
    /// The architectures that the filters have rules for.
    pub archs: &'a [Arch],
    /// The byte order of their machines.
    pub endian: Endian,
    /// The options.
    pub options: &'a [OptionAxis],
    /// The variables of all filters.
    pub variables: &'a [Variable],
    /// The indices of each combination; `None` if it is excluded.
    pub members: &'a [Option<Member>],
    /// The permitted values by variable, for the members that refer to them.
    pub ranges: &'a [Vec<(u64, u64)>],
    /// The distinct filters.
    pub programs: &'a [FamilyProgram],
    /// Their instructions.
    pub shared: &'a Shared,
}

/// The filter and the ranges of a combination, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The filter.
    pub program: usize,
    /// The ranges of its variables.
    pub ranges: usize,
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FamilyProgram {
    /// The instructions, with 0 in the places of variables.
    pub program: Program,
    /// The places of values: the instruction, and the index of the half among the halves of the family's variables,
    /// two each.
    pub patches: Vec<(u16, u8)>,
}

/// The names of an option and its values in the text.
struct Key<'a> {
    option: &'a OptionAxis,
    /// The member of the structure.
    field: String,
    /// The type.
    kind: String,
    /// The values.
    values: Vec<String>,
}

impl Family<'_> {
    /// The first lines of every text, to be made a comment.
    fn about(&self) -> Vec<String> {
        let archs: Vec<&str> = self.archs.iter().map(|arch| arch.name()).collect();
        let byte_order = match self.endian {
            Endian::Little => "little-endian",
            Endian::Big => "big-endian",
        };
        let proof = match self.variables {
            [] => "Each is proved to answer every call as its policy says.",
            _ => {
                "Each is proved to answer every call as its policy says, for all values of its variables."
            }
        };
        let combinations = self.members.iter().flatten().count();
        let filters = self.programs.len();
        vec![
            format!("{combinations} combinations of options, {filters} different filters."),
            format!("For {}; {byte_order} machines.", archs.join(", ")),
            proof.to_owned(),
        ]
    }

    /// The length of the longest filter.
    fn max_insns(&self) -> usize {
        let lengths = self.programs.iter().map(|program| program.program.len());
        lengths.max().unwrap_or(0)
    }

    /// Whether any filter needs the value of a variable.
    fn has_patches(&self) -> bool {
        self.programs
            .iter()
            .any(|program| !program.patches.is_empty())
    }

    /// The ends of the pieces, instructions and patches of each filter in the concatenation of all filters, after a
    /// first entry of zeros.
    fn bounds(&self) -> Vec<[usize; 3]> {
        let (mut insns, mut patches) = (0, 0);
        let ends = self
            .programs
            .iter()
            .zip(&self.shared.ends)
            .map(|(program, pieces)| {
                insns += program.program.len();
                patches += program.patches.len();
                [*pieces, insns, patches]
            });
        [[0; 3]].into_iter().chain(ends).collect()
    }

    /// The indices of the filter and of the ranges of each combination.
    fn entries(&self) -> Vec<(u16, u16)> {
        let entry = |member: &Option<Member>| match member {
            Some(member) => (member.program as u16, member.ranges as u16),
            None => (EXCLUDED, 0),
        };
        self.members.iter().map(entry).collect()
    }

    /// The places of all variables in the structure of values, in order.
    fn places(&self, fields: &[Field]) -> Vec<String> {
        let places = fields.iter().flat_map(|field| {
            let name = &field.identifier;
            match field.count {
                None => vec![name.clone()],
                Some(count) => (0..count).map(|index| format!("{name}[{index}]")).collect(),
            }
        });
        places.collect()
    }

    /// The places of all variables, converted to 64 bits where they are narrower.
    fn wide_places(&self, fields: &[Field], converted: impl Fn(&str) -> String) -> Vec<String> {
        let places = self.places(fields).into_iter().zip(self.variables);
        let wide = |(place, variable): (String, &Variable)| {
            let place = format!("values.{place}");
            match variable.width.max() == u64::MAX {
                true => format!("{place},"),
                false => format!("{},", converted(&place)),
            }
        };
        places.map(wide).collect()
    }

    /// The names of variables in errors, as strings in the syntax of all languages.
    fn titles(&self) -> impl Iterator<Item = String> {
        let titles = self.variables.iter().map(Variable::title);
        titles.map(|title| format!("{title:?},"))
    }

    /// The stretches of instructions, as the rows of a table.
    fn pieces(&self, before: &str) -> String {
        let pieces = self.shared.pieces.iter();
        rows(before, pieces.map(|piece| format!("{piece:#x},")))
    }

    /// The values that are the same in every language.
    fn common_values(&self) -> Vec<(&'static str, String)> {
        let for_values = only_if(!self.variables.is_empty(), " for these values");
        vec![
            ("matrix", in_comment(self.matrix)),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("bound", for_values),
            ("excluded", EXCLUDED.to_string()),
            ("count_bits", COUNT_BITS.to_string()),
            ("count_mask", ((1 << COUNT_BITS) - 1).to_string()),
            ("jt_bit", FROM_END_BITS[0].to_string()),
            ("jf_bit", FROM_END_BITS[1].to_string()),
            ("max_insns", self.max_insns().to_string()),
        ]
    }

    /// The names of the options and values, distinct within their scopes.
    fn keys(
        &self,
        names: Naming<'_>,
        field: impl Fn(&str) -> String,
        kind: impl Fn(&str) -> String,
        value: impl Fn(&str, &str) -> String,
    ) -> Vec<Key<'_>> {
        let owned =
            |names: &[&str]| -> Vec<String> { names.iter().map(|&own| own.into()).collect() };
        let mut fields: Vec<String> = Vec::new();
        let mut kinds = owned(names.taken_kinds);
        let mut constants = owned(names.taken_constants);
        let mut keys = Vec::new();
        for option in self.options {
            let name = plain(&option.name.value);
            let field = free_in(&mut fields, field(&name));
            let scope = match names.scope {
                Scope::One => &mut constants,
                Scope::Apart | Scope::Nested => &mut kinds,
            };
            let kind = free_in(scope, kind(&name));
            if names.scope == Scope::Nested {
                constants = owned(names.taken_constants);
            }
            // A switch uses the constants of the language.
            let own = option.values.iter().filter(|_| !option.is_switch());
            let values =
                own.map(|own| free_in(&mut constants, value(&kind, &plain(&own.name.value))));
            let values = values.collect();
            keys.push(Key {
                option,
                field,
                kind,
                values,
            });
        }
        keys
    }
}

/// The parts of a text; `@key@` is replaced by a value of the family.
struct Parts {
    /// The beginning.
    head: &'static str,
    /// The types and tables of values, for families with variables.
    values: &'static str,
    /// The table of places of values, for families with any.
    patches: &'static str,
    /// The function that makes a filter, with `@checks@` and `@store@`.
    bind: &'static str,
    /// Its comparison of values with their ranges, for families with variables.
    checks: &'static str,
    /// The code that stores the values, for families with patches.
    store: &'static str,
    /// The function that installs a filter.
    install: &'static str,
}

impl Parts {
    /// The text of a family, with these values besides the [common](Family::common_values) ones.
    fn filled(&self, family: &Family<'_>, own: Vec<(&'static str, String)>) -> String {
        let with_variables = |part| {
            if family.variables.is_empty() {
                ""
            } else {
                part
            }
        };
        let with_patches = |part| if family.has_patches() { part } else { "" };
        let mut values = family.common_values();
        values.extend(own);
        for (name, part) in [
            ("checks", with_variables(self.checks)),
            ("store", with_patches(self.store)),
        ] {
            values.push((name, fill(part, &values)));
        }
        let parts = [
            self.head,
            with_variables(self.values),
            with_patches(self.patches),
            self.bind,
            self.install,
        ];
        parts.map(|part| fill(part, &values)).concat()
    }
}

/// The names that a language reserves.
#[derive(Clone, Copy)]
struct Naming<'n> {
    /// Names that types can't have.
    taken_kinds: &'n [&'n str],
    /// Names that constants can't have.
    taken_constants: &'n [&'n str],
    scope: Scope,
}

/// The scopes of the names of types and constants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All types in one scope, all constants in another.
    Apart,
    /// The constants of a type in a scope within it.
    Nested,
    /// Types and constants in one scope.
    One,
}

/// A name that is not taken; it is added to the taken ones.
fn free_in(taken: &mut Vec<String>, wanted: String) -> String {
    let free = name::free(wanted, |text| taken.iter().any(|own| own == text));
    taken.push(free.clone());
    free
}

impl Key<'_> {
    /// The indices of a switch's values for off and for on.
    fn switch(&self) -> Option<(usize, usize)> {
        let values = &self.option.values;
        let place = |name: &str| values.iter().position(|value| value.name.value == name);
        match self.option.is_switch() {
            true => Some((place("false")?, place("true")?)),
            false => None,
        }
    }
}

/// The text if a condition holds, else an empty text.
fn only_if(is_so: bool, text: &str) -> String {
    if is_so {
        text.to_owned()
    } else {
        String::new()
    }
}

/// A name with `_` instead of `-`.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// A name in camel case instead of with `_`.
fn camel(name: &str) -> String {
    let capitalised = |part: &str| {
        let (first, rest) = part.split_at(part.len().min(1));
        first.to_ascii_uppercase() + rest
    };
    name.split('_').map(capitalised).collect()
}

/// Entries of a table, several on a line.
fn rows(before: &str, entries: impl IntoIterator<Item = String>) -> String {
    let entries: Vec<String> = entries.into_iter().collect();
    let lines = entries
        .chunks(NUMBERS_A_LINE)
        .map(|line| format!("{before}{}\n", line.join(" ")));
    lines.collect()
}
