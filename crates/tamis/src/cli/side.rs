//! Reading one side of a comparison, or the filters of a stack.

use tamis_session::{Loaded, Side, files};

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
