//! The threaded interpreter: a safe program as a list of functions, one for each instruction.
//!
//! Each function does its work and calls that of the next instruction, which an optimising compiler turns into a jump,
//! so the processor predicts the successor of each instruction by itself. Calls and returns go through a loop instead,
//! and so do backward jumps and jumps out of a part of 1024 instructions: without optimisation, where calls nest, no
//! more than 1024 are pending at any time.
//!
//! It doesn't repeat the tests of the [checker](crate::check): registers have values, and the stack is written before
//! it is read. Accesses to memory are still bounded, so a context that is shorter than its layout is a [`Fault`], the
//! same as that of the [reference](crate::interp).

use tamis_abi::Endian;
use tamis_bpf::convert::JumpTooFar;
use tamis_bpf::packet;

use crate::check::Checked;
use crate::check::structure::{accesses, bit};
use crate::convert::{converted, converted_packet};
use crate::insn::{Op, Reg};
use crate::interp::{Fault, FaultReason};
use crate::memory::{CONTEXT, Helpers, Memory};
use crate::program::{Pc, Program, target};

mod handlers;

/// The instructions of a part: only inside of one do functions call each other, and only forwards.
const MAX_CHAIN: usize = 1024;

/// A program that is known to be safe, prepared to be run many times.
#[derive(Debug)]
pub struct Threaded {
    insns: Vec<Insn>,
    /// The decoded instruction of each and its place in the program, which only the rare ones need.
    ops: Vec<(Op, Pc)>,
    endian: Endian,
    /// Whether the program uses the address of its stack, or calls helpers that may.
    uses_stack: bool,
}

/// The function of an instruction.
type Handler = for<'r, 'm, 'h> fn(&[Insn], &Insn, &mut Machine<'r, 'm, 'h>) -> Next;

/// The next action of the loop. It fits in registers: functions that return more can't end with a jump.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Goes on at this instruction.
    At(u32),
    /// Ends with the value of r0.
    End,
    /// Ends with 0.
    EndWithZero,
    /// Ends with the machine's fault.
    Fault,
}

/// An instruction with the data of its function, in 32 bytes. Places are indices in the list.
#[derive(Clone, Copy)]
struct Insn {
    handler: Handler,
    /// Where it is itself.
    here: u32,
    /// Where its successor is.
    next: u32,
    /// Where it jumps.
    target: u32,
    dst: u8,
    src: u8,
    /// The constant, sign-extended, or the displacement of an access.
    imm: u64,
}

impl std::fmt::Debug for Insn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {}", self.next, self.target)
    }
}

/// The saved state of a call: the return address, and r6 to r9.
type Caller = (u32, [u64; 4]);

struct Machine<'r, 'm, 'h> {
    ops: &'r [(Op, Pc)],
    memory: &'r mut Memory<'m>,
    helpers: &'r mut Helpers<'h>,
    /// Eleven are used; with sixteen no index needs a check.
    registers: [u64; 16],
    callers: Vec<Caller>,
    /// The fault, if a function has returned [`Next::Fault`].
    fault: Fault,
}

impl Threaded {
    /// Prepares a program.
    pub fn new(checked: &Checked) -> Threaded {
        Threaded::from_program(checked.program())
    }

    /// Prepares a converted filter of seccomp. It needs no check: the kernel's checker of filters has been passed, and
    /// conversion makes no loops and no addresses.
    ///
    /// # Errors
    /// [`JumpTooFar`], only for programs that are not [installable](tamis_bpf::Program::is_installable).
    pub fn of_filter(filter: &tamis_bpf::Program) -> Result<Threaded, JumpTooFar> {
        Ok(Threaded::from_program(&converted(filter)?))
    }

    /// Prepares a converted filter of sockets, for machines of a byte order. It compares each place in the packet with
    /// the packet's length by itself.
    ///
    /// # Errors
    /// [`JumpTooFar`], if a jump leads over too many loads.
    pub fn of_packet_filter(
        filter: &packet::Program,
        endian: Endian,
    ) -> Result<Threaded, JumpTooFar> {
        Ok(Threaded::from_program(&converted_packet(filter, endian)?))
    }

