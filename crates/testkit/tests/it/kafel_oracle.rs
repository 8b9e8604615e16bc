//! Kafel's policies against the programs that kafel makes of them: nsjail is asked.
//!
//! Random policies, with mistakes, and each call of the tables with its arguments.

use tamis_abi::Arch;
use tamis_diag::{Diagnostic, Severity, Sources};
use tamis_policy::Parsed;
use tamis_policy::kafel::{self, KafelOptions};
use tamis_policy::loader::NoIncludes;
use tamis_testkit::generate;
use tamis_testkit::nsjail::{Made, Nsjail, PACKAGE};
use tamis_testkit::oracle::{Class, Classes};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

/// Random policies, of which others than `.ci/run` try a fifth.
const RANDOM: u64 = 1500;

/// nsjail, unless the test skips.
fn oracle() -> Option<Nsjail> {
    if skip::without_live() {
        return None;
    }
    let found = Nsjail::find();
    found
        .map_err(|reason| skip::because(Need::Nsjail, reason))
        .ok()
}

fn read(text: &str) -> Parsed {
    let mut sources = Sources::new();
    let root = sources.add("x.policy", text);
    let options = KafelOptions::new(Arch::X86_64);
    kafel::parse(&mut sources, root, &mut NoIncludes, &options)
}

/// Why tamis may refuse what kafel accepts.
fn reason(diagnostics: &[Diagnostic]) -> Option<&'static str> {
    let errors = diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error);
    let codes: Vec<&str> = errors.map(|error| error.code.id).collect();
    println!("{codes:?}");
    None
}

fn class(nsjail: &Nsjail, text: &str) -> Class {
    let made = nsjail.compile(text).expect("nsjail can be asked");
    let theirs = match &made {
        Made::Filter(program) => Some(program),
        Made::Refused => None,
        Made::Failed(_) => return Class::NotComparable("kafel ends without an answer"),
    };
    let ours = read(text);
    Class::of(ours.ruleset.as_ref(), theirs, || reason(&ours.diagnostics))
}

#[test]
fn random_policies_are_what_kafel_makes_of_them() {
    let Some(nsjail) = oracle() else {
        return;
    };
    let mut classes = Classes::default();
    for seed in seeds::of(0..RANDOM) {
        let text = generate::kafel::kafel(&mut Rng::new(seed));
        classes.add(class(&nsjail, &text), &text);
    }
    classes.check();
    classes.check_row("kafel", PACKAGE, 0);
}

#[test]
fn dump_kafel() {
    for seed in 0..300 {
        std::fs::write(format!("/tmp/k/gen/{seed}"), generate::kafel::kafel(&mut Rng::new(seed))).unwrap();
    }
}
