//! The reference interpreter: the result of a program. It *defines* the meaning of a program.
//!
//! It assumes nothing: reading a register or a byte of the stack that was not written, leaving memory, calling an
//! unregistered helper and running forever are [`Fault`]s with the instruction. So it also tests the checker: an
//! accepted program must run without a fault.

use std::error;
use std::fmt;

use crate::insn::{Address, AluOp, Atomic, Op, Place, Reg, Size, Source, Width};
use crate::memory::{AccessError, CONTEXT, Helpers, Memory, registers};
use crate::program::{Pc, Program, target};
use crate::semantics::{arithmetic, holds, immediate, negate, sign_extended, swapped, truncated};

/// The result of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The value of r0 at the end.
    pub ret: u64,
    /// How many instructions were executed, at least 1.
    pub steps: u64,
}

/// The reason why an evaluation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The instruction.
    pub pc: Pc,
    /// The error.
    pub reason: FaultReason,
}

/// The error of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultReason {
    /// It reads a register that has no value.
    UnsetRegister(Reg),
    /// Its access to memory, or that of the helper that it calls, isn't permitted.
    Access(AccessError),
    /// It reads the packet, but r6 isn't the context.
    NoContext,
    /// It calls an unregistered helper.
    UnknownHelper(i32),
    /// It calls a function while seven calls are pending.
    TooManyFrames,
    /// The limit of steps is reached before it.
    OutOfSteps,
    /// The memory is that of a machine of the other byte order than the program's.
    OtherByteOrder,
}

impl fmt::Display for FaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultReason::UnsetRegister(reg) => write!(f, "{reg} has no value"),
            FaultReason::Access(error) => error.fmt(f),
            FaultReason::NoContext => f.write_str("a load from the packet needs the context in r6"),
            FaultReason::UnknownHelper(number) => write!(f, "there is no helper {number}"),
            FaultReason::TooManyFrames => f.write_str("calls are nested more than seven deep"),
            FaultReason::OutOfSteps => f.write_str("the limit of steps is reached"),
            FaultReason::OtherByteOrder => {
                f.write_str("the memory has another byte order than the program")
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { pc: Pc(pc), reason } = self;
        write!(f, "instruction {pc}: {reason}")
    }
}

impl error::Error for Fault {}

/// Runs a program on a memory, with at most `max_steps` instructions.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_ebpf_vm::interp::run;
/// use tamis_ebpf_vm::memory::{Context, Helpers, Memory};
/// use tamis_ebpf_vm::{Op, Program, Reg, Size, insn::Address};
/// let address = Address { base: Reg::R1, offset: 1 };
/// let program = Program::from_ops(&[Op::Load(Size::H, Reg::R0, address), Op::Exit], Endian::Little);
/// let mut memory = Memory::new(Context::ReadOnly(&[1, 2, 3]), &[], Endian::Little);
/// let run = run(&program.unwrap(), &mut memory, &mut Helpers::none(), 1000).unwrap();
/// assert_eq!((run.ret, run.steps), (0x0302, 2));
/// ```
///
/// # Errors
/// A [`Fault`] with the instruction at which the evaluation ended.
pub fn run(
    program: &Program,
    memory: &mut Memory<'_>,
    helpers: &mut Helpers<'_>,
    max_steps: u64,
) -> Result<Execution, Fault> {
    if memory.endian() != program.endian() {
        return Err(Fault {
            pc: Pc(0),
            reason: FaultReason::OtherByteOrder,
        });
    }
    memory.begin();
    let mut machine = Machine::new(program, memory, helpers);
    for steps in 1..=max_steps {
        let pc = machine.pc;
        let fault = |reason| Fault { pc, reason };
        if let Some(ret) = machine.step().map_err(fault)? {
            return Ok(Execution { ret, steps });
        }
    }
    Err(Fault {
        pc: machine.pc,
        reason: FaultReason::OutOfSteps,
    })
}

