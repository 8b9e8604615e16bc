//! The machine code of extended instructions.
//!
//! Every BPF register but r10 has one of the machine. RBP points to the [`State`], R10 to the context, R11 to the end of
//! the newest frame; RCX and RDX are changed at will. r10 itself is read from the state where a program needs its value.
//! No instruction relies on flags of the one before, so each stands for itself: [`Emitter::emit`] is the list of all
//! templates, and a test proves them for all values of registers, memory and constants.
//!
//! Hardened code has no constant of 32 or 64 bits of the program. Displacements, which have 16, distances of shifts and the
//! numbers of registered helpers stay.
//!
//! Atomic operations need no lock: nothing else sees the memory while the program runs.

use std::mem::offset_of;

use tamis_ebpf_vm::check::Access;
use tamis_ebpf_vm::insn::Address;
use tamis_ebpf_vm::memory::FRAME_BYTES;
use tamis_ebpf_vm::{
    AluOp, Atomic, Bits, Cond, Op, Pc, Place, Reg as Register, Size, Source, Swap,
    Width as BpfWidth,
};

use super::Needs;
use crate::assembler::{Assembler, Label};
use crate::blind::Blinding;
use crate::memory::RawState;
use crate::x86::{Binary, Condition, Inst, Mem, Reg, Shift, Width};

/// The machine's registers of r0 to r9. The last one stands for r10, which is loaded there where it is read.
pub(crate) const REGISTERS: [Reg; 11] = [
    Reg::Rax,
    Reg::Rdi,
    Reg::Rsi,
    Reg::R8,
    Reg::R9,
    Reg::R12,
    Reg::Rbx,
    Reg::R13,
    Reg::R14,
    Reg::R15,
    OPERAND,
];
const RESULT: Reg = Reg::Rax;
/// Constants that no instruction can have, divisors, distances, old values, and r10.
const OPERAND: Reg = Reg::Rcx;
/// Addresses, and the upper half of dividends.
const PLACE: Reg = Reg::Rdx;
/// Points to the state of the evaluation.
const STATE: Reg = Reg::Rbp;
/// Points to the first byte of the context.
const CONTEXT: Reg = Reg::R10;
/// Points behind the newest frame.
const FRAME: Reg = Reg::R11;
/// The callee-saved registers, and the end of the frame.
const CALLER: [Reg; 5] = [Reg::Rbx, Reg::R13, Reg::R14, Reg::R15, FRAME];

/// The fields of the [`RawState`] as operands.
pub(crate) struct State;

impl State {
    pub(crate) const STACK_POINTER: Mem = State::at(offset_of!(RawState, stack_pointer));
    const CONTEXT: Mem = State::at(offset_of!(RawState, context));
    const STACK: Mem = State::at(offset_of!(RawState, stack));
    const FRAME_END: Mem = State::at(offset_of!(RawState, frame_end));
    /// The upper half, which counts frames.
    const FRAME_COUNT: Mem = State::at(offset_of!(RawState, frame_end) + 4);
    const PACKET: Mem = State::at(offset_of!(RawState, packet));
    const PACKET_BYTES: Mem = State::at(offset_of!(RawState, packet_bytes));
    const HELPER: Mem = State::at(offset_of!(RawState, helper));

    const fn at(offset: usize) -> Mem {
        Mem::at(STATE, offset as i32)
    }

    const fn argument(index: usize) -> Mem {
        State::at(offset_of!(RawState, arguments) + 8 * index)
    }
}

/// Where programs end early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// With the result 0.
    pub(crate) zero: Label,
    /// With a fault that the state has.
    pub(crate) abort: Label,
}

/// Where an instruction stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) pc: Pc,
    pub(crate) access: Access,
    /// The next instruction.
    pub(crate) next: Label,
    /// Where a jump, a call, or a branch whose comparison holds leads.
    pub(crate) taken: Label,
    /// Where `exit` leads; it returns if that is `None`.
    pub(crate) end: Option<Label>,
}

/// Writes instructions, last to first.
#[derive(Debug)]
pub(crate) struct Emitter {
    pub(crate) out: Assembler,
    pub(crate) blinding: Blinding,
    pub(crate) ends: Ends,
    pub(crate) needs: Needs,
}

