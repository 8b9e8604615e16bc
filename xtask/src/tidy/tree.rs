//! The text files of the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::rust::RustFile;

/// Extensions of the files that are read.
const TEXT_EXTENSIONS: [&str; 8] = ["rs", "go", "md", "toml", "json", "tsv", "csv", "golden"];

/// All text files by their path relative to the root, with `/` between the parts.
pub(super) struct Tree {
    files: BTreeMap<String, String>,
    rust: BTreeMap<String, RustFile>,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

impl Tree {
    /// Reads the repository without hidden directories and build products.
    pub(super) fn read() -> Result<Tree> {
        let root = root();
        let mut files = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with('.') || ["target", "dist"].contains(&&*name) {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if is_text(&path) {
                    let text =
                        fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
                    let relative = path.strip_prefix(&root)?;
                    files.insert(relative.to_string_lossy().replace('\\', "/"), text);
                }
            }
        }
        Ok(Tree::new(files))
    }

    /// A tree with these files.
    pub(super) fn new(files: BTreeMap<String, String>) -> Tree {
        let rust = files
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| (path.clone(), RustFile::new(text)))
            .collect();
        Tree { files, rust }
    }

    /// All files.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter();
        files.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &RustFile)> {
        self.rust.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The text of one file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }
}

fn is_text(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    TEXT_EXTENSIONS.iter().any(|known| extension == *known)
}
