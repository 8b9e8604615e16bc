//! Chart files.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use tamis_chart::Drawing;
use tamis_session::path_text::PathText;

use super::output::OutputArgs;
use super::{Failure, output};

/// A file that a chart can be written to.
#[derive(Clone, Debug)]
pub struct ChartFile {
    path: PathBuf,
    is_page: bool,
}

/// Parses the name of a chart file; its extension selects the format.
pub fn file_parser() -> impl TypedValueParser<Value = ChartFile> {
    OsStringValueParser::new().try_map(|name| parse_file(Path::new(&name)))
}

fn parse_file(path: &Path) -> Result<ChartFile, String> {
    let ending = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
    let is_page = match ending.as_deref().and_then(std::ffi::OsStr::to_str) {
        Some("svg") => false,
        Some("html") => true,
        _ => {
            return Err("the name must end in .svg or .html, which selects the format".to_owned());
        }
    };
    Ok(ChartFile {
        path: path.to_owned(),
        is_page,
    })
}

impl ChartFile {
    /// Fails early if the folder doesn't exist: measurements take long and would be lost.
    pub fn check_folder(&self) -> Result<(), Failure> {
        OutputArgs::to(self.path.clone()).check_folder()
    }

    /// Whether the file exists.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Writes an HTML page with charts and a text, or one SVG.
    pub fn write(&self, title: &str, charts: &[Drawing], text: &str) -> Result<(), Failure> {
        let content = match self.is_page {
            true => tamis_chart::page(title, charts, text),
            false => Drawing::column(title, charts).to_string(),
        };
        output::write_file(&self.path, content.as_bytes())
    }
}

impl fmt::Display for ChartFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_the_name_says_what_is_written() {
        assert!(!parse_file(Path::new("a.svg")).unwrap().is_page);
        assert!(parse_file(Path::new("x/a.b.HTML")).unwrap().is_page);
        for name in ["svg", "a.png", "a", ".html"] {
            assert!(parse_file(Path::new(name)).is_err(), "{name}");
        }
    }
}
