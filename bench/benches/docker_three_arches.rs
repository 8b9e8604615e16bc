//! Docker's default profile compiled for x86-64, x86 and x32, from the text to raw bytes, by tamis and by the
//! system's libseccomp, in one run.
//!
//! `cargo bench -p tamis-bench`; the first argument is the number of rounds. tamis proves every program, and its time
//! includes the proof.

use std::process::ExitCode;

use tamis_bench::policies::{DOCKER, docker_ruleset};
use tamis_bench::ratio::{Contestant, compare};
use tamis_bench::runc;
use tamis_compiler::{CompileOptions, Effort};
use tamis_testkit::libseccomp::Library;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::{corpus, harness};

const ROUNDS: usize = 15;

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    let text = corpus::text(DOCKER);
    let library = Library::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason));
    let rounds = std::env::args().find_map(|argument| argument.parse().ok());
    let libseccomp = |optimize| {
        let program = runc::compile(&library, &text, optimize);
        program.expect("libseccomp takes the profile").len()
    };
    let tamis = |effort| {
        let options = CompileOptions {
            effort,
            ..CompileOptions::default()
        };
        let ruleset = docker_ruleset(DOCKER, &text);
        let compiled = tamis_compiler::compile(&ruleset, &options);
        let compiled = compiled.expect("the profile compiles");
        compiled.program().unwrap().to_bytes().len() / 8
    };
    let (full, quick) = (|| tamis(Effort::Full), || tamis(Effort::Quick));
    let (list, tree) = (|| libseccomp(1), || libseccomp(2));
    let (major, minor, micro) = library.version();
    println!("libseccomp {major}.{minor}.{micro}");
    println!(
        "instructions: tamis {}, quick {}, list {}, tree {}",
        full(),
        quick(),
        list(),
        tree()
    );
    let mut contestants = [
        Contestant::new("tamis", full),
        Contestant::new("tamis, quick", quick),
        Contestant::new("libseccomp, list", list),
        Contestant::new("libseccomp, tree", tree),
    ];
    print!("{}", compare(&mut contestants, rounds.unwrap_or(ROUNDS)));
}
