//! Evaluators side by side, in one run: ours, libpcap's interpreter, rbpf, gVisor's interpreter, and the kernel, on
//! programs of `tcpdump`, on Docker's filters by libseccomp, and on a filter of gVisor's.
//!
//! `cargo bench -p tamis-bench --bench engines`; the first number is the count of rounds. With `-- seed` only the programs
//! of the patch of extended BPF run, beside its figures. With `-- agree N SEED` nothing is timed: N evaluations of random
//! programs are compared, which follow from the seed.

mod agree;
mod calls;
mod packets;
mod rbpf_vm;
mod table;

use std::env;
use std::hint::black_box;
use std::process::ExitCode;

use tamis_bench::gvisor::Compiler;
use tamis_pcap::Libpcap;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::{corpus, harness};

const ROUNDS: usize = 31;

/// Evaluations in a round.
const EVALUATIONS: usize = 10_000;

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    let arguments: Vec<String> = env::args().collect();
    let mut numbers = arguments
        .iter()
        .filter_map(|argument| argument.parse().ok());
    let number = numbers.next();
    if arguments.iter().any(|argument| argument == "agree") {
        return agree::run(number.unwrap_or(1_000_000), numbers.next().unwrap_or(1));
    }
    let rounds = number.map_or(ROUNDS, |number| number as usize);
    if let Err(reason) = tamis_jit::probe() {
        skip::because(Need::Live, reason);
    }
    let libpcap = Libpcap::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason));
    packets::run(&libpcap, rounds);
    if arguments.iter().any(|argument| argument == "seed") {
        return;
    }
    let gvisor = Compiler::open().inspect_err(|reason| println!("without gVisor: {reason}"));
    let peers = calls::Peers {
        libpcap: Some(&libpcap),
        gvisor: gvisor.as_ref().ok(),
    };
    for name in [
        "docker/docker-libseccomp-opt1.bpf",
        "docker/docker-libseccomp-opt2.bpf",
        "gvisor/gvisor-sentry-systrap.opt.bpf",
    ] {
        let program = corpus::program(name);
        calls::run(peers, name, &program, rounds);
        calls::compilation(name, &program, rounds);
    }
}

/// The sum of the values for all inputs, which makes each necessary.
fn sum<I>(inputs: &[I], mut run: impl FnMut(&I) -> u32) -> usize {
    let rets = inputs.iter().map(|input| run(black_box(input)) as usize);
    rets.sum()
}
