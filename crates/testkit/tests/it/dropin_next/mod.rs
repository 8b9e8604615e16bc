//! The library with the additions of libseccomp's main branch after 2.6.1, and the one without: a C program is compiled
//! against the headers of each.

use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_scmp::Release;
use tamis_testkit::child;
use tamis_testkit::libseccomp::{built_library, built_next_library};
use tamis_testkit::libseccomp_program::compile;
use tamis_testkit::skip::{self, Need};

/// The functions of 2.6.1, which must all exist.
const FUNCTIONS: usize = 37;

/// The program for a release and the folder with its library.
fn program(release: Release, test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("dropin_next")
        .join(format!("{test}-{release:?}"));
    compile(&folder, include_str!("next.c"), release);
    folder
}

/// The output of a part of the program.
fn printed(folder: &Path, part: &str) -> String {
    let mut command = Command::new(folder.join("program"));
    command.arg(part).env("LD_LIBRARY_PATH", folder);
    let output = child::output(&mut command).expect("the program starts");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{part}: {}: {messages}",
        output.status
    );
    String::from_utf8(output.stdout).expect("pseudo code is ASCII")
}

#[test]
fn a_program_sees_the_interface_that_it_is_compiled_for() {
    for release in [Release::Reference, Release::Next] {
        let folder = program(release, "interface");
        let text = printed(&folder, "interface");
        let traps: Vec<&str> = text.lines().filter(|line| line.contains("TRAP")).collect();
        let expected: &[&str] = match release {
            Release::Reference => &["    action TRAP;"],
            Release::Next => &["    action TRAP(0);", "    action TRAP(4660);"],
        };
        let mut traps = traps;
        traps.sort_unstable();
        assert_eq!(traps, expected, "{text}");
    }
}

/// Runs a part of the program that installs a filter.
fn assert_succeeds_live(part: &str) {
    skip::unless_live();
    printed(&program(Release::Next, part), part);
}

#[test]
fn the_number_of_a_trap_reaches_the_handler() {
    assert_succeeds_live("trap");
}

#[test]
fn a_task_gets_a_descriptor_of_its_supervisor() {
    assert_succeeds_live("addfd");
}

/// The functions of libseccomp's names that a library exports.
fn exported(library: &Path) -> Vec<String> {
    let mut command = Command::new("nm");
    command.args(["-D", "--defined-only"]).arg(library);
    let output = match child::output(&mut command) {
        Ok(output) if output.status.success() => output,
        _ => skip::because(Need::Toolchains, "nm doesn't work here"),
    };
    let text = String::from_utf8(output.stdout).expect("names are ASCII");
    let names = text.lines().filter_map(|line| line.split(' ').nth(2));
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("seccomp_"))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn the_libraries_differ_by_one_function() {
    let reference = exported(&built_library());
    let mut next = exported(&built_next_library());
    assert_eq!(reference.len(), FUNCTIONS, "{reference:?}");
    next.retain(|name| name != "seccomp_notify_addfd");
    assert_eq!(next, reference);
}
