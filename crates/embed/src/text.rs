//! The text of a family in any language.
//!
//! A text is a [template](crate::template) of its language, filled in with tables, types and expressions in the
//! language's [`Syntax`]. Combinations are numbered as in [`Family::members`], programs are stored
//! [together](crate::family::share), and values are compared with the ranges of a combination. A family without
//! options has one filter, which is listed with comments.

use tamis_abi::Endian;
use tamis_bpf::{Insn, disasm};
use tamis_policy::matrix::OptionAxis;
use tamis_rules::{Variable, VariableWidth};

use crate::family::share::{COUNT_BITS, FROM_END_BITS, Shared};
use crate::family::{Family, FamilyProgram};
use crate::template::Values;
use crate::{Target, name};

/// The table entry of a combination without a filter.
const EXCLUDED: u16 = u16::MAX;

/// The number of numbers, and of instructions, on a line.
const NUMBERS_A_LINE: usize = 16;
const INSNS_A_LINE: usize = 3;

/// The syntax of a language.
pub(crate) trait Syntax {
    /// The text with its keys.
    const TEMPLATE: &'static str;
    /// Identifiers that fields of structures cannot have.
    const RESERVED: &'static [&'static str];

    /// The disjunction of the conditions of targets.
    fn any_of(conditions: &[&str]) -> String;

    /// The declarations of the number of seccomp(2), for languages whose libraries don't have it.
    fn seccomp_numbers(_targets: &[Target]) -> Vec<String> {
        Vec::new()
    }

    /// An instruction as an entry of a table.
    fn insn(insn: Insn) -> String;

    /// A comment at the end of a line.
    fn comment(text: &str) -> String;

    /// Numbers of different meaning as an entry of a table.
    fn tuple(numbers: &[usize]) -> String;

    /// Numbers of one type as an entry of a table.
    fn array(numbers: &[usize]) -> String {
        Self::tuple(numbers)
    }

    /// The ranges of all variables as an entry of a table.
    fn ranges(ranges: &[(u64, u64)]) -> String;

    /// The name of a field.
    fn field_name(name: &str) -> String {
        name.to_owned()
    }

    /// The declaration of a field of the structure of values.
    fn field(field: &Field) -> String;

    /// The expression for a value as 64 bits.
    fn wide(value: &Value<'_>) -> String;

    /// The expressions for the halves of a value.
    fn halves(value: &Value<'_>) -> String;

    /// The comparison of a value with the only range of its variable; `None` if all values are permitted.
    fn check(value: &Value<'_>) -> Option<String>;

    /// The names of options and their values.
    fn naming(name: &str) -> Naming;

    /// The type of an option that is not a switch.
    fn option_type(key: &Key<'_>) -> String;

    /// The members of the structure of options.
    fn members(keys: &[Key<'_>]) -> Vec<String>;

    /// The statement that includes an option in the index of the combination.
    fn index(key: &Key<'_>) -> String;
}

/// The field of a variable, or of a set of them, in the structure of values.
pub(crate) struct Field {
    pub(crate) identifier: String,
    pub(crate) name: String,
    pub(crate) width: VariableWidth,
    /// The number of values of a set.
    pub(crate) count: Option<usize>,
    range: (u64, u64),
}

/// A variable, with its place in the structure of values.
pub(crate) struct Value<'a> {
    /// `fd`, or `fds[2]`, with the field's identifier.
    pub(crate) place: String,
    pub(crate) variable: &'a Variable,
}

/// The names of an option and its values in the text.
pub(crate) struct Key<'a> {
    pub(crate) option: &'a OptionAxis,
    /// The member of the structure.
    pub(crate) field: String,
    /// The type.
    pub(crate) kind: String,
    /// The values; none for a switch, which uses the constants of the language.
    pub(crate) values: Vec<String>,
}

/// The naming of options and their values.
pub(crate) struct Naming {
    /// The prefix of names, or the package.
    pub(crate) name: String,
    /// Names that types can't have.
    pub(crate) taken_types: Vec<String>,
    /// Names that constants can't have.
    pub(crate) taken_constants: Vec<String>,
    pub(crate) scope: Scope,
    /// The type of an option, from the prefix and the option.
    pub(crate) type_name: fn(&str, &str) -> String,
    /// The constant of a value, from the type and the value.
    pub(crate) constant: fn(&str, &str) -> String,
}

/// The scopes of the names of types and constants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All types in one scope, all constants in another.
    Separate,
    /// The constants of a type in a scope within it.
    Nested,
    /// Types and constants in one scope.
    Common,
}

/// Writes the text of a family.
pub(crate) fn write<S: Syntax>(family: &Family, name: &str, targets: &[Target]) -> String {
    let naming = S::naming(name);
    let is_family = !family.options.is_empty();
    let name = if is_family { &naming.name } else { name };
    let mut values = Values::default();
    values.set("input", in_comment(&family.input));
    values.set("version", env!("CARGO_PKG_VERSION"));
    values.set("name", name);
    values.set("NAME", name.to_ascii_uppercase());
    values.lines("about", about(family));
    let conditions: Vec<&str> = targets.iter().map(|target| target.condition).collect();
    values.set("targets", S::any_of(&conditions));
    values.lines("seccomp_numbers", S::seccomp_numbers(targets));
    let byte_order = byte_order(family.endian);
    values.set("byte_order", byte_order);
    values.set("BYTE_ORDER", byte_order.to_uppercase());
    set_options::<S>(&mut values, family, &naming);
    set_variables::<S>(&mut values, family);
    set_filters::<S>(&mut values, family);
    values.fill(S::TEMPLATE)
}

/// The first lines of every text, to be made a comment.
fn about(family: &Family) -> Vec<String> {
    let archs: Vec<&str> = family.archs.iter().map(|arch| arch.name()).collect();
    let byte_order = byte_order(family.endian);
    let mut lines = vec![format!(
        "For {}; {byte_order}-endian machines.",
        archs.join(", ")
    )];
    let (subject, whose) = match family.options.is_empty() {
        true => ("Proved", "the"),
        false => ("Each is proved", "its"),
    };
    let values = match family.variables.is_empty() {
        true => "",
        false => ", for all values of its variables",
    };
    lines.push(format!(
        "{subject} to answer every call as {whose} policy says{values}."
    ));
    if !family.options.is_empty() {
        let combinations = family.members.iter().flatten().count();
        let filters = family.programs.len();
        let counts =
            format!("{combinations} combinations of options, {filters} different filters.");
        lines.insert(0, counts);
    }
    lines
}

fn byte_order(endian: Endian) -> &'static str {
    match endian {
        Endian::Little => "little",
        Endian::Big => "big",
    }
}

/// Sets the types of options and the index of a combination.
fn set_options<S: Syntax>(values: &mut Values, family: &Family, naming: &Naming) {
    let keys = keys::<S>(&family.options, naming);
    let count = keys.len();
    values.set(
        "options",
        if count == 0 {
            String::new()
        } else {
            count.to_string()
        },
    );
    let choices = keys.iter().filter(|key| key.switch().is_none());
    values.lines(
        "option_types",
        choices.map(|key| S::option_type(key) + "\n"),
    );
    values.lines("config", S::members(&keys));
    values.lines("index", keys.iter().map(S::index));
}

/// Sets the structure of values, and what is compared and stored.
fn set_variables<S: Syntax>(values: &mut Values, family: &Family) {
    let variables = &family.variables;
    let count = variables.len();
    values.set(
        "variables",
        if count == 0 {
            String::new()
        } else {
            count.to_string()
        },
    );
    let fields = fields::<S>(variables);
    values.lines("fields", fields.iter().map(S::field));
    let bound: Vec<Value<'_>> = variables
        .iter()
        .filter_map(|variable| Value::new(variable, &fields))
        .collect();
    values.lines("places", bound.iter().map(S::wide));
    values.lines("halves", bound.iter().map(S::halves));
    values.lines("checks", bound.iter().filter_map(S::check));
    // A debug string of a title is a string literal of every language.
    let titles = variables.iter().map(Variable::title);
    values.lines("titles", titles.map(|title| format!("{title:?},")));
    values.lines(
        "ranges",
        family.ranges.iter().map(|ranges| S::ranges(ranges)),
    );
    values.set("ranges_len", family.ranges.len().to_string());
}

/// Sets the tables of instructions, pieces, combinations and patches.
fn set_filters<S: Syntax>(values: &mut Values, family: &Family) {
    let lengths = family.programs.iter().map(|program| program.program.len());
    values.set("max_insns", lengths.max().unwrap_or(0).to_string());
    let patches: Vec<String> = family
        .programs
        .iter()
        .flat_map(|program| &program.patches)
        .map(|(insn, half)| S::tuple(&[usize::from(*insn), usize::from(*half)]))
        .collect();
    values.set("patches_len", patches.len().to_string());
    match &family.shared {
        Some(shared) => {
            values.lines("patches", rows(NUMBERS_A_LINE, patches));
            set_shared::<S>(values, family, shared);
        }
        None => {
            values.lines("patches", patches);
            values.lines(
                "insns",
                listing::<S>(&family.programs[0], &family.variables),
            );
        }
    }
}

/// Sets the tables of programs that are stored together. A column is omitted if the text doesn't use it.
fn set_shared<S: Syntax>(values: &mut Values, family: &Family, shared: &Shared) {
    let insns = shared.insns.iter().copied().map(S::insn);
    values.set("insns_len", shared.insns.len().to_string());
    values.lines("insns", rows(INSNS_A_LINE, insns));
    let words = shared.words.as_deref().unwrap_or(&[]);
    values.set("words_len", words.len().to_string());
    values.lines(
        "words",
        rows(NUMBERS_A_LINE, words.iter().map(|word| format!("{word},"))),
    );
    let pieces = shared.pieces.iter().map(|piece| format!("{piece:#x},"));
    values.set("pieces_len", shared.pieces.len().to_string());
    values.lines("pieces", rows(NUMBERS_A_LINE, pieces));
    let has_patches = family
        .programs
        .iter()
        .any(|program| !program.patches.is_empty());
    let end_columns = if has_patches { 3 } else { 2 };
    let ends = ends(family, shared);
    values.set("ends_len", ends.len().to_string());
    values.lines(
        "ends",
        rows(
            NUMBERS_A_LINE,
            ends.iter().map(|end| S::array(&end[..end_columns])),
        ),
    );
    let member_columns = if family.variables.is_empty() { 1 } else { 2 };
    let members = family.members.iter().map(|member| match member {
        Some(member) => [member.program, member.ranges],
        None => [usize::from(EXCLUDED), 0],
    });
    let members = members.map(|member| S::tuple(&member[..member_columns]));
    values.set("members_len", family.members.len().to_string());
    values.lines("members", rows(NUMBERS_A_LINE, members));
    values.set("excluded", EXCLUDED.to_string());
    values.set("count_bits", COUNT_BITS.to_string());
    values.set("count_mask", ((1 << COUNT_BITS) - 1).to_string());
    values.set("jt_bit", FROM_END_BITS[0].to_string());
    values.set("jf_bit", FROM_END_BITS[1].to_string());
}

/// The ends of the pieces, instructions and patches of each filter in the concatenation of all filters, after a first
/// entry of zeros.
fn ends(family: &Family, shared: &Shared) -> Vec<[usize; 3]> {
    let mut ends = vec![[0; 3]];
    let (mut insns, mut patches) = (0, 0);
    for (program, pieces) in family.programs.iter().zip(&shared.ends) {
        insns += program.program.len();
        patches += program.patches.len();
        ends.push([*pieces, insns, patches]);
    }
    ends
}

/// Entries of a table, several on a line.
fn rows(entries_a_line: usize, entries: impl IntoIterator<Item = String>) -> Vec<String> {
    let entries: Vec<String> = entries.into_iter().collect();
    let lines = entries.chunks(entries_a_line);
    lines.map(|line| line.join(" ")).collect()
}

/// The instructions, one per line, with a column of comments that explain them.
fn listing<S: Syntax>(program: &FamilyProgram, variables: &[Variable]) -> Vec<String> {
    let insns = program.program.insns();
    let entries: Vec<String> = insns.iter().copied().map(S::insn).collect();
    let width = entries.iter().map(String::len).max().unwrap_or(0);
    let lines = entries.iter().zip(comments(program, variables));
    let line = |(entry, comment): (_, String)| format!("{entry:width$} {}", S::comment(&comment));
    lines.map(line).collect()
}

/// The explanation of each instruction.
fn comments(program: &FamilyProgram, variables: &[Variable]) -> Vec<String> {
    let text = disasm::disassemble(&program.program, disasm::Style::Commented);
    let on_one_space = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut comments: Vec<String> = text.lines().map(on_one_space).collect();
    for (insn, half) in &program.patches {
        let half = usize::from(*half);
        let title = variables[half / 2].title();
        let part = [".low", ".high"][half % 2];
        let comment = &mut comments[usize::from(*insn)];
        let end = comment.find(';').unwrap_or(comment.len());
        *comment = format!("{} ; {title}{part}", comment[..end].trim_end());
    }
    comments
}

/// The fields of a structure of values.
fn fields<S: Syntax>(variables: &[Variable]) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    for variable in variables {
        if let Some(field) = fields.iter_mut().find(|field| field.name == *variable.name) {
            field.count = field.count.map(|count| count + 1);
            continue;
        }
        let is_taken = |text: &str| {
            S::RESERVED.contains(&text) || fields.iter().any(|other| other.identifier == text)
        };
        fields.push(Field {
            identifier: name::free(S::field_name(&variable.name), is_taken),
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
    pub(crate) fn narrow_range(&self) -> Option<(u64, u64)> {
        let is_all = self.range == (0, self.width.max());
        (!is_all).then_some(self.range)
    }
}

impl<'a> Value<'a> {
    fn new(variable: &'a Variable, fields: &[Field]) -> Option<Value<'a>> {
        let field = fields.iter().find(|field| field.name == *variable.name)?;
        let place = match variable.element {
            None => field.identifier.clone(),
            Some(element) => format!("{}[{element}]", field.identifier),
        };
        Some(Value { place, variable })
    }

    /// The condition that the value is out of range; `None` if that is impossible. `read` is the expression for the
    /// value, `suffix` follows numbers.
    pub(crate) fn out_of_range(&self, read: &str, suffix: &str) -> Option<String> {
        let (first, last) = self.variable.range;
        let below = (first > 0).then(|| format!("{read} < {first}{suffix}"));
        let above = (last < self.variable.width.max()).then(|| format!("{read} > {last}{suffix}"));
        match (below, above) {
            (Some(below), Some(above)) => Some(format!("{below} || {above}")),
            (below, above) => below.or(above),
        }
    }
}

/// The names of options and their values, each unique in its scope.
fn keys<'a, S: Syntax>(options: &'a [OptionAxis], naming: &Naming) -> Vec<Key<'a>> {
    let mut fields: Vec<String> = Vec::new();
    let mut types = naming.taken_types.clone();
    let mut constants = naming.taken_constants.clone();
    let mut keys = Vec::new();
    for option in options {
        let name = option.name.value.replace('-', "_");
        let field = name::free(S::field_name(&name), |text| S::RESERVED.contains(&text));
        let scope = match naming.scope {
            Scope::Common => &mut constants,
            Scope::Separate | Scope::Nested => &mut types,
        };
        let kind = unique_in(scope, (naming.type_name)(&naming.name, &name));
        if naming.scope == Scope::Nested {
            constants.clone_from(&naming.taken_constants);
        }
        let values = option.values.iter().filter(|_| !option.is_switch());
        let values = values.map(|value| {
            let name = value.name.value.replace('-', "_");
            unique_in(&mut constants, (naming.constant)(&kind, &name))
        });
        let values = values.collect();
        keys.push(Key {
            option,
            field: unique_in(&mut fields, field),
            kind,
            values,
        });
    }
    keys
}

/// Adds a name to a scope, with `_` at its end if the scope has it already.
fn unique_in(scope: &mut Vec<String>, wanted: String) -> String {
    let unique = name::free(wanted, |text| scope.iter().any(|own| own == text));
    scope.push(unique.clone());
    unique
}

impl Key<'_> {
    /// The indices of a switch's values for off and for on.
    pub(crate) fn switch(&self) -> Option<(usize, usize)> {
        let values = &self.option.values;
        let place = |name: &str| values.iter().position(|value| value.name.value == name);
        match self.option.is_switch() {
            true => Some((place("false")?, place("true")?)),
            false => None,
        }
    }
}

/// A name in camel case instead of with `_`.
pub(crate) fn camel(name: &str) -> String {
    let capitalised = |part: &str| {
        let (first, rest) = part.split_at(part.len().min(1));
        first.to_ascii_uppercase() + rest
    };
    name.split('_').map(capitalised).collect()
}

/// A text without line breaks and ends of comments.
fn in_comment(text: &str) -> String {
    let is_harmless = |c: &char| !c.is_control() && !matches!(c, '*' | '\u{2028}' | '\u{2029}');
    text.chars()
        .map(|c| if is_harmless(&c) { c } else { '?' })
        .collect()
}
