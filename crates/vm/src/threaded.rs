//! The threaded interpreter: a program whose instructions are functions that call each other.
//!
//! Each instruction is a [`Step`]: the address of the function that runs it, its constants, and the steps that may
//! follow. A function does its work and ends by calling that of the next step, which an optimising compiler makes a
//! jump, so the processor predicts each instruction's successor by itself, and a branch of the program is a branch of
//! the machine. A load and the test behind it are one step, also with a mask between them. Jumps cost nothing.
//!
//! What is rare - values beside a packet, divisions, scratch memory - is left to one function for all instructions,
//! which does what the reference interpreter does.
//!
//! Without optimisation the calls nest, as deep as a path is long, so programs are limited to the 4096 instructions of
//! the kernel's limit.

mod build;
mod handlers;

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use tamis_bpf::interp::Input;
use tamis_bpf::packet::{self, Packet};
use tamis_bpf::{Op, Operation, Pc, Program};

/// The scratch memory.
pub type Memory = [u32; 16];

/// Which programs are run, on what.
pub trait Machine: Sized + 'static {
    /// What loads have.
    type Load: Copy;
    /// The instructions that only it has.
    type Extra: Copy;
    /// What programs are run on.
    type Input<'a>: Input<Load = Self::Load, Extra = Self::Extra>;
}

/// Filters of seccomp, on the image of a call.
#[derive(Clone, Copy, Debug)]
pub struct Seccomp;

/// Filters of sockets, on packets.
#[derive(Clone, Copy, Debug)]
pub struct Sockets;

impl Machine for Seccomp {
    type Load = u32;
    type Extra = std::convert::Infallible;
    type Input<'a> = [u32; 16];
}

impl Machine for Sockets {
    type Load = packet::Load;
    type Extra = packet::Extra;
    type Input<'a> = Packet<'a>;
}

/// The registers and the scratch memory at an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// The accumulator.
    pub a: u32,
    /// The index register.
    pub x: u32,
    /// The scratch memory; what was never written doesn't matter.
    pub memory: Memory,
}

/// A program prepared for the threaded interpreter.
pub struct Threaded<M: Machine> {
    /// The step of each instruction.
    steps: Vec<Arc<Step<M>>>,
}

/// A program with more instructions than the kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The length.
    pub len_insns: usize,
}

/// The function of a step: it returns the value of the program.
type Handler<M> = for<'a> fn(&Step<M>, u32, u32, &<M as Machine>::Input<'a>, &mut Memory) -> u32;

/// A step that may follow; none follows a return.
type Link<M> = Option<Arc<Step<M>>>;

/// One instruction, or a load with its mask and test.
struct Step<M: Machine> {
    handler: Handler<M>,
    /// The next step, where a test doesn't hold.
    no: Link<M>,
    /// The next step, where a test holds.
    yes: Link<M>,
    /// The constant of the test, or of the instruction.
    k: u32,
    /// The place of the load.
    place: u32,
    /// The mask of what was loaded.
    mask: u32,
    /// The instruction.
    op: Operation<M::Load, M::Extra>,
}

impl<M: Machine> Threaded<M> {
    /// The value of the program from an instruction on.
    ///
    /// # Panics
    /// If the instruction is outside the program.
    pub fn run_from(&self, Pc(pc): Pc, state: State, input: &M::Input<'_>) -> u32 {
        let State { a, x, mut memory } = state;
        let step = &self.steps[pc];
        (step.handler)(step, a, x, input, &mut memory)
    }

    /// The value of the program for an input: the image of a call in the byte order of the program, or a packet.
    pub fn run(&self, input: &M::Input<'_>) -> u32 {
        self.run_from(Pc(0), State::default(), input)
    }
}

impl Threaded<Seccomp> {
    /// Prepares a program. Linear.
    ///
    /// ```
    /// use tamis_abi::{Endian, SeccompData};
    /// use tamis_bpf::{Op, Program};
    /// use tamis_vm::threaded::Threaded;
    /// let insns = [Op::LoadData(4), Op::RetA].map(Into::into);
    /// let program = Program::new(insns.to_vec(), Endian::Little).unwrap();
    /// let call = SeccompData { arch: 0xc000_003e, ..SeccompData::default() };
    /// let threaded = Threaded::seccomp(&program).unwrap();
    /// assert_eq!(threaded.run(&call.image(program.endian())), 0xc000_003e);
    /// ```
    ///
    /// # Errors
    /// If the kernel wouldn't take it for its length.
    pub fn seccomp(program: &Program) -> Result<Threaded<Seccomp>, TooLong> {
        if !program.is_installable() {
            let len_insns = program.len();
            return Err(TooLong { len_insns });
        }
        let ops: Vec<Op> = program.ops().collect();
        Ok(Threaded {
            steps: build::steps(&ops),
        })
    }
}

impl Threaded<Sockets> {
    /// Prepares a program. Linear.
    pub fn packet(program: &packet::Program) -> Threaded<Sockets> {
        let ops: Vec<packet::Op> = program.ops().collect();
        Threaded {
            steps: build::steps(&ops),
        }
    }
}

impl<M: Machine> fmt::Debug for Threaded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threaded")
            .field("len_insns", &self.steps.len())
            .finish()
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = Program::MAX_INSNS;
        write!(
            f,
            "the program has {} instructions; the kernel and fast evaluators take at most {limit}",
            self.len_insns
        )
    }
}

impl Error for TooLong {}