/// The right-hand side of an operation in the machine.
#[derive(Clone, Copy)]
enum Value {
    Constant(i32),
    Register(Reg),
}

const fn machine(reg: Register) -> Reg {
    REGISTERS[reg.index()]
}

const fn of_width(width: BpfWidth) -> Width {
    match width {
        BpfWidth::W32 => Width::Half,
        BpfWidth::W64 => Width::Full,
    }
}

impl Emitter {
    /// Writes one instruction.
    pub(crate) fn emit(&mut self, op: Op, site: Site) {
        match op {
            Op::Jump(_) | Op::JumpFar(_) => return self.out.jump(site.taken),
            Op::Exit => return self.exit(site),
            Op::Branch(width, cond, dst, source, _) => {
                return self.branch(of_width(width), cond, machine(dst), source, site);
            }
            _ => self.out.jump(site.next),
        }
        match op {
            Op::Alu(width, alu, dst, source) => {
                self.alu(of_width(width), alu, machine(dst), source);
            }
            Op::Neg(width, dst) => self.out.push(Inst::Neg(of_width(width), machine(dst))),
            Op::MoveSigned(width, bits, dst, src) => {
                let (dst, src) = (machine(dst), machine(src));
                self.out
                    .push(Inst::SignExtend(size_of(bits), of_width(width), dst, src));
            }
            Op::Swap(swap, bits, dst) => self.swap(swap, bits, machine(dst)),
            Op::Load(size, dst, at) => self.at(at, size, site, |this, from| {
                this.load(size, machine(dst), from);
            }),
            Op::LoadSigned(size, dst, at) => self.at(at, size, site, |this, from| {
                this.out.push(Inst::LoadSigned(size, machine(dst), from));
            }),
            Op::LoadPacket(size, place) => self.load_packet(size, place),
            Op::StoreImm(size, at, imm) => self.at(at, size, site, |this, to| {
                this.with_source(Width::Full, Source::Imm(imm), |this, value| {
                    this.out.push(match value {
                        Value::Constant(imm) => Inst::StoreImm(size, to, imm),
                        Value::Register(src) => Inst::StoreSized(size, to, src),
                    });
                });
            }),
            Op::Store(size, at, src) => self.at(at, size, site, |this, to| {
                this.with_register(src, |this, src| {
                    this.out.push(Inst::StoreSized(size, to, src));
                });
            }),
            Op::Atomic(width, atomic, at, src) => self.at(at, width.size(), site, |this, place| {
                this.atomic(of_width(width), atomic, place, machine(src));
            }),
            Op::LoadImm64(dst, value) => self.set_full(machine(dst), value),
            Op::CallHelper(number) => self.call_helper(site.pc, number),
            Op::CallLocal(_) => self.call(site.taken),
            Op::Jump(_) | Op::JumpFar(_) | Op::Branch(..) | Op::Exit => {}
        }
    }

    fn push(&mut self, inst: Inst) {
        self.out.push(inst);
    }

    /// Writes `register = constant`, sign-extended to the width.
    fn set(&mut self, width: Width, dst: Reg, value: i32) {
        match self.blinding.next() {
            Some(random) => {
                if width == Width::Full {
                    self.push(Inst::SignExtend(Size::W, width, dst, dst));
                }
                self.push(Inst::BinaryImm(
                    Binary::Xor,
                    Width::Half,
                    dst,
                    random as i32,
                ));
                self.push(Inst::Set(dst, value as u32 ^ random));
            }
            None if value == 0 => self.push(Inst::Binary(Binary::Xor, Width::Half, dst, dst)),
            None if value < 0 && width == Width::Full => {
                self.push(Inst::BinaryImm(Binary::Mov, width, dst, value));
            }
            None => self.push(Inst::Set(dst, value as u32)),
        }
    }

    fn set_full(&mut self, dst: Reg, value: u64) {
        match (self.blinding.next(), u32::try_from(value)) {
            (Some(low), _) => {
                let high = self.blinding.next().unwrap_or(low);
                let random = u64::from(high) << 32 | u64::from(low);
                self.push(Inst::Binary(Binary::Xor, Width::Full, dst, OPERAND));
                self.push(Inst::SetFull(OPERAND, random));
                self.push(Inst::SetFull(dst, value ^ random));
            }
            (None, Ok(value)) => self.push(Inst::Set(dst, value)),
            (None, Err(_)) => self.push(Inst::SetFull(dst, value)),
        }
    }

