//! The threaded interpreter: a program whose instructions are functions that call each other.
//!
//! Each instruction is a `Step`: the address of the function that runs it, and its constants. A function does its work
//! and ends by calling that of the next step, which an optimising compiler turns into a jump, so the processor predicts
//! each instruction's successor by itself, and a branch of the program is a branch of the machine. The next step
//! follows its predecessor in memory, so that the processor needn't wait for a link.
//!
//! Frequent sequences are one step: a load, the length of a header before it, a mask and a shift after it, and the
//! tests, store or copy of the value, or the end of the program after a test. Jumps cost nothing. One function for all
//! rare instructions (values beside a packet, divisions) does the same as the reference interpreter.
//!
//! Without optimisation the calls nest, as deep as a path is long, so programs are limited to the 4096 instructions of
//! the kernel's limit.

mod build;
mod handlers;

use std::error::Error;
use std::fmt;

use tamis_bpf::interp::Input;
use tamis_bpf::packet::{self, Packet};
use tamis_bpf::{Op, Operation, Pc, Program};

/// The scratch memory.
pub type Memory = [u32; 16];

/// The type of programs and their input.
pub trait Machine: Sized + 'static {
    /// The source of a load.
    type Load: Copy;
    /// The instructions that only it has.
    type Extra: Copy;
    /// The input of a program.
    type Input<'a>: Input<Load = Self::Load, Extra = Self::Extra>;

    /// The bytes of the input, if it has bytes.
    fn bytes<'i>(input: &'i Self::Input<'_>) -> &'i [u8];
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

    fn bytes(_: &[u32; 16]) -> &[u8] {
        &[]
    }
}

impl Machine for Sockets {
    type Load = packet::Load;
    type Extra = packet::Extra;
    type Input<'a> = Packet<'a>;

    fn bytes<'i>(packet: &'i Packet<'_>) -> &'i [u8] {
        packet.bytes
    }
}

/// The registers and the scratch memory at an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// The accumulator.
    pub a: u32,
    /// The index register.
    pub x: u32,
    /// The scratch memory; slots that were never written are dead.
    pub memory: Memory,
}

/// A program prepared for the threaded interpreter.
pub struct Threaded<M: Machine> {
    steps: Vec<Step<M>>,
    tables: Tables<M>,
}

/// The data of rare steps.
struct Tables<M: Machine> {
    /// The instructions.
    ops: Vec<Operation<M::Load, M::Extra>>,
    /// Where the step of each instruction stands.
    places: Vec<u32>,
    /// Tests for equality: constants, and the places where they lead.
    cases: Vec<(u32, u32)>,
}

/// A program with more instructions than the kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The length.
    pub len_insns: usize,
}

/// The function of a step, given it, the steps behind it, A and X: it returns the value of the program.
type Handler<M> = for<'f, 'a> fn(&Step<M>, &[Step<M>], u32, u32, &mut Frame<'f, 'a, M>) -> u32;

/// The state of an evaluation besides the registers.
struct Frame<'f, 'a, M: Machine> {
    /// The bytes of the input.
    bytes: &'f [u8],
    input: &'f M::Input<'a>,
    steps: &'f [Step<M>],
    tables: &'f Tables<M>,
    memory: Memory,
}

/// A unit of execution, in half a line of the processor's cache. Unless a test leads elsewhere, the next step follows
/// it in memory.
struct Step<M: Machine> {
    handler: Handler<M>,
    /// Where a test leads that isn't followed by the next step: while building an instruction, then a place; if it leads
    /// to a return of a constant, that. Of several tests for equality, the first in the table.
    target: u32,
    /// The constant of the test, the count of tests, or the instruction.
    k: u32,
    /// The place of the load.
    place: u32,
    /// The mask of the loaded value, and the distances of the subsequent shifts, left and right.
    mask: u32,
    shifts: (u8, u8),
    /// The slot that receives the value.
    slot: u8,
    /// The place of the byte with a header's length.
    header: u32,
}

impl<M: Machine> Threaded<M> {
    /// The value of the program from an instruction on.
    ///
    /// # Panics
    /// If the instruction is outside the program.
    pub fn run_from(&self, Pc(pc): Pc, state: State, input: &M::Input<'_>) -> u32 {
        let State { a, x, memory } = state;
        self.enter(self.tables.places[pc], [a, x], memory, input)
    }

    /// The value of the program for an input: the image of a call in the byte order of the program, or a packet.
    #[inline]
    pub fn run(&self, input: &M::Input<'_>) -> u32 {
        self.enter(0, [0, 0], [0; 16], input)
    }

    #[inline]
    fn enter(&self, at: u32, [a, x]: [u32; 2], memory: Memory, input: &M::Input<'_>) -> u32 {
        let mut frame = Frame {
            bytes: M::bytes(input),
            input,
            steps: &self.steps,
            tables: &self.tables,
            memory,
        };
        handlers::go(at, a, x, &mut frame)
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
        Ok(build::threaded(&ops))
    }
}

impl Threaded<Sockets> {
    /// Prepares a program. Linear.
    pub fn packet(program: &packet::Program) -> Threaded<Sockets> {
        let ops: Vec<packet::Op> = program.ops().collect();
        build::threaded(&ops)
    }
}

impl<M: Machine> fmt::Debug for Threaded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threaded")
            .field("len_insns", &self.tables.ops.len())
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
