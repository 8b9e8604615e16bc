//! Where jumps lie in memory: processors of Intel decode a line of 32 bytes anew if a jump crosses its end or ends with
//! it, the comparison that is run as one with the jump included.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use tamis_abi::Endian;
use tamis_ebpf_vm::Op;
use tamis_ebpf_vm::check::{self, Layout, check};
use tamis_ebpf_vm::memory::Helpers;
use tamis_jit::{Extended, Options, Seccomp, Socket};
use tamis_testkit::generate;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

use super::agreement::unless_jit;

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

/// The ranges of the jumps in code, including fused instructions.
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

/// A random extended program, if the checker takes it, and whether it has loops.
fn extended(rng: &mut Rng, options: &Options) -> Option<(bool, Extended)> {
    let body_insns = rng.range(0..=60) as usize;
    let program = generate::extended::program(rng, body_insns, Endian::Little);
    let (layout, helpers) = (Layout::socket_filter(), Helpers::none());
    let checked = check(program, &layout, &helpers, &check::Options::default()).ok()?;
    let back = |(_, op): (_, Op)| op.skip().is_some_and(|skip| skip < 0);
    let has_loops = checked.program().ops().any(back);
    let compiled = Extended::compile(&checked, options).expect("programs are compiled here");
    Some((has_loops, compiled))
}

#[test]
fn no_jump_crosses_a_line_or_ends_with_it() {
    unless_jit();
    let (mut count, mut loops) = (0, 0);
    for seed in seeds::selected(0..1000) {
        let mut rng = Rng::new(seed);
        let body_insns = *rng.choose(&[3, 40, 400]);
        let options = Options {
            harden: rng.chance(1, 4).then_some(seed),
        };
        let calls = generate::program::program(&mut rng, body_insns, Endian::Little);
        let calls = Seccomp::compile(&calls, &options).expect("short enough");
        let packets = generate::packet::program(&mut rng, body_insns);
        let packets = Socket::compile(&packets, &options).expect("short enough");
        let extended = extended(&mut rng, &options);
        loops += u32::from(extended.as_ref().is_some_and(|(has_loops, _)| *has_loops));
        let extended = extended
            .as_ref()
            .map_or(&[][..], |(_, compiled)| compiled.code());
        for code in [calls.code(), packets.code(), extended] {
            for jump in jumps(code) {
                assert!(is_within_line(&jump), "seed {seed}: {jump:x?}");
                count += 1;
            }
        }
    }
    println!("{count} jumps, {loops} programs with loops");
    assert!(count > seeds::least(20_000) && loops > seeds::least(100));
}
