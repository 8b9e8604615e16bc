//! Extended programs as machine code: a function of a [`Memory`] and the host's [`Helpers`].
//!
//! Only checked programs are compiled: their type is the only accepted one. The checker provides the place of each
//! access. An access to the context at a constant offset needs no test, because a context that is shorter than the
//! program's accesses, or read-only although the program writes, is passed to the [interpreter](tamis_ebpf_vm::threaded),
//! which reports the error. So is a packet of more than 2^31 bytes. A computed address in the stack is masked, so it is
//! in the stack even if the checker was wrong.
//!
//! Registers hold the addresses of interpreters ([`tamis_ebpf_vm::memory`]). The lower half of one is the offset of the
//! real byte, so a program computes with them freely and helpers get the same values as from interpreters.

use std::sync::Arc;

use tamis_abi::Endian;
use tamis_ebpf_vm::check::Checked;
use tamis_ebpf_vm::interp::{Fault, FaultReason};
use tamis_ebpf_vm::memory::{Context, Frames, Helpers, Memory};
use tamis_ebpf_vm::threaded::Threaded;
use tamis_ebpf_vm::{Op, Pc};

use crate::memory::{Executable, Function, call_extended, call_without_helpers};
use crate::{Error, Options};

pub(crate) mod emit;
mod write;

/// The longest packet that the code can be given.
const MAX_PACKET_BYTES: usize = i32::MAX as usize;

/// A checked extended program as machine code in executable memory.
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_ebpf_vm::check::{self, Layout, check};
/// use tamis_ebpf_vm::memory::{Context, Helpers, Memory};
/// use tamis_ebpf_vm::{Op, Program, Reg, Size, insn::Address};
/// use tamis_jit::{Error, Extended, Options};
/// let nr = Address { base: Reg::R1, offset: 0 };
/// let program = Program::from_ops(&[Op::Load(Size::W, Reg::R0, nr), Op::Exit], Endian::Little).unwrap();
/// let layout = Layout::seccomp();
/// let checked = check(program, &layout, &Helpers::none(), &check::Options::default()).unwrap();
/// match Extended::compile(&checked, &Options::default()) {
///     Ok(compiled) => {
///         let mut memory = Memory::new(Context::ReadOnly(&[7; 64]), &[], Endian::Little);
///         assert_eq!(compiled.run(&mut memory, &mut Helpers::none()), Ok(0x0707_0707));
///     }
///     Err(Error::Unavailable(reason)) => println!("{reason}"),
///     Err(other) => panic!("{other}"),
/// }
/// ```
#[derive(Debug)]
pub struct Extended {
    start: Function,
    needs: Needs,
    calls_helpers: bool,
    /// For memories that the code can't be given.
    threaded: Threaded,
}

/// The requirements of the code on its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The frames that the stack must have room for: a power of two, or 0.
    frames: usize,
    /// The shortest context.
    context_bytes: usize,
    /// Whether the context is written.
    is_context_written: bool,
}

impl Needs {
    /// Of a program that reads so much of its context.
    pub(crate) fn new(frames: usize, context_bytes: usize) -> Needs {
        Needs {
            frames,
            context_bytes,
            is_context_written: false,
        }
    }

    fn from_checked(checked: &Checked) -> Needs {
        let accesses = checked.accesses();
        Needs {
            frames: match accesses.is_stack_used() {
                true => accesses.frames().next_power_of_two(),
                false => 0,
            },
            context_bytes: accesses.context_bytes(),
            is_context_written: accesses.is_context_written(),
        }
    }

    pub(crate) fn are_met_by(self, memory: &Memory<'_>) -> bool {
        memory.endian() == Endian::Little
            && memory.context().len() >= self.context_bytes
            && (memory.is_context_writable() || !self.is_context_written)
            && memory.packet().len() <= MAX_PACKET_BYTES
    }

    /// Whether the parts of a memory meet them, on a little-endian machine.
    #[inline]
    fn are_met(self, context: &Context<'_>, packet: &[u8]) -> bool {
        context.bytes().len() >= self.context_bytes
            && (matches!(context, Context::Writable(_)) || !self.is_context_written)
            && packet.len() <= MAX_PACKET_BYTES
    }