    /// Writes the code of `write` for a register's value, preceded by the code that loads it.
    fn with_register(&mut self, reg: Register, write: impl FnOnce(&mut Emitter, Reg)) {
        write(self, machine(reg));
        if reg == Register::FRAME {
            self.push(Inst::LoadFull(OPERAND, State::FRAME_END));
        }
    }

    /// The same for a right-hand side.
    fn with_source(
        &mut self,
        width: Width,
        source: Source,
        write: impl FnOnce(&mut Emitter, Value),
    ) {
        match source {
            Source::Imm(_) if self.blinding.is_on() => self.with_operand(width, source, |this| {
                write(this, Value::Register(OPERAND));
            }),
            Source::Imm(imm) => write(self, Value::Constant(imm)),
            Source::Reg(reg) => self.with_register(reg, |this, src| {
                write(this, Value::Register(src));
            }),
        }
    }

    /// The same where the value must be in the register for operands.
    fn with_operand(&mut self, width: Width, source: Source, write: impl FnOnce(&mut Emitter)) {
        write(self);
        match source {
            Source::Imm(imm) => self.set(width, OPERAND, imm),
            Source::Reg(reg) => self.with_register(reg, |this, src| {
                if src != OPERAND {
                    this.push(Inst::Binary(Binary::Mov, width, OPERAND, src));
                }
            }),
        }
    }

    fn alu(&mut self, width: Width, alu: AluOp, dst: Reg, source: Source) {
        match alu {
            AluOp::Add => self.binary(Binary::Add, width, dst, source),
            AluOp::Sub => self.binary(Binary::Sub, width, dst, source),
            AluOp::And => self.binary(Binary::And, width, dst, source),
            AluOp::Or => self.binary(Binary::Or, width, dst, source),
            AluOp::Xor => self.binary(Binary::Xor, width, dst, source),
            AluOp::Lsh => self.shift(Shift::Left, width, dst, source),
            AluOp::Rsh => self.shift(Shift::Right, width, dst, source),
            AluOp::Arsh => self.shift(Shift::RightSigned, width, dst, source),
            AluOp::Mov => match source {
                Source::Imm(imm) => self.set(width, dst, imm),
                Source::Reg(_) => self.binary(Binary::Mov, width, dst, source),
            },
            AluOp::Mul => self.with_source(width, source, |this, value| {
                this.push(match value {
                    Value::Constant(imm) => Inst::MultiplyImm(width, dst, imm),
                    Value::Register(src) => Inst::Multiply(width, dst, src),
                });
            }),
            AluOp::Div | AluOp::Mod => {
                self.with_operand(width, source, |this| {
                    this.divide(width, alu == AluOp::Mod, dst);
                });
            }
            AluOp::SDiv | AluOp::SMod => self.with_operand(width, source, |this| {
                this.divide_signed(width, alu == AluOp::SMod, dst);
            }),
        }
    }

    fn binary(&mut self, op: Binary, width: Width, dst: Reg, source: Source) {
        self.with_source(width, source, |this, value| {
            this.push(binary(op, width, dst, value));
        });
    }

    /// The machine uses as many low bits of a distance as extended BPF does.
    fn shift(&mut self, shift: Shift, width: Width, dst: Reg, source: Source) {
        match source {
            Source::Imm(distance) => self.push(Inst::Shift(shift, width, dst, distance as u8)),
            Source::Reg(_) => self.with_operand(width, source, |this| {
                this.push(Inst::ShiftByCl(shift, width, dst));
            }),
        }
    }

    /// Unsigned division by the operand, which may be 0.
    fn divide(&mut self, width: Width, is_remainder: bool, dst: Reg) {
        let end = self.out.here();
        let zero_upper = Inst::Binary(Binary::Xor, Width::Half, PLACE, PLACE);
        self.quotient(is_remainder, dst, Inst::Divide(width, OPERAND), zero_upper);
        let divides = self.out.here();
        self.out.jump(end);
        match (is_remainder, width) {
            (false, _) => self.push(Inst::Binary(Binary::Xor, Width::Half, dst, dst)),
            // The upper half becomes 0.
            (true, Width::Half) => self.push(Inst::Binary(Binary::Mov, width, dst, dst)),
            (true, Width::Full) => {}
        }
        self.out.jump_if(
            Inst::Binary(Binary::Test, width, OPERAND, OPERAND),
            Condition::NotEqual,
            divides,
        );
    }

