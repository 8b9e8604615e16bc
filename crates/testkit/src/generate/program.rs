//! Random programs, and inputs that cover their branches.
//!
//! [`program`] gives programs that the kernel accepts, with every instruction of the machine and a bias towards
//! results that can be observed; [`nearly_valid`] breaks such a list in one place or leaves it intact; [`noise`] is
//! unstructured. [`data`] draws inputs with words near the constants of the program, so that branches go both ways.

use tamis_abi::{Action, Arch, Endian, SeccompData, Word};
use tamis_bpf::{AluOp, Insn, Op, Operand, Operation, Program, Test};

use crate::rng::Rng;

const TESTS: [Test; 4] = [Test::Eq, Test::Gt, Test::Ge, Test::Set];

/// The number of instructions at the beginning and the end of a program.
const FRAME_INSNS: usize = 5;

/// A program of `body_insns` random instructions and five more: these load a word at the beginning, and return twelve
/// bits of A as an errno at the end.
pub fn program(rng: &mut Rng, body_insns: usize, endian: Endian) -> Program {
    let len_insns = body_insns + FRAME_INSNS;
    let mut insns = vec![Insn::from(load_data(rng))];
    while insns.len() < len_insns - 4 {
        let behind = len_insns - insns.len() - 1;
        insns.push(op(rng, behind, load_data).into());
    }
    let shown_bits = Op::Alu(AluOp::Rsh, Operand::K(*rng.choose(&[0, 0, 10, 20])));
    let masked = Op::Alu(AluOp::And, Operand::K(0xfff));
    let errno = Op::Alu(AluOp::Or, Operand::K(Action::errno(0).ret()));
    insns.extend([shown_bits, masked, errno, Op::RetA].map(Insn::from));
    // The random choice does not avoid reads of slots that are not written on some path.
    loop {
        match Program::new(insns.clone(), endian) {
            Ok(program) => return program,
            Err(problem) => insns[problem.pc.0] = Op::Store(rng.range(0..=15) as u32).into(),
        }
    }
}

/// The instructions of the program with random values in unused fields.
pub fn with_unused_fields(rng: &mut Rng, program: &Program) -> Vec<Insn> {
    let noisy = |insn: &Insn| {
        let candidates = [
            Insn {
                jt: rng.next_u32() as u8,
                ..*insn
            },
            Insn {
                jf: rng.next_u32() as u8,
                ..*insn
            },
            Insn {
                k: rng.next_u32(),
                ..*insn
            },
        ];
        let unchanged = candidates
            .into_iter()
            .filter(|noisy| noisy.op() == insn.op());
        let unchanged: Vec<Insn> = unchanged.collect();
        if unchanged.is_empty() || rng.chance(1, 2) {
            *insn
        } else {
            *rng.choose(&unchanged)
        }
    };
    program.insns().iter().map(noisy).collect()
}

/// A valid list with one change, after which it may still be valid.
pub fn nearly_valid(rng: &mut Rng, body_insns: usize) -> Vec<Insn> {
    let program = program(rng, body_insns, Endian::Little);
    altered(rng, program.insns())
}

/// A list with one change.
///
/// # Panics
/// If the list is empty.
pub fn altered(rng: &mut Rng, insns: &[Insn]) -> Vec<Insn> {
    let mut insns = insns.to_vec();
    let at = rng.index(insns.len());
    match rng.range(0..=7) {
        0 => insns[at].code ^= 1 << rng.range(0..=15),
        1 => insns[at].code = any_code(rng),
        2 => insns[at].jt = rng.range(0..=insns.len().min(255) as u64) as u8,
        3 => insns[at].jf = rng.range(0..=insns.len().min(255) as u64) as u8,
        4 => insns[at].k = rng.range(0..=70) as u32,
        5 => insns[at].k = rng.interesting_u64() as u32,
        6 => {
            insns.remove(at);
        }
        _ => insns.truncate(at + 1),
    }
    insns
}

/// Unstructured instructions: legal or random codes, fields with any values.
pub fn noise(rng: &mut Rng, len_insns: usize) -> Vec<Insn> {
    let insn = |left: usize| {
        if rng.chance(1, 20) {
            return Insn {
                code: rng.next_u32() as u16,
                jt: rng.next_u32() as u8,
                jf: rng.next_u32() as u8,
                k: rng.interesting_u64() as u32,
            };
        }
        let mut insn = Insn::from(op(rng, left.max(1), load_data));
        if rng.chance(1, 30) {
            insn.k = rng.interesting_u64() as u32;
        }
        insn
    };
    (0..len_insns).rev().map(insn).collect()
}

