//! The corpus: real policies, real programs and input vectors of other projects.
//!
//! The corpus is data beside the repository, in `../shared/corpus`, never inside it: most machines do not have it.
//! A test that reads from it is ignored where it is missing.

pub mod gvisor;
pub mod pol_json;
pub mod profiles;
pub mod texts;

use std::path::{Path, PathBuf};

use tamis_abi::Endian;
use tamis_bpf::program::insns_from_bytes;
use tamis_bpf::{Insn, Program};
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_rules::Ruleset;

use crate::skip::{self, Need};

/// The root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether this machine has the corpus.
pub fn is_there() -> bool {
    root().is_dir()
}

fn root() -> PathBuf {
    repository().join("../shared/corpus")
}

/// A file or directory of the corpus, such as `docker/docker-default-x86_64.json`.
///
/// Without the corpus the test is [skipped](skip::because), here and in the functions below.
///
/// # Panics
/// If the corpus does not have it, or if there is no corpus and `TAMIS_REQUIRE` lists `corpus`.
#[track_caller]
pub fn path(name: &str) -> PathBuf {
    if !is_there() {
        skip::because(Need::Corpus, "there is no ../shared/corpus");
    }
    let path = root().join(name);
    assert!(path.exists(), "the corpus has no {name}");
    path
}

/// The text of a corpus file.
///
/// # Panics
/// As for [`path`], and if the file cannot be read or is not UTF-8.
#[track_caller]
pub fn text(name: &str) -> String {
    let path = path(name);
    let text = std::fs::read_to_string(&path);
    text.unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// The instructions of a corpus file `*.bpf`, unchecked.
///
/// # Panics
/// As for [`path`], and if the file cannot be read or is not a whole number of instructions.
#[track_caller]
pub fn insns(name: &str) -> Vec<Insn> {
    let path = path(name);
    let bytes = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let insns = insns_from_bytes(&bytes, Endian::Little);
    insns.unwrap_or_else(|| panic!("{name}: {} bytes is no program", bytes.len()))
}

/// The program of a corpus file `*.bpf`.
///
/// # Panics
/// As for [`insns`], and if the kernel would reject the program.
#[track_caller]
pub fn program(name: &str) -> Program {
    let program = Program::new(insns(name), Endian::Little);
    program.unwrap_or_else(|invalid| panic!("{name}: {invalid}"))
}

/// Whether a ruleset is proved equivalent to a program of the corpus.
///
/// # Panics
/// As for [`program`].
#[track_caller]
pub fn is_program(ruleset: &Ruleset, name: &str) -> bool {
    let program = program(name);
    let program = Subject::Program(&program);
    let answer = decide(&Subject::Ruleset(ruleset), &program, &Limits::default());
    crate::println!("{name}: {answer:x?}");
    matches!(answer, Answer::Equal(_))
}

/// The names of all files below a directory of the corpus whose names end in `suffix`, sorted, in the form that the
/// other functions accept.
///
/// # Panics
/// As for [`path`], and if a directory cannot be read.
#[track_caller]
pub fn files(folder: &str, suffix: &str) -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![path(folder)];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("a folder entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                let name = path.strip_prefix(&root).expect("it lies in the corpus");
                found.push(name.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// The names of all programs of other projects, sorted.
///
/// Deliberately slow inputs, in `hard/`, are excluded: commands may reach a limit on them.
///
/// # Panics
/// As for [`files`].
#[track_caller]
pub fn programs() -> Vec<String> {
    let mut names = files("", ".bpf");
    names.retain(|name| !name.starts_with("hard/"));
    names
}

/// The programs of other projects by name, as [`programs`].
///
/// # Panics
/// As for [`program`].
#[track_caller]
pub fn real_programs() -> Vec<(String, Program)> {
    named(programs())
}

/// All programs of the corpus by name.
///
/// # Panics
/// As for [`program`].
#[track_caller]
pub fn all_programs() -> Vec<(String, Program)> {
    named(files("", ".bpf"))
}

#[track_caller]
fn named(names: Vec<String>) -> Vec<(String, Program)> {
    let programs = names.into_iter().map(|name| {
        let program = program(&name);
        (name, program)
    });
    programs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_the_folder_of_the_workspace() {
        let manifest = std::fs::read_to_string(repository().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }
}
