//! The functions of instructions.
//!
//! Arithmetic and branches are generic functions of their operation, instantiated for each: the semantics are those of
//! [`semantics`](crate::semantics), and the compiler keeps one case of them. Loads and stores are generic by size and
//! by direct access to the frame. The rest is one function.

use super::{Insn, Machine, Next};
use crate::insn::{Address, AluOp, Atomic, Cond, Op, Place, Reg, Size, Source, Width};
use crate::interp::{Fault, FaultReason, packet_value};
use crate::memory::{AccessError, FRAME_BYTES, number, registers};
use crate::program::Pc;
use crate::semantics::{arithmetic, holds, immediate, negate, sign_extended, swapped, truncated};

/// The instance of a generic function for accesses of a size, in the newest frame or anywhere.
macro_rules! access_handler {
    ($function:ident, $size:expr, $in_frame:expr) => {{
        let [in_frame, anywhere]: [[super::Handler; 4]; 2] = [
            [
                $function::<0, true>,
                $function::<1, true>,
                $function::<2, true>,
                $function::<3, true>,
            ],
            [
                $function::<0, false>,
                $function::<1, false>,
                $function::<2, false>,
                $function::<3, false>,
            ],
        ];
        let all = if $in_frame { in_frame } else { anywhere };
        all[$size.bytes().trailing_zeros() as usize]
    }};
}

/// An instruction with its function, which calls that of its target only if it `stays` in its part of the program.
pub(super) fn insn(op: Op, here: u32, target: u32, stays: bool) -> Insn {
    let of = |source| match source {
        Source::Imm(imm) => (0, immediate(imm)),
        Source::Reg(reg) => (reg.number(), 0),
    };
    let (handler, dst, (src, imm)): (super::Handler, u8, (u8, u64)) = match op {
        Op::Alu(width, alu, dst, source) => {
            (alu_handler(width, alu, source), dst.number(), of(source))
        }
        Op::LoadImm64(dst, value) => (
            alu_handler(Width::W64, AluOp::Mov, Source::Imm(0)),
            dst.number(),
            (0, value),
        ),
        Op::Branch(width, cond, dst, source, _) => (
            branch_handler(width, cond, source, stays),
            dst.number(),
            of(source),
        ),
        Op::Jump(_) | Op::JumpFar(_) if stays => (jump, 0, (0, 0)),
        Op::Jump(_) | Op::JumpFar(_) => (jump_away, 0, (0, 0)),
        Op::Load(size, dst, at) => {
            let access = (at.base.number(), at.displacement());
            (
                access_handler!(load, size, in_frame(at, size)),
                dst.number(),
                access,
            )
        }
        Op::Store(size, at, src) => {
            let access = (src.number(), at.displacement());
            (
                access_handler!(store, size, in_frame(at, size)),
                at.base.number(),
                access,
            )
        }
        Op::LoadPacket(size, place) => load_packet_insn(size, place),
        Op::Exit => (exit, 0, (0, 0)),
        _ => (other, 0, (0, 0)),
    };
    Insn {
        handler,
        here,
        next: here + 1,
        target,
        dst,
        src,
        imm,
    }
}

/// The function of a load from the packet, and the register and the constant of its place.
fn load_packet_insn(size: Size, place: Place) -> (super::Handler, u8, (u8, u64)) {
    let (by_size, src, offset): ([super::Handler; 4], u8, i32) = match place {
        Place::Absolute(offset) => (
            [
                load_packet::<0, false>,
                load_packet::<1, false>,
                load_packet::<2, false>,
                load_packet::<3, false>,
            ],
            0,
            offset,
        ),
        Place::Indirect(reg, offset) => (
            [
                load_packet::<0, true>,
                load_packet::<1, true>,
                load_packet::<2, true>,
                load_packet::<3, true>,
            ],
            reg.number(),
            offset,
        ),
    };
    let handler = by_size[size.bytes().trailing_zeros() as usize];
    (handler, 0, (src, offset as u64))
}

/// Whether an access lies in the newest frame.
fn in_frame(at: Address, size: Size) -> bool {
    let end = i64::from(at.offset) + size.bytes() as i64;
    at.base == Reg::FRAME && at.offset >= -(FRAME_BYTES as i16) && end <= 0
}

/// Calls the function of another instruction.
#[inline(always)]
fn go(insns: &[Insn], at: u32, machine: &mut Machine<'_, '_, '_>) -> Next {
    let insn = &insns[at as usize];
    (insn.handler)(insns, insn, machine)
}

impl Machine<'_, '_, '_> {
    /// The decoded instruction and its place in the program.
    fn decoded(&self, insn: &Insn) -> (Op, Pc) {
        self.ops[insn.here as usize]
    }

    #[inline(always)]
    fn get(&self, reg: u8) -> u64 {
        self.registers[usize::from(reg & 15)]
    }

    #[inline(always)]
    fn set(&mut self, reg: u8, value: u64) {
        self.registers[usize::from(reg & 15)] = value;
    }
}

