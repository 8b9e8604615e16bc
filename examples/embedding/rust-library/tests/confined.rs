//! The examples, built by cargo as a user builds them, confine themselves.

#[macro_use]
extern crate tamis_testkit;

use std::path::Path;
use std::process::{Command, ExitCode};

use tamis_testkit::skip;
use tamis_testkit::{harness, toolchains};

fn main() -> ExitCode {
    harness::main()
}

#[test]
fn the_library_confines_its_program() {
    skip::unless_kernel();
    let program = Path::new(env!("CARGO_BIN_EXE_library-user"));
    toolchains::assert_confined("library-user", program);
}

#[test]
fn a_thread_answers_by_value_by_descriptor_and_by_policy() {
    skip::unless_live();
    let output = Command::new(env!("CARGO_BIN_EXE_supervised"))
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{error}");
    let own: Vec<&str> = text.lines().filter(|line| !line.contains('(')).collect();
    assert_eq!(
        own,
        ["parent 4242", "through the descriptor of the supervisor"]
    );
    let calls: Vec<&str> = text.lines().filter(|line| line.contains('(')).collect();
    let expected = [
        "getppid()",
        "chdir(filename=",
        "chdir Some(18)",
        "socket(family=AF_UNIX, type=",
    ];
    for (call, expected) in calls.iter().zip(expected) {
        assert!(call.contains(expected), "{call}, not {expected}");
    }
    assert_eq!(calls.len(), expected.len());
}
