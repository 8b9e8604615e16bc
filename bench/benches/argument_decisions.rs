//! Policies whose work is in the arguments: gVisor's, and long lists of `ioctl` requests.
//!
//! `cargo bench -p tamis-bench --bench argument_decisions`; the first argument is the number of rounds.
//! The times are those from the ruleset to the proven program.

use tamis_bench::ratio::{Contestant, compare};
use tamis_bench::requests::requests;
use tamis_compiler::{Options, compile};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::gvisor;

const ROUNDS: usize = 15;

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