    fn from_program(program: &Program) -> Threaded {
        let places = places(program);
        let mut insns = Vec::with_capacity(program.len());
        let mut ops = Vec::with_capacity(program.len());
        for (pc, op) in program.ops() {
            let index = insns.len() as u32;
            if insns.len() % MAX_CHAIN == MAX_CHAIN - 1 {
                insns.push(pause(index));
                ops.push((op, pc));
            }
            let here = insns.len() as u32;
            let skip = match op {
                Op::CallLocal(skip) => Some(skip),
                other => other.skip(),
            };
            let target = skip.map_or(0, |skip| places[target(pc, skip).0]);
            insns.push(handlers::insn(op, here, target, stays(here, target)));
            ops.push((op, pc));
        }
        follow_jumps(&mut insns, &ops);
        Threaded {
            insns,
            ops,
            endian: program.endian(),
            uses_stack: program.ops().any(|(_, op)| uses_stack(op)),
        }
    }

    /// Runs the program on a memory of its kind, with helpers of the signatures that it was checked with.
    ///
    /// # Errors
    /// [`FaultReason::Access`] if the memory is smaller than the layout, or a helper fails;
    /// [`FaultReason::UnknownHelper`] if one is missing; [`FaultReason::OtherByteOrder`].
    pub fn run(&self, memory: &mut Memory<'_>, helpers: &mut Helpers<'_>) -> Result<u64, Fault> {
        if memory.endian() != self.endian {
            return Err(Fault {
                pc: Pc(0),
                reason: FaultReason::OtherByteOrder,
            });
        }
        memory.begin_checked(usize::from(self.uses_stack));
        let mut registers = [0; 16];
        registers[Reg::R1.index()] = CONTEXT;
        registers[Reg::FRAME.index()] = memory.frame_end();
        let mut machine = Machine {
            ops: &self.ops,
            memory,
            helpers,
            registers,
            callers: Vec::new(),
            fault: Fault {
                pc: Pc(0),
                reason: FaultReason::OutOfSteps,
            },
        };
        let mut at = 0;
        loop {
            let insn = &self.insns[at as usize];
            match (insn.handler)(&self.insns, insn, &mut machine) {
                Next::At(next) => at = next,
                Next::End => return Ok(machine.registers[0]),
                Next::EndWithZero => return Ok(0),
                Next::Fault => return Err(machine.fault),
            }
        }
    }
}

/// Whether an instruction reads r10, or calls a function that may use the stack.
fn uses_stack(op: Op) -> bool {
    let (reads, _) = accesses(op);
    reads & bit(Reg::FRAME) != 0 || matches!(op, Op::CallHelper(_) | Op::CallLocal(_))
}

/// Whether a function may call that of its target.
const fn stays(here: u32, target: u32) -> bool {
    target > here && target as usize / MAX_CHAIN == here as usize / MAX_CHAIN
}

/// Shortcuts jumps to jumps, from the last instruction to the first. Jumps that go through the loop stay.
fn follow_jumps(insns: &mut [Insn], ops: &[(Op, Pc)]) {
    let is_followed = |insn: &Insn| {
        let (op, _) = ops[insn.here as usize];
        let is_jump = matches!(op, Op::Jump(_) | Op::JumpFar(_));
        is_jump && !insn.is_pause() && stays(insn.here, insn.target)
    };
    for index in (0..insns.len()).rev() {
        let insn = insns[index];
        let end = |to: u32| match insns.get(to as usize) {
            Some(next) if stays(insn.here, to) && is_followed(next) => next.target,
            _ => to,
        };
        let (next, target) = (end(insn.next), end(insn.target));
        insns[index] = Insn {
            next,
            target,
            ..insn
        };
    }
}

impl Insn {
    /// Whether it stands at the end of a part and only goes through the loop.
    const fn is_pause(&self) -> bool {
        self.here as usize % MAX_CHAIN == MAX_CHAIN - 1
    }
}

/// The index of each place of the program in the list: that of the pause before it, if there is one.
fn places(program: &Program) -> Vec<u32> {
    let mut places = vec![0; program.len()];
    let mut index = 0;
    for (Pc(pc), _) in program.ops() {
        places[pc] = index as u32;
        let has_pause = index % MAX_CHAIN == MAX_CHAIN - 1;
        index += 1 + usize::from(has_pause);
    }
    places
}

/// An instruction that only goes through the loop.
fn pause(index: u32) -> Insn {
    Insn {
        handler: |_, insn, _| Next::At(insn.next),
        here: index,
        next: index + 1,
        target: 0,
        dst: 0,
        src: 0,
        imm: 0,
    }
}