    /// Signed division by the operand. The machine can't divide by 0, nor the least number by -1. Here the quotient by 0
    /// or -1 is the product with it, and the remainder that with the next number.
    fn divide_signed(&mut self, width: Width, is_remainder: bool, dst: Reg) {
        let end = self.out.here();
        let extend = Inst::SignOfDividend(width);
        self.quotient(
            is_remainder,
            dst,
            Inst::DivideSigned(width, OPERAND),
            extend,
        );
        let divides = self.out.here();
        self.out.jump(end);
        let factor = if is_remainder { PLACE } else { OPERAND };
        self.push(Inst::Multiply(width, dst, factor));
        self.out.jump_if(
            Inst::BinaryImm(Binary::Cmp, width, PLACE, 1),
            Condition::Above,
            divides,
        );
        self.push(Inst::Address(width, PLACE, Mem::at(OPERAND, 1)));
    }

    /// Writes a division of `dst`; only RDX and `dst` change.
    fn quotient(&mut self, is_remainder: bool, dst: Reg, divide: Inst, fill_upper: Inst) {
        let full = Width::Full;
        let exchange = Inst::Exchange(full, RESULT, dst);
        match (is_remainder, dst == RESULT) {
            (true, true) => self.push(Inst::Binary(Binary::Mov, full, RESULT, PLACE)),
            (true, false) => {
                self.push(Inst::Binary(Binary::Mov, full, dst, PLACE));
                self.push(Inst::Binary(Binary::Mov, full, RESULT, dst));
            }
            (false, true) => {}
            (false, false) => self.push(exchange),
        }
        self.push(divide);
        self.push(fill_upper);
        if dst != RESULT {
            self.push(exchange);
        }
    }

    fn swap(&mut self, swap: Swap, bits: Bits, dst: Reg) {
        let is_reversed = swap != Swap::Little;
        match bits {
            Bits::B8 => {}
            Bits::B16 => {
                self.push(Inst::ZeroExtend(Size::H, dst, dst));
                if is_reversed {
                    self.push(Inst::SwapLowBytes(dst));
                }
            }
            Bits::B32 if is_reversed => self.push(Inst::SwapBytes(dst)),
            Bits::B32 => self.push(Inst::Binary(Binary::Mov, Width::Half, dst, dst)),
            Bits::B64 if is_reversed => self.push(Inst::SwapBytesFull(dst)),
            Bits::B64 => {}
        }
    }

    fn load(&mut self, size: Size, dst: Reg, from: Mem) {
        self.push(match size {
            Size::B => Inst::LoadByte(dst, from),
            Size::H => Inst::LoadHalf(dst, from),
            Size::W => Inst::Load(dst, from),
            Size::D => Inst::LoadFull(dst, from),
        });
    }

    /// Writes an access to memory, preceded by the code that computes its address.
    fn at(&mut self, at: Address, size: Size, site: Site, write: impl FnOnce(&mut Emitter, Mem)) {
        let computed = Mem::at(machine(at.base), i32::from(at.offset));
        let end = i64::from(at.offset) + size.bytes() as i64;
        let is_in_frame =
            at.base == Register::FRAME && i64::from(at.offset) >= -(FRAME_BYTES as i64) && end <= 0;
        match site.access {
            Access::Context(offset) => write(self, Mem::at(CONTEXT, offset as i32)),
            Access::Stack if is_in_frame => write(self, Mem::at(FRAME, i32::from(at.offset))),
            Access::Stack => {
                write(self, Mem::at(PLACE, 0));
                self.find_in_stack();
                self.with_register(at.base, |this, _| {
                    this.push(Inst::Address(Width::Half, PLACE, computed));
                });
            }
            Access::Varying => {
                write(self, Mem::at(PLACE, 0));
                self.find_anywhere(size);
                self.with_register(at.base, |this, _| {
                    this.push(Inst::Address(Width::Full, PLACE, computed));
                });
            }
            Access::Unreached | Access::Nothing => self.out.jump(self.ends.zero),
        }
    }

