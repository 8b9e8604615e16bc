//! Reading one side of a comparison, or the filters of a stack.

use tamis_bpf::{MixedEndian, Program, Stack};
use tamis_session::{Loaded, NamedProgram, Side, files};

use super::load::LoadArgs;
use super::{Failure, Global};

/// Reads what an argument names: a file, a list of them with commas, or a folder of programs. Warnings go to
/// standard error.
pub(crate) fn read(argument: &str, load: &LoadArgs, global: &Global) -> Result<Side, Failure> {
    let (paths, is_stack) = files::stack_paths(argument)?;
    let filters: Result<Vec<Loaded>, Failure> = paths
        .iter()
        .map(|path| load.load_among(path, global))
        .collect();
    Ok(Side::new(argument, filters?, is_stack))
}

/// Programs as the filters of one task, the oldest first.
pub(crate) fn stack(filters: impl IntoIterator<Item = NamedProgram>) -> Result<Stack, Failure> {
    let filters = filters.into_iter().map(|raw| (raw.name, raw.program));
    let (names, programs): (Vec<String>, Vec<Program>) = filters.unzip();
    Stack::new(programs).map_err(|MixedEndian { filter }| {
        let name = &names[filter];
        Failure::usage(
            format!("{name} is for machines of another byte order than the filters before it"),
            "filters of one task run on one machine; select it with `--arch`",
        )
    })
}
