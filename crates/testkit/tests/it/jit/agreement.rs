//! Machine code returns what the reference interpreter returns.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::{AluOp, Insn, Op, Operand, Pc, Program, interp};
use tamis_jit::{Entry, Error, Options, Seccomp};
use tamis_testkit::corpus;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::program::{data, program};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

use super::guarded::Guarded;

/// The inputs for each random program.
const INPUTS: usize = 400;

/// Whether nothing can be compiled here; prints the reason if so.
pub(super) fn without_jit() -> bool {
    let refused = tamis_jit::probe().err();
    if let Some(reason) = &refused {
        skip::because(Need::Live, reason);
    }
    refused.is_some()
}

fn compile(program: &Program, options: &Options) -> Seccomp {
    Seccomp::compile(program, options).expect("short programs are compiled here")
}

/// The result of the reference interpreter for an image in the program's byte order.
fn expected(decoded: &interp::Decoded, call: &SeccompData) -> u32 {
    decoded.run_traced(call, &mut |_| {}).ret
}

#[test]
fn random_programs_return_the_same_at_both_ends_of_readable_memory() {
    if without_jit() {
        return;
    }
    let mut guarded = Guarded::new();
    let mut evaluations = 0;
    for seed in seeds::of(0..2500) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Little, Endian::Big]);
        let body_insns = *rng.choose(&[3, 10, 40, 120]);
        let program = program(&mut rng, body_insns, endian);
        let options = Options {
            harden: rng.chance(1, 4).then_some(seed),
        };
        let (compiled, decoded) = (compile(&program, &options), interp::Decoded::new(&program));
        let mut call = SeccompData::default();
        for round in 0..INPUTS {
            if round % 40 == 0 {
                call = data(&mut rng, &program);
            } else {
                let arg = &mut call.args[rng.index(6)];
                *arg = rng.interesting_u64();
            }
            let image = guarded.words(round % 2 == 0, &call.image(endian));
            let ret = compiled.run(image);
            assert_eq!(ret, expected(&decoded, &call), "seed {seed}, {call:x?}");
            evaluations += 1;
        }
    }
    println!("{evaluations} evaluations");
}
