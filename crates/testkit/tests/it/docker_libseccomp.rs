//! Docker's profile, read by tamis, is equivalent to libseccomp 2.6.1's program for it, on every input.

use std::collections::BTreeSet;

use tamis_abi::{Action, Arch, Nr, SeccompData, Word, syscall};
use tamis_bpf::{Program, interp};
use tamis_diag::Sources;
use tamis_policy::loader::NoIncludes;
use tamis_policy::oci::{self, OciOptions};
use tamis_policy::{embedded, tamis};
use tamis_rules::Ruleset;
use tamis_testkit::corpus;
use tamis_testkit::inputs::Tests;
use tamis_testkit::rng::Rng;

/// More combinations than any number of this profile has.
const ALL: usize = 1 << 20;

fn docker() -> Ruleset {
    let text = corpus::text("docker/docker-default-x86_64.json");
    let mut sources = Sources::new();
    let source = sources.add("docker-default-x86_64.json", text);
    let profile = oci::parse(&sources, source, &OciOptions::docker(Arch::X86_64));
    assert_eq!(profile.parsed.diagnostics, []);
    profile.parsed.ruleset.expect("it has no errors")
}

/// The audit values to try: those in the program or the ruleset, their neighbours, others.
fn arches(program: &Program) -> BTreeSet<u32> {
    let mut tests = Tests::new();
    tests.add_program(program, &[]);
    let mut arches = tests.values(Word::ARCH);
    arches.extend(Arch::all().map(Arch::audit));
    arches
}

/// The numbers to try with an audit value: an element of every interval that the program or the ruleset
/// distinguishes, and special numbers.
fn numbers(program: &Program, ruleset: &Ruleset, arch: u32) -> BTreeSet<u32> {
    let mut tests = Tests::new();
    tests.add_program(program, &[(Word::ARCH, arch)]);
    let same_audit = |section: &&tamis_rules::Section| section.arch.audit() == arch;
    for section in ruleset.sections().iter().filter(same_audit) {
        tests.add_numbers(section);
    }
    for border in [Arch::X32_BIT, 1 << 31, u32::MAX] {
        tests.add(Word::NR, u32::MAX, border);
    }
    assert!(tests.is_exhaustive(Word::NR));
    tests.values(Word::NR)
}

/// Compares on every class of inputs; returns the number of inputs and the calls that differ.
fn compare(program: &Program, ruleset: &Ruleset) -> (usize, BTreeSet<String>) {
    let mut rng = Rng::new(0);
    let mut tried = 0;
    let mut differing = BTreeSet::new();
    for arch in arches(program) {
        for nr in numbers(program, ruleset, arch) {
            let mut tests = Tests::new();
            tests.add_program(program, &[(Word::ARCH, arch), (Word::NR, nr)]);
            let call = Arch::of_call(arch, nr);
            if let Some(section) = call.and_then(|arch| ruleset.section(arch)) {
                tests.add_section(section, nr);
            }
            let is_exhaustive = tests
                .words()
                .into_iter()
                .all(|word| tests.is_exhaustive(word));
            assert!(
                is_exhaustive,
                "{arch:#x} {nr}: masks and comparisons on one word"
            );
            let base = SeccompData {
                nr,
                arch,
                ip: 0x1234_5678_9abc_def0,
                args: [0x5555_5555_5555_5555; 6],
            };
            for input in tests.inputs(base, ALL, &mut rng) {
                tried += 1;
                let ours = ruleset.decide(&input).action.ret();
                let theirs = interp::run(program, &input).ret;
                if ours != theirs {
                    let name = call.and_then(|arch| syscall::name(arch, syscall::Nr(nr)));
                    let call = call.map_or("unknown", Arch::name);
                    differing.insert(format!("{call} {}", name.unwrap_or("?")));
                }
            }
        }
    }
    (tried, differing)
}

fn check(file: &str) {
    let (ruleset, program) = (docker(), corpus::program(file));
    let (tried, differing) = compare(&program, &ruleset);
    println!("{file}: {tried} classes of inputs");
    assert_eq!(differing, BTreeSet::new());
    assert!(tried > 1500);
}

#[test]
fn the_linear_program_answers_the_same() {
    check("docker/docker-libseccomp-opt1.bpf");
}

#[test]
fn the_tree_program_answers_the_same() {
    check("docker/docker-libseccomp-opt2.bpf");
}

/// Whether a ruleset allows a call of x86_64 with this first argument, and zeros behind it.
fn allows(ruleset: &Ruleset, nr: Nr, arg0: u64) -> bool {
    let data = SeccompData {
        nr: nr.0,
        arch: Arch::X86_64.audit(),
        args: [arg0, 0, 0, 0, 0, 0],
        ..SeccompData::default()
    };
    ruleset.decide(&data).action == Action::ALLOW
}

/// The names of the calls that a ruleset allows with arguments of zeros.
fn allowed(ruleset: &Ruleset) -> BTreeSet<&'static str> {
    let calls = syscall::all(Arch::X86_64).filter(|(nr, _)| allows(ruleset, *nr, 0));
    calls.map(|(_, name)| name).collect()
}

/// The book gives the reasons (`docs/book/language.md`).
#[test]
fn the_embedded_policy_for_containers_differs_from_dockers_by_six_calls() {
    let docker = docker();
    let policy = embedded("container-default").expect("it is embedded");
    let mut sources = Sources::new();
    let source = sources.add(policy.name, policy.text);
    let options = tamis::TamisOptions::new(vec![Arch::X86_64]);
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    let ours_ruleset = parsed.ruleset.expect("it has no errors");
    let ours = allowed(&ours_ruleset);
    let theirs = allowed(&docker);
    let more: Vec<&str> = ours.difference(&theirs).copied().collect();
    let fewer: Vec<&str> = theirs.difference(&ours).copied().collect();
    let new = [
        "file_getattr",
        "file_setattr",
        "get_mempolicy",
        "rseq_slice_yield",
        "uprobe",
    ];
    assert_eq!((more, fewer), (new.to_vec(), vec!["fanotify_mark"]));
    let socket = syscall::number(Arch::X86_64, "socket").expect("a call");
    let families = |ruleset: &Ruleset| -> BTreeSet<u64> {
        let known = 0..0x200;
        known
            .filter(|family| allows(ruleset, socket, *family))
            .collect()
    };
    let (ours, theirs) = (families(&ours_ruleset), families(&docker));
    assert!(ours.is_subset(&theirs));
    let fewer: Vec<u64> = theirs.difference(&ours).copied().collect();
    let obsolete = [12, 19, 20, 23, 25, 34, 37];
    assert_eq!(
        fewer,
        obsolete.into_iter().chain(46..0x200).collect::<Vec<u64>>()
    );
}
