//! Policies whose work is in the arguments: gVisor's, and long lists of `ioctl` requests.
//!
//! `cargo bench -p tamis-bench --bench argument_decisions`; the first argument is the number of rounds.
//! The times are those from the ruleset to the proven program.

use tamis_abi::{Action, Arch, ArgIndex};
use tamis_bench::ratio::{Contestant, compare};
use tamis_compiler::{Options, compile};
use tamis_rules::{IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};
use tamis_testkit::corpus::gvisor;
use tamis_testkit::rng::Rng;

const ROUNDS: usize = 15;

/// `ioctl` with any of `count` scattered requests, denied otherwise.
fn requests(count: usize) -> Ruleset {
    let mut rng = Rng::new(count as u64);
    let values: Vec<u64> = (0..count).map(|_| rng.next_u64() & 0xffff_ffff).collect();
    let test = Test::In {
        operand: Operand::arg(ArgIndex::ALL[1]),
        set: values.into_iter().map(|value| value..=value).collect(),
    };
    let rule = Rule {
        syscalls: IntervalSet::single(16),
        when: Predicate::Test(test),
        action: Action::ALLOW,
        origin: None,
    };
    let section = Section {
        arch: Arch::X86_64,
        rules: vec![rule],
        default: Action::errno(1),
    };
    Ruleset::new(vec![section], Action::KILL_PROCESS).expect("one section")
}

fn main() {
    let rounds = std::env::args().find_map(|argument| argument.parse().ok());
    let mut subjects = vec![
        ("71 requests", requests(71)),
        ("200 requests", requests(200)),
        ("1000 requests", requests(1000)),
    ];
    for (label, file) in [
        ("gVisor Systrap", "gvisor/gvisor-sentry-systrap.json"),
        ("gVisor nvproxy", "gvisor/gvisor-sentry-nvproxy.json"),
    ] {
        subjects.extend(gvisor::ruleset(file).map(|ruleset| (label, ruleset)));
    }
    let length = |ruleset: &Ruleset| {
        let compiled = compile(ruleset, &Options::default());
        compiled.expect("the ruleset compiles").program().len()
    };
    for (label, ruleset) in &subjects {
        println!("{label}: {} instructions", length(ruleset));
    }
    let mut contestants: Vec<Contestant> = subjects
        .iter()
        .map(|(label, ruleset)| Contestant::new(label, || length(ruleset)))
        .collect();
    print!("{}", compare(&mut contestants, rounds.unwrap_or(ROUNDS)));
}
