//! The tamis language from the outside: the meaning of policies, diagnostics, embedded policies, and robustness.

#[macro_use]
extern crate tamis_testkit;

mod book;
mod diagnostics;
mod embedded;
mod hostile;
mod meaning;
mod parameters;
mod print;
mod variables;

use std::process::ExitCode;

use tamis_abi::{Action, Arch, SeccompData, syscall};
use tamis_diag::Sources;
use tamis_policy::Parsed;
use tamis_policy::loader::{Loaded, NoIncludes};
use tamis_policy::tamis::{self, TamisOptions};
use tamis_rules::Ruleset;
use tamis_testkit::harness;

fn main() -> ExitCode {
    harness::main()
}

/// Parses a policy that stands alone.
fn parse(text: &str, arches: &[Arch]) -> (Parsed, Sources) {
    let mut sources = Sources::new();
    let root = sources.add("a.tamis", text);
    let options = TamisOptions::new(arches.to_vec());
    let parsed = tamis::parse(&mut sources, root, &mut NoIncludes, &options);
    (parsed, sources)
}

/// Parses a policy of several files; the first is the root.
fn parse_files(files: &[(&str, &str)]) -> (Parsed, Sources) {
    let mut sources = Sources::new();
    let root = sources.add(files[0].0, files[0].1);
    let mut loader = |path: &str, _: &str| match files.iter().find(|(name, _)| *name == path) {
        Some((name, text)) => Ok(Loaded {
            name: (*name).to_owned(),
            text: (*text).to_owned(),
        }),
        None => Err("no such file".to_owned()),
    };
    let options = TamisOptions::new(vec![Arch::X86_64]);
    let parsed = tamis::parse(&mut sources, root, &mut loader, &options);
    (parsed, sources)
}

/// The ruleset of a policy without mistakes.
#[track_caller]
fn ruleset(text: &str, arches: &[Arch]) -> Ruleset {
    let (parsed, sources) = parse(text, arches);
    let told = tamis_diag::render::render(&parsed.diagnostics, &sources, false);
    parsed.ruleset.unwrap_or_else(|| panic!("{told}"))
}

/// A call by name; missing arguments are zero.
#[track_caller]
fn call(arch: Arch, name: &str, args: &[u64]) -> SeccompData {
    let mut data = SeccompData {
        nr: syscall::number(arch, name)
            .expect("a call of this architecture")
            .0,
        arch: arch.audit(),
        ..SeccompData::default()
    };
    data.args[..args.len()].copy_from_slice(args);
    data
}

/// The action of a policy for a call.
#[track_caller]
fn decide(ruleset: &Ruleset, arch: Arch, name: &str, args: &[u64]) -> Action {
    ruleset.decide(&call(arch, name, args)).action
}
