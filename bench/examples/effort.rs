//! Docker's default profile for three architectures, compiled repeatedly, for counting instructions.
//!
//! `valgrind --tool=callgrind target/release/examples/effort 6 quick`; the difference between 6 and 1 is 5
//! compilations, without reading the profile.

use std::process::ExitCode;

use tamis_bench::policies::{DOCKER, docker_ruleset};
use tamis_compiler::{CompileOptions, Effort, compile};
use tamis_testkit::{corpus, harness};

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok());
    let effort = arguments.next().and_then(|name| Effort::from_name(&name));
    let text = corpus::text(DOCKER);
    let ruleset = docker_ruleset(DOCKER, &text);
    let options = CompileOptions {
        effort: effort.unwrap_or_default(),
        ..CompileOptions::default()
    };
    for _ in 0..rounds.unwrap_or(1) {
        let compiled = compile(&ruleset, &options).expect("the profile compiles");
        println!("{} instructions", compiled.template().unbound().len());
    }
}
