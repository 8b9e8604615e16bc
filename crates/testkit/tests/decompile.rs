//! The decompiler: what it makes of real and of random filters means exactly the same.

use tamis_abi::{Action, Endian, SeccompData};
use tamis_bpf::Program;
use tamis_prover::{CaseLimits, Cases, Function, Limits, Machine, Space, Undecompilable};
use tamis_rules::{IntervalSet, Ruleset};
use tamis_testkit::corpus;
use tamis_testkit::generate::ruleset::{self as generate, Size};
use tamis_testkit::rng::Rng;

/// The function of a corpus program.
fn corpus_function(space: &mut Space, name: &str) -> Option<Function> {
    let program = Program::new(corpus::insns(name)?).expect("a corpus program is valid");
    Some(
        space
            .program(&program, Endian::Little)
            .expect("within the limits"),
    )
}

#[test]
fn corpus_programs_decompile_to_equal_rulesets() {
    let Some(names) = corpus::files("", ".bpf") else {
        return;
    };
    for name in names {
        let mut space = Space::new(Limits::default());
        let Some(function) = corpus_function(&mut space, &name) else {
            return;
        };
        let start = std::time::Instant::now();
        match space.decompile(function, &CaseLimits::default()) {
            Ok(ruleset) => {
                assert_eq!(space.ruleset(&ruleset), Ok(function), "{name}");
                println!(
                    "{name}: {} lines, {:?}",
                    ruleset.to_string().lines().count(),
                    start.elapsed()
                );
            }
            Err(error) => println!("{name}: {error}, {:?}", start.elapsed()),
        }
    }
}
