//! Printed and parsed texts, and the places of mistakes.

use tamis_abi::Endian;
use tamis_diag::Sources;

use super::*;
use crate::insn::{Address, AluOp, Atomic, Bits, Cond, Op, Place, Reg, Size, Source, Swap, Width};

/// The assembled instructions, or the id, the first label's text and the message of each mistake.
fn result(text: &str) -> Result<Vec<Insn>, Vec<(&'static str, String, String)>> {
    let mut sources = Sources::new();
    let source = sources.add("test.s", text);
    let describe = |diagnostic: &Diagnostic| {
        let place = sources.snippet(diagnostic.labels[0].span).to_owned();
        (diagnostic.code.id, place, diagnostic.message.clone())
    };
    match assemble(text, source) {
        Ok(assembly) => Ok(assembly.insns),
        Err(diagnostics) => Err(diagnostics.iter().map(describe).collect()),
    }
}

/// The only instruction.
fn op(line: &str) -> Op {
    let insns = result(line).unwrap_or_else(|mistakes| panic!("{line}: {mistakes:?}"));
    let op = decode(&insns).unwrap_or_else(|| panic!("{line}: {insns:?}"));
    assert_eq!(op.places(), insns.len());
    op
}

/// Code, place and message of the only mistake.
fn mistake(text: &str) -> (&'static str, String, String) {
    let mut mistakes = result(text).unwrap_err();
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes.remove(0)
}

#[test]
fn every_instruction_is_read_back() {
    let mut count = 0;
    for code in 0..=u8::MAX {
        for offset in [0, 1, 8, 16, 32, -8, i16::MIN] {
            for imm in [0, 1, 16, 32, 64, 0x40, 0x51, 0xa1, 0xe1, 0xf1, -1, i32::MIN] {
                for (dst, src) in [(1, 2), (1, 1), (0, 0), (10, 0), (0, 9)] {
                    let insn = Insn {
                        code,
                        dst,
                        src,
                        offset,
                        imm,
                    };
                    let upper = Insn {
                        imm: -3,
                        ..Insn::default()
                    };
                    let text = disassemble(&[insn, upper]);
                    assert_eq!(result(&text), Ok(vec![insn, upper]), "{text}");
                    count += usize::from(!text.starts_with(".insn"));
                }
            }
        }
    }
    assert!(count > 5000, "{count} are instructions");
}

#[test]
fn spellings_of_other_tools_are_read() {
    let at = Address {
        base: Reg::FRAME,
        offset: -8,
    };
    let r1 = Reg::R1;
    for (line, expected) in [
        ("0: (79) r1 = *(u64 *)(r10 -8)", Op::Load(Size::D, r1, at)),
        ("w1 = *(u32 *)(r10 - 8)", Op::Load(Size::W, r1, at)),
        ("*(u32 *)(r10 - 8) = w1", Op::Store(Size::W, at, r1)),
        (
            "r1 = *(s8 *)(r10-8) // sign",
            Op::LoadSigned(Size::B, r1, at),
        ),
        (
            "r1 = (s16)r1",
            Op::MoveSigned(Width::W64, Bits::B16, r1, r1),
        ),
        (
            "r1 s>>= 0x3f",
            Op::Alu(Width::W64, AluOp::Arsh, r1, Source::Imm(63)),
        ),
        (
            "w1 s%= w1",
            Op::Alu(Width::W32, AluOp::SMod, r1, Source::Reg(r1)),
        ),
        (
            "w1 = 0xffffffff",
            Op::Alu(Width::W32, AluOp::Mov, r1, Source::Imm(-1)),
        ),
        ("r1 = -1 ll", Op::LoadImm64(r1, u64::MAX)),
        (
            "r1 = 81985529216486895 ll",
            Op::LoadImm64(r1, 0x0123_4567_89ab_cdef),
        ),
        ("r1 = bswap32 r1", Op::Swap(Swap::Always, Bits::B32, r1)),
        (
            "r0 = *(u16 *)skb[r1 + 4]",
            Op::LoadPacket(Size::H, Place::Indirect(r1, 4)),
        ),
        (
            "lock *(u32 *)(r10 - 8) |= r1",
            Op::Atomic(Width::W32, Atomic::Or { fetch: false }, at, r1),
        ),
        (
            "r1 = atomic_fetch_add((u64 *)(r10 - 8), r1)",
            Op::Atomic(Width::W64, Atomic::Add { fetch: true }, at, r1),
        ),
        (
            "w0 = cmpxchg32_32(r10 - 8, w0, w1)",
            Op::Atomic(Width::W32, Atomic::CompareExchange, at, r1),
        ),
        (
            "if w1 s<= -1 goto -5",
            Op::Branch(Width::W32, Cond::SLe, r1, Source::Imm(-1), -5),
        ),
        ("call pc+70000", Op::CallLocal(70000)),
        ("gotol -70000", Op::JumpFar(-70000)),
    ] {
        assert_eq!(op(line), expected, "{line}");
    }
}

#[test]
fn labels_count_wide_instructions_twice() {
    let text = "start: if r1 == 0 goto end\n r0 = 1 ll\n call start\nend:\n exit ; done\n";
    let ops = [
        Op::Branch(Width::W64, Cond::Eq, Reg::R1, Source::Imm(0), 3),
        Op::LoadImm64(Reg::R0, 1),
        Op::CallLocal(-4),
        Op::Exit,
    ];
    let program = Program::from_ops(&ops, Endian::Little).unwrap();
    assert_eq!(result(text).unwrap(), program.insns());
}

#[test]
fn mistakes_name_their_place() {
    let said = |text: &str| {
        let (id, place, message) = mistake(text);
        (id, format!("{place}: {message}"))
    };
    assert_eq!(
        said("r0 = r11"),
        ("TM1501", "r11: expected a value, found `r11`".to_owned())
    );
    assert_eq!(said("r0 = w1").0, "TM1501");
    assert_eq!(
        said("exit\nmov r0, 1").1,
        "mov: expected an instruction, found `mov`"
    );
    assert_eq!(said("r0 += 2147483648").0, "TM1502");
    assert_eq!(said("r0 = *(u32 *)(r1 + 32768)").0, "TM1502");
    assert_eq!(said("goto +32768").0, "TM1502");
    assert_eq!(
        said("goto away"),
        ("TM0106", "away: label `away` is not defined".to_owned())
    );
    assert_eq!(said("a: exit\na: exit").0, "TM0107");
    assert_eq!(
        said("r0 = 1 @"),
        ("TM1501", "@: unexpected character `@`".to_owned())
    );
    assert_eq!(
        said("exit exit").1,
        "exit: expected the end of the line, found `exit`"
    );
}

#[test]
fn a_program_that_cannot_run_is_told_at_its_line() {
    let mut sources = Sources::new();
    let text = "r0 = 0\ngoto +5\nexit\n";
    let source = sources.add("test.s", text);
    let error = assemble(text, source)
        .unwrap()
        .into_program(Endian::Little)
        .unwrap_err();
    assert_eq!(sources.snippet(error.labels[0].span), "goto +5");
    assert_eq!(error.code.id, "TM1503");
}
