//! Extended programs as machine code: a function of a [`Memory`] and the host's [`Helpers`].
//!
//! Only what the checker accepted is compiled, and its type is the only one that is taken. The checker tells where each access
//! lies: one to the context at a known place needs no test, as a context that is shorter than the program's accesses, or
//! can't be written where the program writes, is given to the [interpreter](tamis_ebpf::threaded), which says what is
//! wrong with it. So is a packet of more than 2^31 bytes. An address in the stack that the program computed is masked, so it
//! leads into the stack whatever the checker said of it.
//!
//! Registers hold the addresses that interpreters use ([`tamis_ebpf::memory`]). The lower half of one is the offset of
//! the real byte, so a program computes with them as it likes and helpers get what they get from interpreters.

use std::sync::Arc;

use tamis_abi::Endian;
use tamis_ebpf::check::Checked;
use tamis_ebpf::interp::{Fault, FaultReason};
use tamis_ebpf::memory::{Context, Frames, Helpers, Memory};
use tamis_ebpf::threaded::Threaded;
use tamis_ebpf::{Op, Pc};

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
/// use tamis_ebpf::check::{self, Layout, check};
/// use tamis_ebpf::memory::{Context, Helpers, Memory};
/// use tamis_ebpf::{Op, Program, Reg, Size, insn::Address};
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

/// What the code needs of the memory that it runs on.
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

    fn of(checked: &Checked) -> Needs {
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

    /// The same for what a memory is made of, on a little-endian machine.
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

    /// Whether the evaluation of a memory still has what the code needs: a helper may have put another one in its place.
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
            needs: Needs::of(checked),
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

    /// Runs a program that calls no helper, in a third of the time that [`run`](Self::run) takes for a short one: there
    /// is no [`Memory`] to make. `None` if the program calls helpers, or the context or the packet isn't what the code
    /// needs; `run` says what is wrong then.
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
    let count = tamis_ebpf::memory::registers(signature);
    let mut arguments = [0; 5];
    arguments[..count].copy_from_slice(&registers[..count]);
    memory.set_newest_frame(frame_end);
    match helpers.call(number, arguments, memory) {
        Some(Ok(result)) => Ok(result),
        Some(Err(error)) => Err(fault(FaultReason::Access(error))),
        None => Err(fault(unknown)),
    }
}

/// The place to which a jump, branch or call leads.
fn target(pc: Pc, op: Op) -> Option<Pc> {
    let skip = match op {
        Op::CallLocal(skip) => Some(skip),
        other => other.skip(),
    };
    skip.map(|skip| Pc((pc.0 as i64 + 1 + i64::from(skip)) as usize))
}
