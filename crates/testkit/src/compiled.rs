//! Rulesets compiled with the default options, for tests of crates below the compiler.

use tamis_bpf::Program;
use tamis_compiler::{CompileOptions, compile};
use tamis_rules::Ruleset;

/// The proved program of a ruleset without variables.
///
/// # Panics
/// If the ruleset can't be compiled or has a variable.
#[track_caller]
pub fn program(ruleset: &Ruleset) -> Program {
    let compiled = compile(ruleset, &CompileOptions::default());
    let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
    compiled.program().expect("no variables").clone()
}
