//! The library that stands for libseccomp, against a C program that makes every mistake: null, released and foreign
//! handles, absurd counts and values, 100,000 rules, many threads, `fork`, no memory. It must never crash, and return
//! the values of the system's libseccomp wherever that doesn't crash.
//!
//! The program is compiled against our header. It runs with either library, found by name as in any C program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tamis_abi::Endian;
use tamis_bpf::Program;
use tamis_bpf::program::insns_from_bytes;
use tamis_diag::Sources;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis::{self, TamisOptions};
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_scmp::Release;
use tamis_testkit::child;
use tamis_testkit::libseccomp::Library;
use tamis_testkit::libseccomp_program::compile;
use tamis_testkit::skip::{self, Need};

const PROGRAM: &str = include_str!("hostile.c");

/// The program, linked to our library, and the folder where it finds it.
struct Hostile {
    program: PathBuf,
    folder: PathBuf,
}

impl Hostile {
    /// Compiles the program for a test.
    fn new(test: &str) -> Hostile {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("dropin_hostile")
            .join(test);
        let program = compile(&folder, PROGRAM, Release::Reference);
        Hostile { program, folder }
    }

    fn run(&self, part: &str, with_ours: bool) -> Output {
        let mut command = Command::new(&self.program);
        command.arg(part).env_remove("LD_LIBRARY_PATH");
        command.current_dir(&self.folder);
        if part == "explained" {
            command.env("TAMIS_EXPLAIN", "policy");
        }
        if with_ours {
            command.env("LD_LIBRARY_PATH", &self.folder);
        }
        child::output(&mut command).expect("the program starts")
    }

    /// Runs a part of the program with our library.
    #[track_caller]
    fn assert_unharmed(&self, part: &str) {
        let output = self.run(part, true);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{part}: {}: {messages}",
            output.status
        );
    }
}

fn assert_unharmed(part: &str) {
    Hostile::new(part).assert_unharmed(part);
}

/// The same for a part that installs filters.
fn assert_unharmed_live(part: &str) {
    skip::unless_live();
    assert_unharmed(part);
}

#[test]
fn misuse_gets_the_return_values_of_the_systems_library() {
    if let Err(reason) = Library::open() {
        skip::because(Need::Peers, reason);
    }
    let hostile = Hostile::new("codes");
    let outputs = [true, false].map(|with_ours| {
        let output = hostile.run("codes", with_ours);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    });
    let [ours, theirs] = outputs.each_ref().map(|text| text.lines());
    let different: Vec<_> = ours.zip(theirs).filter(|(a, b)| a != b).collect();
    assert!(
        different.is_empty() && outputs[0].len() == outputs[1].len(),
        "{different:?}"
    );
    assert!(outputs[0].lines().count() > 600, "{}", outputs[0]);
}

#[test]
fn handles_that_are_none_are_refused_by_all_functions() {
    assert_unharmed("hostile");
}

#[test]
fn a_hundred_thousand_rules_are_taken_and_refused_when_compiled() {
    assert_unharmed("many");
}

#[test]
fn threads_with_filters_of_their_own_do_not_meet() {
    assert_unharmed("threads");
}

#[test]
fn children_of_a_program_with_threads_make_filters() {
    assert_unharmed_live("forks");
}

#[test]
fn without_memory_functions_fail_and_the_process_lives() {
    assert_unharmed("memory");
}

#[test]
fn a_merge_without_memory_leaves_both_filters() {
    assert_unharmed("merge");
}

#[test]
fn what_a_user_asks_to_be_explained_is_the_policy_of_the_program() {
    let hostile = Hostile::new("explained");
    hostile.assert_unharmed("explained");
    let file = |name: String| fs::read(hostile.folder.join(name)).expect("a file of the program");
    for number in 0..40 {
        let program = file(format!("{number}.bpf"));
        let program = insns_from_bytes(&program, Endian::Little).expect("instructions");
        let program = Program::new(program, Endian::Little).expect("a valid program");
        let text = String::from_utf8(file(format!("{number}.tamis"))).expect("text");
        let mut sources = Sources::new();
        let source = sources.add("policy.tamis", text.as_str());
        let options = TamisOptions::new(Vec::new());
        let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
        let diagnostics = parsed.diagnostics;
        let policy = parsed
            .ruleset
            .unwrap_or_else(|| panic!("{diagnostics:#?}\n{text}"));
        let subjects = [Subject::Ruleset(&policy), Subject::Program(&program)];
        let answer = decide(&subjects[0], &subjects[1], &Limits::default());
        assert!(matches!(answer, Answer::Equal(_)), "{answer:?}\n{text}");
    }
}

#[test]
fn threads_with_a_stack_of_64_kib_make_filters() {
    assert_unharmed("stacks");
}

#[test]
fn conditions_as_parameters_are_those_of_an_array() {
    assert_unharmed("variadic");
}

#[test]
fn a_parent_answers_its_childs_calls() {
    assert_unharmed_live("notify");
}

#[test]
fn after_loading_a_process_can_end_without_another_call() {
    assert_unharmed_live("silent");
}