    /// How many frames.
    pub(crate) fn frames(self) -> usize {
        self.frames
    }

    /// Whether the memory still meets them during an evaluation: a helper may have replaced it.
    pub(crate) fn are_still_met_by(self, memory: &Memory<'_>) -> bool {
        self.are_met_by(memory) && memory.has_room(self.frames)
    }
}

impl Extended {
    /// Compiles a program.
    ///
    /// # Errors
    /// If there is no executable memory, or the program is for machines of the other byte order.
    pub fn compile(checked: &Checked, options: &Options) -> Result<Extended, Error> {
        if checked.program().endian() != Endian::Little {
            return Err(Error::OtherByteOrder);
        }
        let (code, start) = write::write(checked, options);
        let executable = Executable::new(&code).map_err(Error::Unavailable)?;
        Ok(Extended {
            start: Function::new(&Arc::new(executable), code.entry(start)),
            needs: Needs::from_checked(checked),
            calls_helpers: checked
                .program()
                .ops()
                .any(|(_, op)| matches!(op, Op::CallHelper(_))),
            threaded: Threaded::new(checked),
        })
    }

    /// Runs the program on a memory of its kind, with helpers of the signatures that it was checked with.
    ///
    /// # Errors
    /// As [`Threaded::run`]: if the memory is smaller than the layout, a helper fails or is missing.
    ///
    /// # Panics
    /// If a helper does, or puts a memory of another kind in the place of its own.
    pub fn run(&self, memory: &mut Memory<'_>, helpers: &mut Helpers<'_>) -> Result<u64, Fault> {
        if !self.needs.are_met_by(memory) {
            return self.threaded.run(memory, helpers);
        }
        memory.begin_checked(self.needs.frames);
        call_extended(&self.start, self.needs, memory, helpers)
    }

    /// Runs a program without helper calls, in a third of the time of [`run`](Self::run) for a short one: it creates no
    /// [`Memory`]. `None` if the program calls helpers, or the context or the packet doesn't meet the requirements;
    /// `run` then returns the error.
    #[inline]
    pub fn run_without_helpers(
        &self,
        context: &mut Context<'_>,
        packet: &[u8],
        frames: &mut Frames,
    ) -> Option<u64> {
        if self.calls_helpers || !self.needs.are_met(context, packet) {
            return None;
        }
        let (start, needs) = (&self.start, self.needs);
        Some(call_without_helpers(start, needs, context, packet, frames))
    }

    /// The machine code, for disassemblers. It is independent of its address.
    pub fn code(&self) -> &[u8] {
        self.start.code()
    }

    /// The offset in the code where the program begins.
    pub fn start_bytes(&self) -> usize {
        self.start.offset()
    }
}

/// Calls a helper for the code: the instruction, the helper's number, the arguments' registers and the end of the newest
/// frame.
pub(crate) fn call_helper(
    memory: &mut Memory<'_>,
    helpers: &mut Helpers<'_>,
    [pc, number]: [u32; 2],
    registers: &[u64; 5],
    frame_end: u64,
) -> Result<u64, Fault> {
    let fault = |reason| Fault {
        pc: Pc(pc as usize),
        reason,
    };
    let number = number as i32;
    let unknown = FaultReason::UnknownHelper(number);
    let signature = helpers.signature(number).ok_or(fault(unknown))?;
    let count = tamis_ebpf_vm::memory::registers(signature);
    let mut arguments = [0; 5];
    arguments[..count].copy_from_slice(&registers[..count]);
    memory.set_newest_frame(frame_end);
    match helpers.call(number, arguments, memory) {
        Some(Ok(result)) => Ok(result),
        Some(Err(error)) => Err(fault(FaultReason::Access(error))),
        None => Err(fault(unknown)),
    }
}

/// The target of a jump, branch or call.
fn target(pc: Pc, op: Op) -> Option<Pc> {
    let skip = match op {
        Op::CallLocal(skip) => Some(skip),
        other => other.skip(),
    };
    skip.map(|skip| Pc((pc.0 as i64 + 1 + i64::from(skip)) as usize))
}