    /// Makes an offset in the stack a place there, whatever it is.
    fn find_in_stack(&mut self) {
        self.push(Inst::AddFrom(PLACE, State::STACK));
        // Without a stack nothing gets here, and nothing would leave its beginning.
        let mask = (self.needs.frames * FRAME_BYTES).saturating_sub(1) as i32;
        self.push(Inst::BinaryImm(Binary::And, Width::Half, PLACE, mask));
    }

    /// Makes an address a place in the context or in the stack, or ends the program.
    fn find_anywhere(&mut self, size: Size) {
        let found = self.out.here();
        self.find_in_stack();
        let in_stack = self.out.here();
        // Some way accesses the context here, so it is long enough.
        let last = self.needs.context_bytes.saturating_sub(size.bytes());
        self.out.jump(found);
        self.push(Inst::Binary(Binary::Add, Width::Full, PLACE, CONTEXT));
        self.out.jump_if(
            Inst::BinaryImm(Binary::Cmp, Width::Half, PLACE, last as i32),
            Condition::Above,
            self.ends.zero,
        );
        // The offset alone.
        self.push(Inst::Binary(Binary::Mov, Width::Half, PLACE, PLACE));
        self.out.jump_if(
            Inst::BinaryImm(Binary::Cmp, Width::Half, OPERAND, 1),
            Condition::NotEqual,
            in_stack,
        );
        self.push(Inst::Shift(Shift::Right, Width::Full, OPERAND, 32));
        self.push(Inst::Binary(Binary::Mov, Width::Full, OPERAND, PLACE));
    }

    fn atomic(&mut self, width: Width, atomic: Atomic, place: Mem, src: Reg) {
        let size = match width {
            Width::Half => Size::W,
            Width::Full => Size::D,
        };
        let copy = |dst, src| Inst::Binary(Binary::Mov, width, dst, src);
        let (op, is_fetch) = match atomic {
            Atomic::Add { fetch } => (Binary::Add, fetch),
            Atomic::Or { fetch } => (Binary::Or, fetch),
            Atomic::And { fetch } => (Binary::And, fetch),
            Atomic::Xor { fetch } => (Binary::Xor, fetch),
            Atomic::Exchange => {
                self.push(copy(src, OPERAND));
                self.push(Inst::StoreSized(size, place, src));
                return self.load(size, OPERAND, place);
            }
            Atomic::CompareExchange => {
                self.push(copy(RESULT, OPERAND));
                let differs = self.out.here();
                self.push(Inst::StoreSized(size, place, src));
                self.out.jump_if(
                    Inst::Binary(Binary::Cmp, width, OPERAND, RESULT),
                    Condition::NotEqual,
                    differs,
                );
                return self.load(size, OPERAND, place);
            }
        };
        self.push(Inst::StoreSized(size, place, OPERAND));
        self.push(Inst::Binary(op, width, OPERAND, src));
        if is_fetch {
            self.push(Inst::Exchange(width, OPERAND, src));
        }
        self.load(size, OPERAND, place);
    }

    /// Writes a load in network byte order, which ends the program outside of the packet.
    fn load_packet(&mut self, size: Size, place: Place) {
        match size {
            Size::B => {}
            Size::H => self.push(Inst::SwapLowBytes(RESULT)),
            Size::W => self.push(Inst::SwapBytes(RESULT)),
            Size::D => self.push(Inst::SwapBytesFull(RESULT)),
        }
        self.load(size, RESULT, Mem::sum(OPERAND, PLACE, 0));
        self.push(Inst::LoadFull(OPERAND, State::PACKET));
        self.out.jump_if(
            Inst::Binary(Binary::Cmp, Width::Full, OPERAND, RESULT),
            Condition::Above,
            self.ends.zero,
        );
        self.push(Inst::LoadFull(RESULT, State::PACKET_BYTES));
        let end = Mem::at(PLACE, size.bytes() as i32);
        self.push(Inst::Address(Width::Full, OPERAND, end));
        self.out.jump_if(
            Inst::Binary(Binary::Test, Width::Half, PLACE, PLACE),
            Condition::Sign,
            self.ends.zero,
        );
        match place {
            Place::Absolute(offset) => self.set(Width::Half, PLACE, offset),
            Place::Indirect(reg, offset) if self.blinding.is_on() => {
                self.push(Inst::Binary(Binary::Add, Width::Half, PLACE, machine(reg)));
                self.set(Width::Half, PLACE, offset);
            }
            Place::Indirect(reg, offset) => {
                let sum = Mem::at(machine(reg), offset);
                self.push(Inst::Address(Width::Half, PLACE, sum));
            }
        }
    }

