//! What there is to say of a family: for a person, for programs, and what looks like a mistake.

use std::fmt::Write;

use serde::Serialize;
use tamis_policy::matrix::Matrix;
use tamis_report::entry::{InsnEntry, insns};

use tamis_embed::family::assemble::Assembled;

/// The document for programs, and the index of a folder of filters.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    schema: &'static str,
    matrix: &'a str,
    arches: Vec<&'static str>,
    options: Vec<OptionEntry<'a>>,
    variables: Vec<VariableEntry<'a>>,
    sizes: SizesEntry,
    filters: Vec<FilterEntry>,
    configurations: Vec<ConfigurationEntry<'a>>,
}

/// What the document calls itself.
pub(super) const SCHEMA: &str = "tamis.precompile/1";

#[derive(Serialize)]
struct OptionEntry<'a> {
    name: &'a str,
    values: Vec<&'a str>,
}

#[derive(Serialize)]
struct VariableEntry<'a> {
    name: &'a str,
    element: Option<u32>,
    width: &'static str,
}

#[derive(Serialize)]
struct SizesEntry {
    separate_bytes: usize,
    distinct_bytes: usize,
    shared_bytes: usize,
}

#[derive(Serialize)]
struct FilterEntry {
    length_insns: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insns: Option<Vec<InsnEntry>>,
    patches: Vec<PatchEntry>,
}

#[derive(Serialize)]
struct PatchEntry {
    insn: u16,
    variable: u8,
    half: &'static str,
}

#[derive(Serialize)]
struct ConfigurationEntry<'a> {
    values: Vec<&'a str>,
    filter: usize,
    ranges: Vec<[u64; 2]>,
}

/// The document; filters have instructions, or files by these names.
pub(super) fn document<'a>(
    name: &'a str,
    matrix: &'a Matrix,
    family: &'a Assembled,
    files: Option<&[String]>,
) -> Document<'a> {
    let options = matrix.options.iter().map(|option| OptionEntry {
        name: &option.name.value,
        values: option
            .values
            .iter()
            .map(|value| value.name.value.as_str())
            .collect(),
    });
    let variables = family.variables.iter().map(|variable| VariableEntry {
        name: &variable.name,
        element: variable.element,
        width: variable.width.name(),
    });
    let filters = family
        .programs
        .iter()
        .enumerate()
        .map(|(index, program)| FilterEntry {
            length_insns: program.program.len(),
            file: files.map(|files| files[index].clone()),
            insns: files.is_none().then(|| insns(&program.program)),
            patches: program
                .patches
                .iter()
                .map(|(insn, half)| PatchEntry {
                    insn: *insn,
                    variable: half / 2,
                    half: ["low", "high"][usize::from(half % 2)],
                })
                .collect(),
        });
    let members = matrix.combinations().filter_map(|values| {
        let member = family.member(matrix, &values)?;
        let named = matrix.options.iter().zip(&values);
        Some(ConfigurationEntry {
            values: named
                .map(|(option, value)| option.values[*value].name.value.as_str())
                .collect(),
            filter: member.program,
            ranges: family.ranges[member.ranges]
                .iter()
                .map(|(first, last)| [*first, *last])
                .collect(),
        })
    });
    Document {
        schema: SCHEMA,
        matrix: name,
        arches: family.archs.iter().map(|arch| arch.name()).collect(),
        options: options.collect(),
        variables: variables.collect(),
        sizes: SizesEntry {
            separate_bytes: family.sizes.separate_bytes,
            distinct_bytes: family.sizes.distinct_bytes,
            shared_bytes: family.sizes.shared_bytes,
        },
        filters: filters.collect(),
        configurations: members.collect(),
    }
}

/// The figures, for a person.
pub(super) fn summary(name: &str, matrix: &Matrix, family: &Assembled) -> String {
    let combinations = family.members.iter().flatten().count();
    let lengths = || {
        family
            .members
            .iter()
            .flatten()
            .map(|own| family.programs[own.program].program.len())
    };
    let (least, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
    let mean = lengths().sum::<usize>() as f64 / combinations.max(1) as f64;
    let excluded = match family.members.len() - combinations {
        0 => String::new(),
        excluded => format!(" ({excluded} left out)"),
    };
    let sizes = family.sizes;
    let share = |bytes: usize| 100.0 * bytes as f64 / sizes.separate_bytes.max(1) as f64;
    let mut text = format!(
        "{name}: {} of {}{excluded}, {}, proved equivalent to the policy\n",
        counted(combinations, "combination"),
        counted(matrix.options.len(), "option"),
        counted(family.programs.len(), "different filter"),
    );
    let _ = writeln!(
        text,
        "  instructions    {least} to {most}, {mean:.1} on average"
    );
    let rows = [
        ("one by one", sizes.separate_bytes),
        ("equal ones once", sizes.distinct_bytes),
        ("parts shared", sizes.shared_bytes),
    ];
    for (what, bytes) in rows {
        let _ = writeln!(text, "  {what:<15} {bytes} bytes ({:.0} %)", share(bytes));
    }
    text
}

/// A line for each combination.
pub(super) fn table(matrix: &Matrix, family: &Assembled) -> String {
    let mut firsts: Vec<Option<String>> = vec![None; family.programs.len()];
    let mut rows = Vec::new();
    for values in matrix.combinations() {
        let Some(member) = family.member(matrix, &values) else {
            continue;
        };
        let title = matrix.title(&values);
        let about = match &firsts[member.program] {
            Some(first) => format!("as {first}"),
            None => counted(family.programs[member.program].program.len(), "instruction"),
        };
        firsts[member.program].get_or_insert_with(|| title.clone());
        rows.push((title, about));
    }
    let width = rows.iter().map(|(title, _)| title.len()).max().unwrap_or(0);
    rows.iter()
        .map(|(title, about)| format!("  {title:<width$}  {about}\n"))
        .collect()
}

fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}
