//! Loading the policy of one combination of a matrix.

use std::path::Path;

use tamis_policy::matrix::{Matrix, Settings};

use super::LoadArgs;

impl LoadArgs {
    /// The same with what a matrix says for all its combinations; `folder` is where it lies. What the command line
    /// says counts more.
    pub(crate) fn for_matrix(&self, matrix: &Matrix, folder: &Path) -> LoadArgs {
        let mut load = self.for_embedded_filter();
        if load.arches.is_empty() {
            load.arches.clone_from(&matrix.arches);
        }
        let own = matrix.include_dirs.iter();
        load.include_dirs
            .extend(own.map(|path| folder.join(&path.value)));
        load
    }

    /// The same with what a combination sets.
    pub(crate) fn for_combination(&self, settings: &Settings) -> LoadArgs {
        let mut load = self.clone();
        if let Some(capabilities) = &settings.capabilities {
            load.capabilities.clone_from(&capabilities.value);
            load.has_no_capabilities = capabilities.value.is_empty();
        }
        if let Some(thread) = &settings.thread {
            load.thread = Some(thread.value.clone());
        }
        if let Some(kernel) = &settings.kernel {
            load.kernel = Some(kernel.value);
        }
        load
    }
}