/// The instances of a generic function for all operations of a table, with the other parameters.
macro_rules! instances {
    ($function:ident, $wide:ident, $reg:ident; $($index:literal)*) => {
        [$($function::<$index, $wide, $reg>),*]
    };
    ($function:ident, $wide:ident, $reg:ident, $stays:ident; $($index:literal)*) => {
        [$($function::<$index, $wide, $reg, $stays>),*]
    };
}

fn alu<const OP: usize, const WIDE: bool, const REG: bool>(
    insns: &[Insn],
    insn: &Insn,
    machine: &mut Machine<'_, '_, '_>,
) -> Next {
    let operand = if REG { machine.get(insn.src) } else { insn.imm };
    let width = if WIDE { Width::W64 } else { Width::W32 };
    let value = arithmetic(width, AluOp::ALL[OP], machine.get(insn.dst), operand);
    machine.set(insn.dst, value);
    go(insns, insn.next, machine)
}

const fn alus<const WIDE: bool, const REG: bool>() -> [super::Handler; 14] {
    instances!(alu, WIDE, REG; 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
}

fn alu_handler(width: Width, op: AluOp, source: Source) -> super::Handler {
    let all = match (width, source) {
        (Width::W32, Source::Imm(_)) => alus::<false, false>(),
        (Width::W32, Source::Reg(_)) => alus::<false, true>(),
        (Width::W64, Source::Imm(_)) => alus::<true, false>(),
        (Width::W64, Source::Reg(_)) => alus::<true, true>(),
    };
    let index = AluOp::ALL.iter().position(|known| *known == op);
    all[index.expect("the list has all operations")]
}

fn branch<const COND: usize, const WIDE: bool, const REG: bool, const STAYS: bool>(
    insns: &[Insn],
    insn: &Insn,
    machine: &mut Machine<'_, '_, '_>,
) -> Next {
    let operand = if REG { machine.get(insn.src) } else { insn.imm };
    let width = if WIDE { Width::W64 } else { Width::W32 };
    if !holds(width, Cond::ALL[COND], machine.get(insn.dst), operand) {
        go(insns, insn.next, machine)
    } else if STAYS {
        go(insns, insn.target, machine)
    } else {
        Next::At(insn.target)
    }
}

const fn branches<const WIDE: bool, const REG: bool, const STAYS: bool>() -> [super::Handler; 11] {
    instances!(branch, WIDE, REG, STAYS; 0 1 2 3 4 5 6 7 8 9 10)
}

fn branch_handler(width: Width, cond: Cond, source: Source, stays: bool) -> super::Handler {
    let all = match (width, source, stays) {
        (Width::W32, Source::Imm(_), false) => branches::<false, false, false>(),
        (Width::W32, Source::Reg(_), false) => branches::<false, true, false>(),
        (Width::W64, Source::Imm(_), false) => branches::<true, false, false>(),
        (Width::W64, Source::Reg(_), false) => branches::<true, true, false>(),
        (Width::W32, Source::Imm(_), true) => branches::<false, false, true>(),
        (Width::W32, Source::Reg(_), true) => branches::<false, true, true>(),
        (Width::W64, Source::Imm(_), true) => branches::<true, false, true>(),
        (Width::W64, Source::Reg(_), true) => branches::<true, true, true>(),
    };
    let index = Cond::ALL.iter().position(|known| *known == cond);
    all[index.expect("the list has all comparisons")]
}

fn jump(insns: &[Insn], insn: &Insn, machine: &mut Machine<'_, '_, '_>) -> Next {
    go(insns, insn.target, machine)
}

fn jump_away(_: &[Insn], insn: &Insn, _: &mut Machine<'_, '_, '_>) -> Next {
    Next::At(insn.target)
}

#[cold]
fn fault(insn: &Insn, reason: FaultReason, machine: &mut Machine<'_, '_, '_>) -> Next {
    let (_, pc) = machine.decoded(insn);
    machine.fault = Fault { pc, reason };
    Next::Fault
}

fn load<const SIZE: usize, const FRAME: bool>(
    insns: &[Insn],
    insn: &Insn,
    machine: &mut Machine<'_, '_, '_>,
) -> Next {
    let size = Size::ALL[SIZE];
    let value = if FRAME {
        let at = FRAME_BYTES.wrapping_add(insn.imm as usize);
        let endian = machine.memory.endian();
        number(
            &machine.memory.newest_frame()[at..at + size.bytes()],
            endian,
        )
    } else {
        let address = machine.get(insn.src).wrapping_add(insn.imm);
        match machine.memory.read(address, size) {
            Ok(value) => value,
            Err(error) => return fault(insn, FaultReason::Access(error), machine),
        }
    };
    machine.set(insn.dst, value);
    go(insns, insn.next, machine)
}

fn store<const SIZE: usize, const FRAME: bool>(
    insns: &[Insn],
    insn: &Insn,
    machine: &mut Machine<'_, '_, '_>,
) -> Next {
    let size = Size::ALL[SIZE];
    let value = machine.get(insn.src);
    if FRAME {
        let at = FRAME_BYTES.wrapping_add(insn.imm as usize);
        let bytes = match machine.memory.endian() {
            tamis_abi::Endian::Little => value.to_le_bytes(),
            tamis_abi::Endian::Big => value.rotate_right(8 * size.bytes() as u32).to_be_bytes(),
        };
        let written = &bytes[..size.bytes()];
        machine.memory.newest_frame()[at..at + size.bytes()].copy_from_slice(written);
    } else {
        let address = machine.get(insn.dst).wrapping_add(insn.imm);
        if let Err(error) = machine.memory.write(address, size, value) {
            return fault(insn, FaultReason::Access(error), machine);
        }
    }
    go(insns, insn.next, machine)
}

fn load_packet<const SIZE: usize, const INDIRECT: bool>(
    insns: &[Insn],
    insn: &Insn,
    machine: &mut Machine<'_, '_, '_>,
) -> Next {
    let offset = insn.imm as i32;
    let (place, index) = match INDIRECT {
        true => (Place::Indirect(Reg::R0, offset), machine.get(insn.src)),
        false => (Place::Absolute(offset), 0),
    };
    let Some(value) = packet_value(machine.memory.packet(), Size::ALL[SIZE], place, index) else {
        return Next::EndWithZero;
    };
    machine.set(0, value);
    go(insns, insn.next, machine)
}

fn exit(_: &[Insn], _: &Insn, machine: &mut Machine<'_, '_, '_>) -> Next {
    let Some((back, kept)) = machine.callers.pop() else {
        return Next::End;
    };
    machine.memory.leave();
    machine.registers[6..10].copy_from_slice(&kept);
    machine.set(Reg::FRAME.number(), machine.memory.frame_end());
    Next::At(back)
}

/// All instructions that are rare.
fn other(insns: &[Insn], insn: &Insn, machine: &mut Machine<'_, '_, '_>) -> Next {
    let address = |machine: &Machine<'_, '_, '_>, at: Address| {
        machine
            .get(at.base.number())
            .wrapping_add(at.displacement())
    };
    match machine.decoded(insn).0 {
        Op::Neg(width, dst) => {
            let value = negate(width, machine.get(dst.number()));
            machine.set(dst.number(), value);
        }
        Op::MoveSigned(width, bits, dst, src) => {
            let value = sign_extended(width, bits, machine.get(src.number()));
            machine.set(dst.number(), value);
        }
        Op::Swap(swap, bits, dst) => {
            let value = machine.get(dst.number());
            let value = swapped(swap, bits, value, machine.memory.endian());
            machine.set(dst.number(), value);
        }
        Op::LoadSigned(size, dst, at) => match machine.memory.read(address(machine, at), size) {
            Ok(value) => {
                let value = sign_extended(Width::W64, size.bits(), value);
                machine.set(dst.number(), value);
            }
            Err(error) => return fault(insn, FaultReason::Access(error), machine),
        },
        Op::StoreImm(size, at, imm) => {
            let address = address(machine, at);
            if let Err(error) = machine.memory.write(address, size, immediate(imm)) {
                return fault(insn, FaultReason::Access(error), machine);
            }
        }
        Op::Atomic(width, atomic, at, src) => {
            let address = address(machine, at);
            if let Err(error) = machine.atomic(width, atomic, address, src) {
                return fault(insn, FaultReason::Access(error), machine);
            }
        }
        Op::CallHelper(number) => return machine.call_helper(insns, insn, number),
        Op::CallLocal(_) => {
            let mut kept = [0; 4];
            kept.copy_from_slice(&machine.registers[6..10]);
            machine.callers.push((insn.next, kept));
            if !machine.memory.enter() {
                return fault(insn, FaultReason::TooManyFrames, machine);
            }
            machine.set(Reg::FRAME.number(), machine.memory.frame_end());
            return Next::At(insn.target);
        }
        _ => unreachable!("other instructions have functions of their own"),
    }
    go(insns, insn.next, machine)
}

