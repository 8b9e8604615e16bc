//! The kernel's action bitmap: the numbers for which a filter is never run.
//!
//! Since Linux 5.11 the kernel emulates a filter when it is installed, once for every number of the native and of the
//! compat architecture (`seccomp_is_const_allow` in `kernel/seccomp.c`). If the executed path reaches `ret #0x7fff0000`
//! and tests nothing but number and architecture, it sets a bit and never runs the filter for that number again. The
//! emulator supports a handful of instructions and stops at all others; other paths do not matter.
//!
//! Numbers that the kernel exempts from every filter (335 and 336, the uprobe calls of x86_64) are not a property of
//! the program and not modelled.

use tamis_abi::{Action, Arch};

use crate::insn::{AluOp, Op, Operand};
use crate::program::{Pc, Program};

/// The byte offset of the number in `struct seccomp_data`.
const NR_OFFSET: u32 = 0;
/// The byte offset of the architecture.
const ARCH_OFFSET: u32 = 4;

/// Whether the kernel caches that the program allows this number of this architecture (an `AUDIT_ARCH_*` value),
/// provided that it keeps a bitmap with the number: see [`Bitmap`].
pub fn is_cacheable(program: &Program, audit_arch: u32, nr: u32) -> bool {
    let mut a = 0;
    let mut pc = 0;
    loop {
        let op = program.op(Pc(pc));
        pc += 1;
        match op {
            Op::LoadData(NR_OFFSET) => a = nr,
            Op::LoadData(ARCH_OFFSET) => a = audit_arch,
            Op::Alu(AluOp::And, Operand::K(mask)) => a &= mask,
            Op::Jump(skip) => pc += skip as usize,
            Op::Branch {
                test,
                operand: Operand::K(k),
                jt,
                jf,
            } => pc += usize::from(if test.holds(a, k) { jt } else { jf }),
            Op::RetImm(ret) => return ret == Action::ALLOW.ret(),
            _ => return false,
        }
    }
}

/// One bitmap of a kernel: an architecture and the numbers that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// The `AUDIT_ARCH_*` value.
    pub audit_arch: u32,
    /// How many numbers it covers, from 0: the kernel's `NR_syscalls`.
    pub numbers: u32,
}

impl Bitmap {
    /// The two bitmaps of Linux 6.18 on x86-64: native calls, and those of 32-bit programs.
    ///
    /// x32 numbers lie in neither.
    pub const X86_64_LINUX_6_18: [Bitmap; 2] = [
        Bitmap {
            audit_arch: Arch::X86_64.audit(),
            numbers: 470,
        },
        Bitmap {
            audit_arch: Arch::X86.audit(),
            numbers: 470,
        },
    ];

    /// The numbers that are cached if the programs, installed on one task, are all its filters;
    /// ascending. A number must be cacheable in every one of them.
    pub fn cached<'a>(self, programs: &'a [Program]) -> impl Iterator<Item = u32> + 'a {
        (0..self.numbers).filter(move |nr| {
            programs
                .iter()
                .all(|program| is_cacheable(program, self.audit_arch, *nr))
        })
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;

    use super::*;
    use crate::insn::Test;

    const ALLOW: Op = Op::RetImm(0x7fff_0000);
    const NATIVE: u32 = Arch::X86_64.audit();

    fn program(ops: &[Op]) -> Program {
        Program::from_ops(ops, Endian::Little).unwrap()
    }

    fn cacheable(ops: &[Op]) -> bool {
        is_cacheable(&program(ops), NATIVE, 39)
    }

    fn skip_if(test: Test, operand: Operand) -> Op {
        Op::Branch {
            test,
            operand,
            jt: 1,
            jf: 0,
        }
    }

    #[test]
    fn only_plain_allow_is_remembered() {
        assert!(cacheable(&[ALLOW]));
        for ret in [0, 0x7fff_0001, 0x7ffc_0000, 0x8000_0000] {
            assert!(!cacheable(&[Op::RetImm(ret)]), "{ret:#x}");
        }
        assert!(!cacheable(&[Op::RetA]));
    }

    #[test]
    fn the_emulator_knows_these_instructions() {
        let known = [
            Op::LoadData(0),
            Op::LoadData(4),
            Op::Alu(AluOp::And, Operand::K(0xff)),
            Op::Jump(0),
            skip_if(Test::Eq, Operand::K(1)),
            skip_if(Test::Gt, Operand::K(1)),
            skip_if(Test::Ge, Operand::K(1)),
            skip_if(Test::Set, Operand::K(1)),
        ];
        for op in known {
            assert!(cacheable(&[op, ALLOW, ALLOW]), "{op:?}");
        }
    }

    #[test]
    fn any_other_instruction_on_the_path_prevents_it() {
        let alu = [
            AluOp::Add,
            AluOp::Sub,
            AluOp::Mul,
            AluOp::Div,
            AluOp::Or,
            AluOp::Xor,
            AluOp::Lsh,
            AluOp::Rsh,
        ];
        let mut unknown = vec![
            Op::LoadData(8),
            Op::LoadData(60),
            Op::LoadImm(1),
            Op::LoadXImm(1),
            Op::LoadLen,
            Op::LoadXLen,
            Op::Store(0),
            Op::StoreX(0),
            Op::Tax,
            Op::Txa,
            Op::Neg,
            Op::Alu(AluOp::And, Operand::X),
            skip_if(Test::Eq, Operand::X),
            skip_if(Test::Set, Operand::X),
        ];
        unknown.extend(alu.map(|op| Op::Alu(op, Operand::K(1))));
        for op in unknown {
            assert!(!cacheable(&[op, ALLOW, ALLOW]), "{op:?}");
            assert!(
                cacheable(&[Op::Jump(1), op, ALLOW, ALLOW]),
                "{op:?} in dead code"
            );
        }
    }

    #[test]
    fn a_stack_caches_what_every_filter_caches() {
        let only = |nr| {
            let test = skip_if(Test::Eq, Operand::K(nr));
            program(&[Op::LoadData(0), test, Op::RetImm(0), ALLOW])
        };
        let bitmap = Bitmap {
            audit_arch: NATIVE,
            numbers: 5,
        };
        let cached = |programs: &[Program]| bitmap.cached(programs).collect::<Vec<u32>>();
        assert_eq!(cached(&[program(&[ALLOW])]), [0, 1, 2, 3, 4]);
        assert_eq!(cached(&[program(&[ALLOW]), only(4)]), [4]);
        assert_eq!(cached(&[only(5)]), []);
        assert_eq!(cached(&[only(3), only(4)]), []);
    }
}
