//! The reference interpreter: the result of a program for one input. It *defines* the meaning of a program.
//!
//! The common part of the machines of seccomp and of sockets is written once; the difference is an [`Input`].
//!
//! It is written for comparison with the kernel's documentation line by line, not for speed. The optimiser
//! and every other evaluator are tested against it, and it is tested against the kernel.

use std::convert::Infallible;

use tamis_abi::{Endian, SeccompData};

use crate::insn::{AluOp, Op, Operation};
use crate::packet::{self, Packet};
use crate::program::{Pc, Program};
use crate::validate::{DATA_SIZE_BYTES, SLOTS};

/// The result of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The return value; [`Action::from_ret`](tamis_abi::Action::from_ret) explains it.
    pub ret: u32,
    /// How many instructions were executed, the return included; at least 1.
    pub steps: u32,
}

/// Evaluates a program on a call, as a machine of its byte order holds that in memory.
///
/// ```
/// use tamis_abi::{Endian, SeccompData};
/// use tamis_bpf::{Op, Program, interp};
/// let insns = [Op::LoadData(4), Op::RetA].map(Into::into);
/// let program = Program::new(insns.to_vec(), Endian::Little).unwrap();
/// let call = SeccompData { arch: 0xc000_003e, ..SeccompData::default() };
/// let run = interp::run(&program, &call);
/// assert_eq!((run.ret, run.steps), (0xc000_003e, 2));
/// ```
pub fn run(program: &Program, call: &SeccompData) -> Execution {
    run_traced(program, call, &mut |_| {})
}

/// The same on the sixteen words that a machine of the program's byte order has in memory.
pub fn run_image(program: &Program, image: &[u32; 16]) -> Execution {
    execute(|pc| program.op(pc), image, &mut |_| {})
}

/// Like [`run`], and calls `visit` with every instruction before it is executed.
pub fn run_traced(program: &Program, call: &SeccompData, visit: &mut impl FnMut(Pc)) -> Execution {
    execute(|pc| program.op(pc), &call.image(program.endian()), visit)
}

/// Evaluates a program of a socket on a packet.
///
/// ```
/// use tamis_bpf::packet::{Load, Op, Packet, Program, Size};
/// use tamis_bpf::interp;
/// let insns = [Op::LoadData(Load::Absolute(Size::Half, 12)), Op::RetA].map(Into::into);
/// let program = Program::new(insns.to_vec()).unwrap();
/// let mut frame = [0; 60];
/// frame[12] = 8;
/// assert_eq!(interp::run_packet(&program, &Packet::new(&frame)).ret, 0x800);
/// assert_eq!(interp::run_packet(&program, &Packet::new(&frame[..13])).ret, 0);
/// ```
pub fn run_packet(program: &packet::Program, packet: &Packet<'_>) -> Execution {
    execute(|pc| program.op(pc), packet, &mut |_| {})
}

/// The registers of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The accumulator.
    pub a: u32,
    /// The index register.
    pub x: u32,
}

/// A load that ends the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The return value.
    pub ret: u32,
}

/// The input that programs of a machine are evaluated on.
pub trait Input {
    /// The source of a load.
    type Load;
    /// The instructions that only it has.
    type Extra;

    /// The length that `ld len` gives.
    fn len_bytes(&self) -> u32;

    /// The loaded value.
    ///
    /// # Errors
    /// If it ends the program.
    fn load(&self, load: Self::Load, registers: Registers) -> Result<u32, Ended>;

    /// Runs an instruction that only it has; `None` ends the program with 0.
    fn run_extra(&self, extra: Self::Extra, registers: &mut Registers) -> Option<()>;
}

/// The sixteen words of `seccomp_data` as they lie in memory.
impl Input for [u32; 16] {
    type Load = u32;
    type Extra = Infallible;

    fn len_bytes(&self) -> u32 {
        DATA_SIZE_BYTES
    }

    fn load(&self, offset: u32, _: Registers) -> Result<u32, Ended> {
        Ok(self[offset as usize / 4])
    }

    fn run_extra(&self, extra: Infallible, _: &mut Registers) -> Option<()> {
        match extra {}
    }
}

/// A program whose instructions are decoded once for many evaluations.
#[derive(Clone, Debug)]
pub struct Decoded {
    ops: Vec<Op>,
    endian: Endian,
}

impl Decoded {
    /// Decodes a program.
    pub fn new(program: &Program) -> Decoded {
        Decoded {
            ops: program.ops().collect(),
            endian: program.endian(),
        }
    }

    /// The instructions, in order.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The same as [`run_traced`] of the program.
    pub fn run_traced(&self, call: &SeccompData, visit: &mut impl FnMut(Pc)) -> Execution {
        execute(|Pc(pc)| self.ops[pc], &call.image(self.endian), visit)
    }
}

