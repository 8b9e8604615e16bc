//! The corpus: real policies, real programs and input vectors of other projects.
//!
//! The corpus is data beside the repository, in `../shared/corpus`, never inside it: most machines do not have it.
//! Tests that use it call [`path`] and return if the result is `None`; the reason is already printed.

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

/// A file or directory of the corpus, such as `docker/docker-default-x86_64.json`.
///
/// `None` if it does not exist; a message that the test is skipped is then printed.
///
/// # Panics
/// If it does not exist and `TAMIS_REQUIRE` lists `corpus`.
#[track_caller]
pub fn path(name: &str) -> Option<PathBuf> {
    let path = repository().join("../shared/corpus").join(name);
    if path.exists() {
        return Some(path);
    }
    skip::because(Need::Corpus, format_args!("no corpus file {name}"));
    None
}

/// The text of a corpus file; `None` as for [`path`].
///
/// # Panics
/// As for [`path`], and if the file cannot be read or is not UTF-8.
#[track_caller]
pub fn text(name: &str) -> Option<String> {
    let path = path(name)?;
    let text = std::fs::read_to_string(&path);
    Some(text.unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display())))
}

/// The instructions of a corpus file `*.bpf`, unchecked; `None` as for [`path`].
///
/// # Panics
/// As for [`path`], and if the file cannot be read or is not a whole number of instructions.
#[track_caller]
pub fn insns(name: &str) -> Option<Vec<Insn>> {
    let path = path(name)?;
    let bytes = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let insns = insns_from_bytes(&bytes, Endian::Little);
    Some(insns.unwrap_or_else(|| panic!("{name}: {} bytes is no program", bytes.len())))
}

/// The program of a corpus file `*.bpf`; `None` as for [`path`].
///
/// # Panics
/// As for [`insns`], and if the kernel would reject the program.
#[track_caller]
pub fn program(name: &str) -> Option<Program> {
    let program = Program::new(insns(name)?, Endian::Little);
    Some(program.unwrap_or_else(|invalid| panic!("{name}: {invalid}")))
}

/// Whether a ruleset is proved equivalent to a program of the corpus; true if there is no corpus.
///
/// # Panics
/// As for [`program`].
#[track_caller]
pub fn is_program(ruleset: &Ruleset, name: &str) -> bool {
    let Some(program) = program(name) else {
        return true;
    };
    let program = Subject::Program(&program);
    let answer = decide(&Subject::Ruleset(ruleset), &program, &Limits::default());
    println!("{name}: {answer:x?}");
    matches!(answer, Answer::Equal(_))
}

/// The names of all files below a directory of the corpus whose names end in `suffix`, sorted, in the form that the
/// other functions accept; `None` as for [`path`].
///
/// # Panics
/// As for [`path`], and if a directory cannot be read.
#[track_caller]
pub fn files(folder: &str, suffix: &str) -> Option<Vec<String>> {
    let root = path("")?;
    let mut found = Vec::new();
    let mut folders = vec![path(folder)?];
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
    Some(found)
}

/// The names of all programs of other projects, sorted; `None` as for [`path`].
///
/// Deliberately slow inputs, in `hard/`, are excluded: commands may reach a limit on them.
///
/// # Panics
/// As for [`files`].
#[track_caller]
pub fn programs() -> Option<Vec<String>> {
    let mut names = files("", ".bpf")?;
    names.retain(|name| !name.starts_with("hard/"));
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_the_folder_of_the_workspace() {
        let manifest = std::fs::read_to_string(repository().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn every_raw_program_of_the_corpus_is_a_whole_number_of_instructions() {
        let Some(names) = files("", ".bpf") else {
            return;
        };
        assert!(names.contains(&"docker/docker-libseccomp-opt1.bpf".to_owned()));
        for name in names {
            let insns = insns(&name).expect("the listed file is there");
            assert!(!insns.is_empty(), "{name}");
        }
    }
}