/// The number in network order at a place of the packet, where `index` is the value of the place's register.
#[inline]
pub(crate) fn packet_value(packet: &[u8], size: Size, place: Place, index: u64) -> Option<u64> {
    let offset = match place {
        Place::Absolute(offset) => offset,
        Place::Indirect(_, offset) => offset.wrapping_add(index as i32),
    };
    let bytes = packet.get(usize::try_from(offset).ok()?..)?;
    match size {
        Size::B => bytes.first().map(|byte| u64::from(*byte)),
        Size::H => bytes
            .first_chunk()
            .map(|bytes| u16::from_be_bytes(*bytes).into()),
        Size::W => bytes
            .first_chunk()
            .map(|bytes| u32::from_be_bytes(*bytes).into()),
        Size::D => bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)),
    }
}

/// The saved state of a call: the return address, and r6 to r9.
type Caller = (Pc, [Option<u64>; 4]);

struct Machine<'r, 'm, 'h> {
    program: &'r Program,
    memory: &'r mut Memory<'m>,
    helpers: &'r mut Helpers<'h>,
    pc: Pc,
    /// `None` if it has no value.
    registers: [Option<u64>; 11],
    callers: Vec<Caller>,
}

impl<'r, 'm, 'h> Machine<'r, 'm, 'h> {
    fn new(
        program: &'r Program,
        memory: &'r mut Memory<'m>,
        helpers: &'r mut Helpers<'h>,
    ) -> Machine<'r, 'm, 'h> {
        let mut registers = [None; 11];
        registers[Reg::R1.index()] = Some(CONTEXT);
        registers[Reg::FRAME.index()] = Some(memory.frame_end());
        Machine {
            program,
            memory,
            helpers,
            pc: Pc(0),
            registers,
            callers: Vec::new(),
        }
    }

    fn get(&self, reg: Reg) -> Result<u64, FaultReason> {
        self.registers[reg.index()].ok_or(FaultReason::UnsetRegister(reg))
    }

    fn set(&mut self, reg: Reg, value: u64) {
        self.registers[reg.index()] = Some(value);
    }

    fn source(&self, source: Source) -> Result<u64, FaultReason> {
        match source {
            Source::Imm(imm) => Ok(immediate(imm)),
            Source::Reg(reg) => self.get(reg),
        }
    }

    fn address(&self, at: Address) -> Result<u64, FaultReason> {
        Ok(self.get(at.base)?.wrapping_add(at.displacement()))
    }

    fn read(&self, size: Size, address: Address) -> Result<u64, FaultReason> {
        let address = self.address(address)?;
        self.memory.read(address, size).map_err(FaultReason::Access)
    }

    fn write(&mut self, size: Size, address: Address, value: u64) -> Result<(), FaultReason> {
        let address = self.address(address)?;
        let written = self.memory.write(address, size, value);
        written.map_err(FaultReason::Access)
    }

    /// Executes one instruction; returns the result if it was the last one.
    fn step(&mut self) -> Result<Option<u64>, FaultReason> {
        let pc = self.pc;
        let op = self.program.op(pc).expect("jumps lead to instructions");
        self.pc = Pc(pc.0 + op.places());
        match op {
            Op::Alu(width, AluOp::Mov, dst, source) => {
                let value = self.source(source)?;
                self.set(dst, arithmetic(width, AluOp::Mov, 0, value));
            }
            // The result is 0 whatever the register has, so it needn't have a value: converted programs begin so.
            Op::Alu(_, AluOp::Xor, dst, Source::Reg(src)) if dst == src => self.set(dst, 0),
            Op::Alu(width, alu, dst, source) => {
                let (a, b) = (self.get(dst)?, self.source(source)?);
                self.set(dst, arithmetic(width, alu, a, b));
            }
            Op::Neg(width, dst) => self.set(dst, negate(width, self.get(dst)?)),
            Op::MoveSigned(width, bits, dst, src) => {
                self.set(dst, sign_extended(width, bits, self.get(src)?));
            }
            Op::Swap(swap, bits, dst) => {
                let value = self.get(dst)?;
                self.set(dst, swapped(swap, bits, value, self.program.endian()));
            }
            Op::Load(size, dst, address) => {
                let value = self.read(size, address)?;
                self.set(dst, value);
            }
            Op::LoadSigned(size, dst, address) => {
                let value = self.read(size, address)?;
                self.set(dst, sign_extended(Width::W64, size.bits(), value));
            }
            Op::LoadPacket(size, place) => return self.load_packet(size, place),
            Op::StoreImm(size, address, imm) => self.write(size, address, immediate(imm))?,
            Op::Store(size, address, src) => self.write(size, address, self.get(src)?)?,
            Op::Atomic(width, atomic, address, src) => self.atomic(width, atomic, address, src)?,
            Op::LoadImm64(dst, value) => self.set(dst, value),
            Op::Jump(skip) => self.pc = target(pc, i32::from(skip)),
            Op::JumpFar(skip) => self.pc = target(pc, skip),
            Op::Branch(width, cond, dst, source, skip) => {
                if holds(width, cond, self.get(dst)?, self.source(source)?) {
                    self.pc = target(pc, i32::from(skip));
                }
            }
            Op::CallHelper(number) => self.call_helper(number)?,
            Op::CallLocal(skip) => self.call(target(pc, skip))?,
            Op::Exit => return self.exit(),
        }
        Ok(None)
    }

    fn load_packet(&mut self, size: Size, place: Place) -> Result<Option<u64>, FaultReason> {
        if self.get(Reg::R6)? != CONTEXT {
            return Err(FaultReason::NoContext);
        }
        let index = match place {
            Place::Absolute(_) => 0,
            Place::Indirect(reg, _) => self.get(reg)?,
        };
        let Some(value) = packet_value(self.memory.packet(), size, place, index) else {
            return Ok(Some(0));
        };
        self.registers[..=5].fill(None);
        self.set(Reg::R0, value);
        Ok(None)
    }

    fn atomic(
        &mut self,
        width: Width,
        atomic: Atomic,
        address: Address,
        src: Reg,
    ) -> Result<(), FaultReason> {
        let operand = truncated(width.size().bits(), self.get(src)?);
        let old = self.read(width.size(), address)?;
        let expected = match atomic {
            Atomic::CompareExchange => truncated(width.size().bits(), self.get(Reg::R0)?),
            _ => 0,
        };
        let new = atomic.applied(width, old, operand, expected);
        self.write(width.size(), address, new)?;
        if atomic.fetches_to_source() {
            self.set(src, old);
        }
        if atomic == Atomic::CompareExchange {
            self.set(Reg::R0, old);
        }
        Ok(())
    }

    fn call_helper(&mut self, number: i32) -> Result<(), FaultReason> {
        let unknown = FaultReason::UnknownHelper(number);
        let signature = self.helpers.signature(number).ok_or(unknown)?;
        let mut arguments = [0; 5];
        for (argument, reg) in arguments[..registers(signature)].iter_mut().zip(1..) {
            *argument = self.get(Reg::ALL[reg])?;
        }
        let called = self.helpers.call(number, arguments, self.memory);
        let result = called.ok_or(unknown)?.map_err(FaultReason::Access)?;
        self.registers[1..=5].fill(None);
        self.set(Reg::R0, result);
        Ok(())
    }

    fn call(&mut self, function: Pc) -> Result<(), FaultReason> {
        if !self.memory.enter() {
            return Err(FaultReason::TooManyFrames);
        }
        let mut kept = [None; 4];
        kept.copy_from_slice(&self.registers[6..10]);
        self.callers.push((self.pc, kept));
        self.registers[6..10].fill(None);
        self.registers[Reg::R0.index()] = None;
        self.set(Reg::FRAME, self.memory.frame_end());
        self.pc = function;
        Ok(())
    }

    fn exit(&mut self) -> Result<Option<u64>, FaultReason> {
        let ret = self.get(Reg::R0)?;
        let Some((back, kept)) = self.callers.pop() else {
            return Ok(Some(ret));
        };
        self.memory.leave();
        self.registers[1..=5].fill(None);
        self.registers[6..10].copy_from_slice(&kept);
        self.set(Reg::FRAME, self.memory.frame_end());
        self.pc = back;
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