/// The one definition of an evaluation, given the instruction at each place and the input.
fn execute<I: Input>(
    op_at: impl Fn(Pc) -> Operation<I::Load, I::Extra>,
    input: &I,
    visit: &mut impl FnMut(Pc),
) -> Execution {
    let mut registers = Registers::default();
    let mut memory = [0; SLOTS as usize];
    let mut pc = 0;
    let mut steps = 0;
    loop {
        visit(Pc(pc));
        steps += 1;
        let op = op_at(Pc(pc));
        pc += 1;
        let Registers { a, x } = &mut registers;
        match op {
            Operation::LoadData(load) => match input.load(load, registers) {
                Ok(value) => registers.a = value,
                Err(Ended { ret }) => return Execution { ret, steps },
            },
            Operation::LoadImm(k) => *a = k,
            Operation::LoadMem(slot) => *a = memory[slot as usize],
            Operation::LoadLen => *a = input.len_bytes(),
            Operation::LoadXImm(k) => *x = k,
            Operation::LoadXMem(slot) => *x = memory[slot as usize],
            Operation::LoadXLen => *x = input.len_bytes(),
            Operation::Store(slot) => memory[slot as usize] = *a,
            Operation::StoreX(slot) => memory[slot as usize] = *x,
            Operation::Alu(alu, operand) => match arithmetic(alu, *a, operand.value(*x)) {
                Some(result) => *a = result,
                None => return Execution { ret: 0, steps },
            },
            Operation::Neg => *a = a.wrapping_neg(),
            Operation::Jump(skip) => pc += skip as usize,
            Operation::Branch {
                test,
                operand,
                jt,
                jf,
            } => {
                let holds = test.holds(*a, operand.value(*x));
                pc += usize::from(if holds { jt } else { jf });
            }
            Operation::RetImm(ret) => return Execution { ret, steps },
            Operation::RetA => return Execution { ret: *a, steps },
            Operation::Tax => *x = *a,
            Operation::Txa => *a = *x,
            Operation::Extra(extra) => {
                if input.run_extra(extra, &mut registers).is_none() {
                    return Execution { ret: 0, steps };
                }
            }
        }
    }
}

/// The result of an operation; `None` for a division by zero, which ends the program with 0.
///
/// Wrapping shifts use the low five bits of the distance, as the kernel does for X.
pub const fn arithmetic(op: AluOp, a: u32, operand: u32) -> Option<u32> {
    Some(match op {
        AluOp::Add => a.wrapping_add(operand),
        AluOp::Sub => a.wrapping_sub(operand),
        AluOp::Mul => a.wrapping_mul(operand),
        AluOp::Div => return a.checked_div(operand),
        AluOp::And => a & operand,
        AluOp::Or => a | operand,
        AluOp::Xor => a ^ operand,
        AluOp::Lsh => a.wrapping_shl(operand),
        AluOp::Rsh => a.wrapping_shr(operand),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operand;
    use crate::insn::{Insn, Test};

    fn ret_of(ops: &[Op]) -> u32 {
        let program = Program::from_ops(ops, Endian::Little).unwrap();
        let call = SeccompData {
            nr: 7,
            arch: 7,
            ip: 7,
            args: [7; 6],
        };
        run(&program, &call).ret
    }

    #[test]
    fn registers_and_what_len_loads() {
        assert_eq!(ret_of(&[Op::RetA]), 0);
        assert_eq!(ret_of(&[Op::Txa, Op::RetA]), 0);
        assert_eq!(ret_of(&[Op::LoadLen, Op::RetA]), 64);
        assert_eq!(ret_of(&[Op::LoadXLen, Op::Txa, Op::RetA]), 64);
    }

    #[test]
    fn a_load_reads_the_half_that_lies_there_on_the_machine() {
        let call = SeccompData {
            args: [1 << 32 | 2, 0, 0, 0, 0, 0],
            ..SeccompData::default()
        };
        let ret = |offset, endian| {
            let insns = [Op::LoadData(offset), Op::RetA].map(Insn::from).to_vec();
            run(&Program::new(insns, endian).unwrap(), &call).ret
        };
        assert_eq!([16, 20].map(|offset| ret(offset, Endian::Little)), [2, 1]);
        assert_eq!([16, 20].map(|offset| ret(offset, Endian::Big)), [1, 2]);
    }

    #[test]
    fn shifts_by_x_use_its_low_five_bits() {
        let shift = |op, x| {
            let operand = Op::Alu(op, Operand::X);
            ret_of(&[Op::LoadImm(0x8000_0001), Op::LoadXImm(x), operand, Op::RetA])
        };
        assert_eq!(shift(AluOp::Lsh, 33), 2);
        assert_eq!(shift(AluOp::Rsh, 63), 1);
        assert_eq!(shift(AluOp::Lsh, 32), 0x8000_0001);
    }

    #[test]
    fn a_division_by_x_of_zero_ends_the_program_with_zero() {
        let divide = Op::Alu(AluOp::Div, Operand::X);
        assert_eq!(ret_of(&[Op::LoadImm(9), divide, Op::RetImm(5)]), 0);
    }

    #[test]
    fn arithmetic_wraps_and_division_is_unsigned() {
        assert_eq!(arithmetic(AluOp::Sub, 0, 1), Some(u32::MAX));
        assert_eq!(arithmetic(AluOp::Add, u32::MAX, 2), Some(1));
        assert_eq!(arithmetic(AluOp::Mul, 0x8000_0001, 2), Some(2));
        assert_eq!(arithmetic(AluOp::Div, u32::MAX, 2), Some(0x7fff_ffff));
        assert_eq!(ret_of(&[Op::LoadImm(1), Op::Neg, Op::RetA]), u32::MAX);
    }

    #[test]
    fn the_trace_names_every_step() {
        let branch = Op::branch(Test::Ge, 0x8000_0000, 1, 0);
        let ops = [
            Op::LoadData(0),
            branch,
            Op::Jump(1),
            Op::RetImm(1),
            Op::RetImm(2),
        ];
        let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
        let trace = |nr| {
            let mut trace = Vec::new();
            let call = SeccompData {
                nr,
                ..SeccompData::default()
            };
            let run = run_traced(&program, &call, &mut |pc| trace.push(pc.0));
            assert_eq!(run.steps as usize, trace.len());
            (trace, run.ret)
        };
        assert_eq!(trace(0x8000_0000), (vec![0, 1, 3], 1));
        assert_eq!(trace(0x7fff_ffff), (vec![0, 1, 2, 4], 2));
    }
}
