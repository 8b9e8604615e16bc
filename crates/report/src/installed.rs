//! The files of an installation: `tamis libseccomp install`.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// The installed files, and the way in which programs find them.
#[derive(Serialize)]
pub struct InstalledReport {
    pub prefix: String,
    pub library: String,
    pub files: Vec<String>,
}

impl Display for InstalledReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for file in &self.files {
            writeln!(f, "{file}")?;
        }
        writeln!(
            f,
            "\nTo run a program with it: LD_LIBRARY_PATH={} PROGRAM",
            self.library
        )
    }
}
