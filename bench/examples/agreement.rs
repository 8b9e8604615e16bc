//! All engines on random programs and inputs, until a number of evaluations: `cargo run --release -p tamis-bench
//! --example agreement -- 100000000`. Ends with an error at the first difference.

use std::env;

use tamis_abi::Endian;
use tamis_bpf::interp;
use tamis_jit::{Options, Seccomp, Socket};
use tamis_testkit::generate::{packet, program};
use tamis_testkit::rng::Rng;
use tamis_vm::Code;
use tamis_vm::threaded::Threaded;

/// Inputs for each program.
const INPUTS: u64 = 1000;

fn main() {
    let wanted = env::args().find_map(|argument| argument.parse().ok());
    let wanted: u64 = wanted.unwrap_or(10_000_000);
    if let Err(reason) = tamis_jit::probe() {
        eprintln!("{reason}");
        std::process::exit(4);
    }
    let programs = wanted.div_ceil(2 * INPUTS);
    for seed in 0..programs {
        let mut rng = Rng::new(seed);
        calls(&mut rng, seed);
        packets(&mut rng, seed);
    }
    let count = programs * INPUTS;
    println!("{programs} programs of each machine, {count} evaluations of each: no difference");
}

fn options(rng: &mut Rng, seed: u64) -> Options {
    let harden = rng.chance(1, 4).then_some(seed);
    Options { harden }
}

fn calls(rng: &mut Rng, seed: u64) {
    let endian = *rng.choose(&[Endian::Little, Endian::Big]);
    let body_insns = rng.range(1..=60) as usize;
    let program = program::program(rng, body_insns, endian);
    let native = Seccomp::compile(&program, &options(rng, seed)).expect("probed");
    let threaded = Threaded::seccomp(&program).expect("short");
    let (decoded, code) = (interp::Decoded::new(&program), Code::of_program(&program));
    let mut seen = code.nothing_seen();
    let mut call = program::data(rng, &program);
    for round in 0..INPUTS {
        match round % 50 {
            0 => call = program::data(rng, &program),
            _ => call.args[rng.index(6)] = rng.interesting_u64(),
        }
        let image = call.image(endian);
        let expected = decoded.run_traced(&call, &mut |_| {}).ret;
        // The evaluator with coverage takes the words by their meaning.
        let rets = [
            native.run(&image),
            threaded.run(&image),
            code.run(&call.image(Endian::Little), &mut seen),
        ];
        assert_eq!(rets, [expected; 3], "seed {seed}: {call:x?}");
    }
}

fn packets(rng: &mut Rng, seed: u64) {
    let body_insns = rng.range(1..=60) as usize;
    let program = packet::program(rng, body_insns);
    let native = Socket::compile(&program, &options(rng, seed)).expect("probed");
    let threaded = Threaded::packet(&program);
    let mut bytes = Vec::new();
    for round in 0..INPUTS {
        if round % 50 == 0 {
            bytes = packet::bytes(rng, &program);
        }
        let at = rng.index(bytes.len());
        bytes[at] = rng.next_u32() as u8;
        let captured = rng.range(1..=4 * bytes.len() as u64) as usize;
        let packet = packet::from_anywhere(rng, &bytes[..captured.min(bytes.len())]);
        let expected = interp::run_packet(&program, &packet).ret;
        let rets = [native.run(&packet), threaded.run(&packet)];
        assert_eq!(rets, [expected; 2], "seed {seed}: {packet:x?}");
    }
}
