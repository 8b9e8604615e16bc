//! Rulesets and embedded policies compiled with the default options, for tests of crates that don't use the compiler.

use tamis_abi::host;
use tamis_bpf::Program;
use tamis_compiler::{CompileOptions, compile};
use tamis_diag::Sources;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis::{self, Choice, TamisOptions};
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

/// The proved program of an embedded policy for this machine, with values for its parameters.
///
/// # Panics
/// If there is no such policy or value.
#[track_caller]
pub fn embedded(name: &str, choices: &[(&str, &str)]) -> Program {
    let mut sources = Sources::new();
    let text = tamis_policy::embedded(name).expect("it is embedded").text;
    let root = sources.add(name, text);
    let choices = choices.iter().map(|(parameter, value)| Choice {
        parameter: (*parameter).to_owned(),
        value: (*value).to_owned(),
    });
    let options = TamisOptions {
        choices: choices.collect(),
        ..TamisOptions::new(vec![host::arch().expect("a known architecture")])
    };
    let parsed = tamis::parse(&mut sources, root, &mut NoIncludes, &options);
    program(&parsed.ruleset.expect("values that it has"))
}
