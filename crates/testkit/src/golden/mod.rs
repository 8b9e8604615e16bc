//! Golden tests: text files with a command, its input and its expected output.
//!
//! A golden is a file below `tests/golden`; its format is explained, and tested, by `tests/golden/readme.golden`.
//! Every file is one test, so that filters by name work. With `TAMIS_BLESS=1`, expectations about text (`output`,
//! `error`, `stats`) are rewritten from the actual results; expectations about meaning (`eval`, `exit`) are only
//! written by hand.
//!
//! The binary runs in a directory of its own with an empty environment, so a golden depends only on its text. The
//! directory is kept, and a failure shows the command for running it again by hand.

mod check;
mod eval;
mod file;
mod pass;
mod subject;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use libtest_mimic::Failed;

use crate::{harness, skip};
use file::{Golden, SectionKind};

/// The parameters of a golden test target.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The program that all commands of the goldens are of.
    pub binary: PathBuf,
    /// The package that has the test target; its program has the same name.
    pub package: &'static str,
    /// The directory of the goldens.
    pub root: PathBuf,
    /// A directory for the inputs of the goldens.
    pub work: PathBuf,
}

/// Runs all goldens as the `main` of a test target without the standard harness.
///
/// # Panics
/// If the directory of the goldens cannot be read.
pub fn main(setup: &Setup) -> ExitCode {
    let root = &setup.root;
    let trials = files(root)
        .into_iter()
        .map(|path| {
            let name = name_of(&path, root);
            let (setup, test) = (setup.clone(), name.clone());
            harness::trial(name, move || run(&setup, &test, &path))
        })
        .collect();
    harness::run(trials, None)
}

/// The test name of a golden: its path relative to the root, without the extension.
fn name_of(path: &Path, root: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path);
    relative.with_extension("").to_string_lossy().into_owned()
}

/// All files below a directory, sorted.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("a folder entry can be read").path();
            let list = if path.is_dir() {
                &mut folders
            } else {
                &mut found
            };
            list.push(path);
        }
    }
    found.sort();
    found
}

/// One test: checks the golden at `path`, or rewrites it.
fn run(setup: &Setup, name: &str, path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let is_blessing = env::var("TAMIS_BLESS").is_ok_and(|value| value == "1");
    let work = setup.work.join("golden").join(name);
    let golden = Golden::parse(&text)?;
    if golden.sections_of(SectionKind::X86_64).next().is_some() {
        skip::unless_x86_64();
    }
    let checked = check::check(&golden, (setup.package, &setup.binary), &work, is_blessing)?;
    if is_blessing && checked.blessed != golden {
        let blessed = checked.blessed.to_string();
        if Golden::parse(&blessed)?.sections.len() != checked.blessed.sections.len() {
            return Err("a text has lines that begin with `-- `: no golden can hold it".into());
        }
        fs::write(path, blessed)?;
    }
    if checked.failures.is_empty() {
        return Ok(());
    }
    let failures = checked.failures.join("\n");
    let package = setup.package;
    Err(format!(
        "{failures}\n\
         this test alone:  cargo test -p {package} --test golden -- --exact {name}\n\
         accept the texts: TAMIS_BLESS=1 cargo test -p {package} --test golden -- --exact {name}\n"
    )
    .into())
}
