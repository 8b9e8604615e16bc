//! Kafel's policies against kafel's programs for them, by nsjail.
//!
//! Random policies, with mistakes, and each call of the tables with its arguments.

use std::collections::BTreeMap;

use tamis_abi::{Arch, signature, syscall};
use tamis_diag::{Diagnostic, Severity, Sources};
use tamis_policy::Parsed;
use tamis_policy::code;
use tamis_policy::kafel::{self, KafelOptions};
use tamis_policy::loader::NoIncludes;
use tamis_testkit::generate;
use tamis_testkit::nsjail::{Made, Nsjail, PACKAGE};
use tamis_testkit::oracle::{Class, Classes};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

/// Random policies; only `.ci/run full` tries all.
const RANDOM: u64 = 1000;
/// With more, programs exceed the kernel's limit.
const RULES_IN_A_POLICY: usize = 400;
const CALLS: &str = include_str!("../../../policy/data/kafel-calls.txt");

/// nsjail; the test ends without it.
fn oracle() -> Nsjail {
    skip::unless_live();
    Nsjail::find().unwrap_or_else(|reason| skip::because(Need::Nsjail, reason))
}

fn read(text: &str) -> Parsed {
    let mut sources = Sources::new();
    let root = sources.add("x.policy", text);
    let options = KafelOptions::new(Arch::X86_64);
    kafel::parse(&mut sources, root, &mut NoIncludes, &options)
}

/// The reason for which tamis may reject a policy that kafel accepts.
fn reason(diagnostics: &[Diagnostic]) -> Option<&'static str> {
    let mut errors = diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Error);
    let is_number = |error: &Diagnostic| error.code == code::KAFEL_NUMBER;
    errors
        .all(is_number)
        .then_some("numbers that kafel cuts off are errors")
}

fn class(nsjail: &Nsjail, text: &str) -> Class {
    let made = nsjail.compile(text).expect("nsjail can be asked");
    let theirs = match &made {
        Made::Filter(program) => Some(program),
        Made::Refused => None,
        Made::Failed(_) => return Class::NotComparable("kafel ends without an answer"),
    };
    let ours = read(text);
    Class::from_results(ours.ruleset.as_ref(), theirs, || reason(&ours.diagnostics))
}

#[test]
fn random_policies_are_what_kafel_makes_of_them() {
    let nsjail = oracle();
    let mut classes = Classes::default();
    for seed in seeds::selected(0..RANDOM) {
        let text = generate::kafel::kafel(&mut Rng::new(seed));
        classes.add(class(&nsjail, &text), &text);
    }
    classes.check();
    classes.check_row("kafel", PACKAGE, 0);
}

/// A policy with a rule for each, identified by its action.
fn policy(rules: &[String]) -> String {
    let blocks = rules.iter().enumerate();
    let blocks = blocks.map(|(index, rule)| format!("ERRNO({}) {{ {rule} }}\n", index + 1));
    blocks.collect::<String>() + "DEFAULT ALLOW"
}

/// Has a policy with those rules compared that are expected to be known, and one with each of the others.
fn check_names(nsjail: &Nsjail, known: &[String], unknown: &[String]) {
    let mut classes = Classes::default();
    for rules in known.chunks(RULES_IN_A_POLICY) {
        let text = policy(rules);
        classes.add(class(nsjail, &text), &text);
    }
    let equal = classes.count(|class| *class == Class::Equal);
    assert_eq!(
        equal,
        known.len().div_ceil(RULES_IN_A_POLICY),
        "{classes:?}"
    );
    for rule in unknown {
        let text = policy(std::slice::from_ref(rule));
        classes.add(class(nsjail, &text), &text);
    }
    classes.check();
    println!("{} are known, {} are not", known.len(), unknown.len());
}

/// The calls of x86_64 in the table, with their arguments.
fn table() -> BTreeMap<&'static str, Vec<&'static str>> {
    let rows = CALLS.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|row| row.split(' ').collect::<Vec<&str>>());
    let rows = rows.filter(|row| row[1] != "-");
    let name = |word: &&'static str| word.trim_end_matches('*').split(':').next().expect("one");
    rows.map(|row| (row[0], row[9..].iter().map(name).collect()))
        .collect()
}

#[test]
fn calls_are_those_that_kafel_knows() {
    let nsjail = oracle();
    let table = table();
    let known: Vec<String> = table.keys().map(|name| (*name).to_owned()).collect();
    let unknown = syscall::names().filter(|name| !table.contains_key(name));
    let unknown: Vec<String> = unknown.map(str::to_owned).collect();
    check_names(&nsjail, &known, &unknown);
}

#[test]
fn arguments_are_those_that_kafel_knows() {
    let nsjail = oracle();
    let rule = |call: &str, arg: &str| format!("{call} {{ {arg} == 5 }}");
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for (call, args) in table() {
        // To kafel no name begins so.
        let (words, no_words): (Vec<&str>, Vec<&str>) =
            args.iter().partition(|arg| !arg.starts_with('_'));
        known.extend(words.iter().map(|arg| rule(call, arg)));
        unknown.extend(no_words.iter().map(|arg| rule(call, arg)));
        let others = signature::args(call).unwrap_or_default().iter();
        let others = others.filter(|other| !args.contains(&other.name()));
        unknown.extend(others.map(|other| rule(call, other.name())));
    }
    check_names(&nsjail, &known, &unknown);
}