impl Machine<'_, '_, '_> {
    fn atomic(
        &mut self,
        width: Width,
        atomic: Atomic,
        address: u64,
        src: Reg,
    ) -> Result<(), AccessError> {
        let of_width = |value| truncated(width.size().bits(), value);
        let old = self.memory.read(address, width.size())?;
        let [operand, expected] = [src.number(), 0].map(|reg| of_width(self.get(reg)));
        let new = atomic.applied(width, old, operand, expected);
        self.memory.write(address, width.size(), new)?;
        if atomic.fetches_to_source() {
            self.set(src.number(), old);
        }
        if atomic == Atomic::CompareExchange {
            self.set(0, old);
        }
        Ok(())
    }

    fn call_helper(&mut self, insns: &[Insn], insn: &Insn, number: i32) -> Next {
        let unknown = FaultReason::UnknownHelper(number);
        let Some(signature) = self.helpers.signature(number) else {
            return fault(insn, unknown, self);
        };
        let mut arguments = [0; 5];
        let count = registers(signature);
        arguments[..count].copy_from_slice(&self.registers[1..=count]);
        match self.helpers.call(number, arguments, self.memory) {
            Some(Ok(result)) => self.set(0, result),
            Some(Err(error)) => return fault(insn, FaultReason::Access(error), self),
            None => return fault(insn, unknown, self),
        }
        go(insns, insn.next, self)
    }
}
