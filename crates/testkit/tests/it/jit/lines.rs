//! Where jumps lie in memory: processors of Intel decode a line of 32 bytes anew if a jump crosses its end or ends with
//! it, the comparison that is run as one with the jump included.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use tamis_abi::Endian;
use tamis_jit::{Options, Seccomp, Socket};
use tamis_testkit::generate;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

use super::agreement::without_jit;

const LINE_BYTES: u64 = 32;

/// Whether bytes are in one line and not at its end.
fn is_within_line(Range { start, end }: &Range<u64>) -> bool {
    start / LINE_BYTES == end / LINE_BYTES
}

/// The instructions that are run as one with a conditional jump behind them.
fn joins_jump(insn: &Instruction) -> bool {
    matches!(
        insn.mnemonic(),
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Sub
    )
}

/// Where the jumps of code lie, with what is run as one with them.
fn jumps(code: &[u8]) -> Vec<Range<u64>> {
    let address = code.as_ptr() as u64;
    let mut jumps = Vec::new();
    let mut before: Option<Instruction> = None;
    for insn in Decoder::with_ip(64, code, address, DecoderOptions::NONE) {
        let start = match (insn.flow_control(), before) {
            (FlowControl::Next, _) => None,
            (FlowControl::ConditionalBranch, Some(before)) if joins_jump(&before) => {
                Some(before.ip())
            }
            _ => Some(insn.ip()),
        };
        jumps.extend(start.map(|start| start..insn.next_ip()));
        before = Some(insn);
    }
    jumps
}

#[test]
fn no_jump_crosses_a_line_or_ends_with_it() {
    if without_jit() {
        return;
    }
    let mut count = 0;
    for seed in seeds::of(0..1000) {
        let mut rng = Rng::new(seed);
        let body_insns = *rng.choose(&[3, 40, 400]);
        let options = Options {
            harden: rng.chance(1, 4).then_some(seed),
        };
        let calls = generate::program::program(&mut rng, body_insns, Endian::Little);
        let calls = Seccomp::compile(&calls, &options).expect("short enough");
        let packets = generate::packet::program(&mut rng, body_insns);
        let packets = Socket::compile(&packets, &options).expect("short enough");
        for code in [calls.code(), packets.code()] {
            for jump in jumps(code) {
                assert!(is_within_line(&jump), "seed {seed}: {jump:x?}");
                count += 1;
            }
        }
    }
    println!("{count} jumps");
    assert!(count > seeds::least(20_000));
}
