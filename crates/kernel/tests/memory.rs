//! How much memory programs take, as the kernel shows it.
//!
//! An executable of its own: the kernel's list of memory areas has the programs of all processes, so nothing of
//! this package may install filters meanwhile.

#[macro_use]
extern crate tamis_testkit;

use std::process::ExitCode;

use tamis_abi::Action;
use tamis_bpf::{Insn, Op, Program, Test};
use tamis_kernel::NATIVE_ENDIAN;
use tamis_kernel::measure::memory::{self, MemoryError};
use tamis_testkit::harness;
use tamis_testkit::skip::{self, Need};

fn main() -> ExitCode {
    harness::main()
}

fn program(ops: Vec<Op>) -> Program {
    let insns = ops.into_iter().map(Insn::from).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("it is valid")
}

#[test]
fn longer_programs_take_more_memory() {
    skip::unless_live();
    let chain = |len| {
        let mut ops = vec![Op::LoadData(0); len];
        ops.push(Op::RetImm(Action::ALLOW.ret()));
        vec![program(ops)]
    };
    // A comparison with so large a constant is two instructions once it is converted: more than a page.
    let grows = Op::branch(Test::Eq, u32::MAX, 0, 0);
    let mut ops = vec![grows; 400];
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    let grown = vec![program(ops)];
    let bytes = [chain(1), grown, chain(4000)].map(|stack| memory::program_bytes(&stack));
    // Each converted instruction takes eight bytes.
    match bytes {
        [Ok(short), Ok(grown), Ok(long)] => {
            assert!(short >= 8 && grown >= 6400 && long >= 32000);
            assert!(short < grown && grown < long, "{short} {grown} {long}");
        }
        other => {
            let mut errors = other.into_iter().filter_map(Result::err);
            let error = errors.next().expect("one isn't known");
            assert!(!matches!(error, MemoryError::Measure(_)), "{error}");
            skip::because(Need::Live, error);
        }
    }
}