/// An input for x86_64, x32 or i386 with words near constants of the program, or any words.
///
/// The instruction pointer is arbitrary, because the caller of a system call controls it.
pub fn data(rng: &mut Rng, program: &Program) -> SeccompData {
    const X32: u32 = 1 << 30;
    let near = rng.choose(program.insns()).k;
    let number = rng.range(0..=470) as u32;
    let arch = *rng.choose(&[Arch::X86_64, Arch::X86_64, Arch::X86_64, Arch::X86]);
    let mut data = SeccompData {
        nr: *rng.choose(&[
            number,
            number | X32,
            near,
            near,
            0x1_f000,
            0x7fff_fffe,
            u32::MAX,
        ]),
        arch: arch.audit(),
        ..SeccompData::default()
    };
    for word in Word::all().skip(2) {
        let value = match rng.range(0..=2) {
            0 => rng.interesting_u64() as u32,
            _ => rng
                .choose(program.insns())
                .k
                .wrapping_add(rng.range(0..=2) as u32)
                .wrapping_sub(1),
        };
        data = data.with_word(word, value);
    }
    data
}

/// An opcode: classic BPF has many, of which seccomp accepts some.
fn any_code(rng: &mut Rng) -> u16 {
    let class = rng.range(0..=7) as u16;
    let mode = (rng.range(0..=31) as u16) << 3;
    class | mode
}

fn load_data(rng: &mut Rng) -> Op {
    Op::LoadData(rng.range(0..=15) as u32 * 4)
}

fn constant(rng: &mut Rng) -> u32 {
    match rng.range(0..=3) {
        0 => Arch::X86_64.audit(),
        1 => *rng.choose(&[39, 0x1000, 0x1_f000, 0x3fff_ffff, 0x7fff_fffe]),
        _ => rng.interesting_u64() as u32,
    }
}

fn alu<L, E>(rng: &mut Rng) -> Operation<L, E> {
    let op = *rng.choose(&AluOp::ALL);
    let operand = match op {
        _ if rng.chance(1, 3) => Operand::X,
        AluOp::Lsh | AluOp::Rsh => Operand::K(rng.range(0..=31) as u32),
        _ => Operand::K(constant(rng).max(1)),
    };
    Operation::Alu(op, operand)
}

/// A random instruction with `behind >= 1` instructions behind it; `load` draws what is the machine's own.
pub(super) fn op<L, E>(
    rng: &mut Rng,
    behind: usize,
    load: impl Fn(&mut Rng) -> Operation<L, E>,
) -> Operation<L, E> {
    let slot = rng.range(0..=15) as u32;
    let short = |rng: &mut Rng| match rng.range(0..=3) {
        0 => 0,
        1 => rng.index(behind.min(256)) as u8,
        _ => rng.index(behind.min(6)) as u8,
    };
    match rng.range(0..=39) {
        0..=5 => load(rng),
        6..=15 => alu(rng),
        16..=24 => Operation::Branch {
            test: *rng.choose(&TESTS),
            operand: match rng.range(0..=2) {
                0 => Operand::X,
                _ => Operand::K(constant(rng)),
            },
            jt: short(rng),
            jf: short(rng),
        },
        25 => Operation::LoadImm(constant(rng)),
        26 => Operation::LoadLen,
        27 => Operation::LoadXImm(constant(rng)),
        28 => Operation::LoadXLen,
        29 => Operation::Neg,
        30 | 31 => Operation::Tax,
        32 => Operation::Txa,
        33 => Operation::Store(slot),
        34 => Operation::StoreX(slot),
        35 => Operation::LoadMem(slot),
        36 => Operation::LoadXMem(slot),
        37 => Operation::Jump(rng.index(behind.min(8)) as u32),
        38 => Operation::RetImm(ret(rng)),
        _ => match rng.index(3) {
            0 => Operation::Tax,
            1 => Operation::Neg,
            _ => Operation::RetA,
        },
    }
}

fn ret(rng: &mut Rng) -> u32 {
    match rng.range(0..=9) {
        0 => Action::ALLOW.ret(),
        1 => rng.interesting_u64() as u32,
        _ => Action::errno(rng.range(1..=4095) as u16).ret(),
    }
}

#[cfg(test)]
mod tests {
    use tamis_bpf::validate::problems;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_program() {
        let draw = |seed| program(&mut Rng::new(seed), 20, Endian::Little);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_change_is_sometimes_harmful_and_sometimes_not() {
        let mut rng = Rng::new(3);
        let broken = |rng: &mut Rng| !problems(&nearly_valid(rng, 10)).is_empty();
        let count = (0..1000).filter(|_| broken(&mut rng)).count();
        assert!((200..900).contains(&count), "{count}");
    }

    #[test]
    fn noise_in_unused_fields_changes_the_list_and_nothing_else() {
        let mut rng = Rng::new(4);
        let plain = program(&mut rng, 30, Endian::Little);
        let noisy = with_unused_fields(&mut rng, &plain);
        assert_ne!(plain.insns(), noisy);
        let ops =
            |insns: &[Insn]| -> Vec<Option<Op>> { insns.iter().map(|insn| insn.op()).collect() };
        assert_eq!(ops(plain.insns()), ops(&noisy));
    }
}