    fn branch(&mut self, width: Width, cond: Cond, dst: Reg, source: Source, site: Site) {
        let condition = match cond {
            Cond::Eq => Condition::Equal,
            Cond::Ne | Cond::Set => Condition::NotEqual,
            Cond::Gt => Condition::Above,
            Cond::Ge => Condition::AboveEqual,
            Cond::Lt => Condition::Below,
            Cond::Le => Condition::BelowEqual,
            Cond::SGt => Condition::Greater,
            Cond::SGe => Condition::GreaterEqual,
            Cond::SLt => Condition::Less,
            Cond::SLe => Condition::LessEqual,
        };
        if site.taken == site.next {
            return self.out.jump(site.next);
        }
        let op = match cond {
            Cond::Set => Binary::Test,
            _ => Binary::Cmp,
        };
        self.with_source(width, source, |this, value| {
            let compare = binary(op, width, dst, value);
            this.out
                .branch(compare.encode(), condition, site.taken, site.next);
        });
    }

    fn exit(&mut self, site: Site) {
        match site.end {
            Some(end) => self.out.jump(end),
            None => self.push(Inst::Return),
        }
    }

    /// Fills the registers that hold places, from the state.
    pub(crate) fn load_places(&mut self) {
        self.push(Inst::LoadFull(CONTEXT, State::CONTEXT));
        self.push(Inst::AddFrom(FRAME, State::STACK));
        self.push(Inst::Load(FRAME, State::FRAME_END));
    }

    /// The host's function gets the state, the instruction and the helper's number; it returns the result, and in RDX
    /// whether there is one.
    fn call_helper(&mut self, pc: Pc, number: i32) {
        self.load_places();
        self.out.jump_if(
            Inst::Binary(Binary::Test, Width::Half, PLACE, PLACE),
            Condition::NotEqual,
            self.ends.abort,
        );
        self.push(Inst::CallFrom(State::HELPER));
        self.push(Inst::Set(PLACE, number as u32));
        self.push(Inst::Set(Reg::Rsi, pc.0 as u32));
        self.push(Inst::Binary(Binary::Mov, Width::Full, Reg::Rdi, STATE));
        for (index, reg) in REGISTERS[1..=5].iter().enumerate() {
            self.push(Inst::StoreSized(Size::D, State::argument(index), *reg));
        }
    }

    /// A call of a function of the program: a multiple of 16 bytes of the machine's stack, with the return address.
    fn call(&mut self, function: Label) {
        let frame_bytes = FRAME_BYTES as i32;
        for reg in CALLER {
            self.push(Inst::Pop(reg));
        }
        self.push(Inst::AddTo(State::FRAME_COUNT, -1));
        self.push(Inst::AddTo(State::FRAME_END, -frame_bytes));
        self.out.call(function);
        self.push(Inst::AddTo(State::FRAME_COUNT, 1));
        self.push(Inst::AddTo(State::FRAME_END, frame_bytes));
        self.push(Inst::BinaryImm(
            Binary::Add,
            Width::Full,
            FRAME,
            frame_bytes,
        ));
        for reg in CALLER.iter().rev() {
            self.push(Inst::Push(*reg));
        }
    }
}

const fn size_of(bits: Bits) -> Size {
    match bits {
        Bits::B8 => Size::B,
        Bits::B16 => Size::H,
        Bits::B32 => Size::W,
        Bits::B64 => Size::D,
    }
}

/// An operation on a register and a value.
fn binary(op: Binary, width: Width, dst: Reg, value: Value) -> Inst {
    match value {
        Value::Constant(imm) => Inst::BinaryImm(op, width, dst, imm),
        Value::Register(src) => Inst::Binary(op, width, dst, src),
    }
}
