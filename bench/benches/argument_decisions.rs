//! Policies with most of their work in argument decisions: gVisor's, and long lists of `ioctl` requests.
//!
//! `cargo bench -p tamis-bench --bench argument_decisions`; the first argument is the number of rounds. The times are
//! from the ruleset to the proved program. If gVisor's compiler is available, it builds gVisor's policies in turn
//! with tamis; it has no proof.

use tamis_bench::gvisor::Compiler;
use tamis_bench::ratio::{Contestant, compare};
use tamis_bench::requests::requests;
use tamis_compiler::{CompileOptions, compile};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::gvisor;

const ROUNDS: usize = 15;

/// Policies of gVisor, with their files in the corpus.
const SANDBOXES: [(&str, &str); 2] = [
    ("gVisor Systrap", "gvisor/gvisor-sentry-systrap.json"),
    ("gVisor nvproxy", "gvisor/gvisor-sentry-nvproxy.json"),
];

fn main() {
    let rounds = std::env::args().find_map(|argument| argument.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    let lists = [71, 200, 1000].map(|count| (format!("{count} requests"), requests(count)));
    for (label, ruleset) in &lists {
        println!("{label}: {} instructions", length(ruleset));
    }
    let contestants = lists.iter();
    let contestants = contestants.map(|(label, list)| Contestant::new(label, || length(list)));
    print!("{}", compare(&mut contestants.collect::<Vec<_>>(), rounds));
    let compiler = Compiler::open();
    for (label, file) in SANDBOXES {
        let ruleset = gvisor::ruleset(file);
        beside_gvisor(label, file, &ruleset, compiler.as_ref().ok(), rounds);
    }
    if let Err(missing) = compiler {
        println!("missing: {missing}");
    }
}

fn length(ruleset: &Ruleset) -> usize {
    let compiled = compile(ruleset, &CompileOptions::default());
    compiled
        .expect("the ruleset compiles")
        .program()
        .unwrap()
        .len()
}

/// Times a policy of gVisor with tamis and, if available, with gVisor's compiler.
fn beside_gvisor(
    label: &str,
    file: &str,
    ruleset: &Ruleset,
    compiler: Option<&Compiler>,
    rounds: usize,
) {
    let builder = compiler.map(|compiler| compiler.with_policy(file).expect("it can be run"));
    let build = || builder.as_ref()?.build().ok();
    print!("{label}: {} instructions", length(ruleset));
    let mut contestants = vec![Contestant::new("tamis", || length(ruleset))];
    if let Some((program, _)) = build() {
        print!(", by gVisor {}", program.len());
        contestants.push(Contestant::with_own_clock("gVisor", || {
            build().map_or_else(Default::default, |(_, time)| time)
        }));
    }
    print!("\n{}", compare(&mut contestants, rounds));
}
