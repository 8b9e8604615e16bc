//! The report on a family.

use tamis_embed::Family;
use tamis_embed::family::FamilyProgram;
use tamis_policy::matrix::Matrix;
use tamis_report::entry::{arches, insns};
use tamis_report::precompile::{
    ConfigurationEntry, FilterEntry, OptionEntry, PatchEntry, PrecompileReport, SizesEntry,
    VariableEntry,
};

/// Makes the report; filters have instructions, or the names of these files.
pub(super) fn report(
    name: &str,
    matrix: &Matrix,
    family: &Family,
    files: Option<&[String]>,
) -> PrecompileReport {
    let value =
        |option: usize, value: usize| matrix.options[option].values[value].name.value.clone();
    let options = matrix.options.iter().enumerate();
    let options = options.map(|(index, option)| OptionEntry {
        name: option.name.value.clone(),
        values: (0..option.values.len())
            .map(|own| value(index, own))
            .collect(),
    });
    let variables = family.variables.iter().map(|variable| VariableEntry {
        name: variable.name.to_string(),
        element: variable.element,
        width: variable.width.name(),
    });
    let filters = family.programs.iter().enumerate();
    let filters = filters.map(|(index, own)| FilterEntry {
        length_insns: own.program.len(),
        file: files.map(|files| files[index].clone()),
        insns: files.is_none().then(|| insns(own.program.insns())),
        patches: patches(own),
    });
    let configurations = matrix.combinations().filter_map(|values| {
        let member = family.member(matrix, &values)?;
        let ranges = family.ranges[member.ranges].iter();
        Some(ConfigurationEntry {
            values: values
                .iter()
                .enumerate()
                .map(|(option, own)| value(option, *own))
                .collect(),
            filter: member.program,
            ranges: ranges.map(|(first, last)| [*first, *last]).collect(),
        })
    });
    let sizes = family.sizes();
    PrecompileReport {
        matrix: name.to_owned(),
        arches: arches(&family.archs),
        options: options.collect(),
        variables: variables.collect(),
        sizes: SizesEntry {
            separate_bytes: sizes.separate_bytes,
            distinct_bytes: sizes.distinct_bytes,
            shared_bytes: sizes.shared_bytes,
        },
        filters: filters.collect(),
        configurations: configurations.collect(),
    }
}

fn patches(own: &FamilyProgram) -> Vec<PatchEntry> {
    let entry = |(insn, half): &(u16, u8)| PatchEntry {
        insn: *insn,
        variable: half / 2,
        half: ["low", "high"][usize::from(half % 2)],
    };
    own.patches.iter().map(entry).collect()
}
