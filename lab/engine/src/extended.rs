//! Evaluators of extended programs of sockets.

use std::mem;

use tamis_bpf::packet::Packet;
use tamis_ebpf_vm::check::Checked;
use tamis_ebpf_vm::interp::{self, Fault};
use tamis_ebpf_vm::memory::{Context, Frames, Memory};
use tamis_ebpf_vm::socket::{context, helpers};
use tamis_ebpf_vm::threaded::Threaded;
use tamis_jit::Extended;

use crate::choice::{Choice, Engine, choose};
use crate::{Error, Options};

/// The most instructions of an evaluation by the reference interpreter: more than the checker follows.
const MAX_STEPS: u64 = 100_000_000;

/// An extended program for sockets that the checker has accepted, prepared to be run on many packets. It gets the context and
/// the helpers of [`tamis_ebpf_vm::socket`].
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::packet::Packet;
/// use tamis_ebpf_vm::check::{self, Layout, check};
/// use tamis_ebpf_vm::{Op, Program, Reg, Size, insn::Address, socket};
/// use tamis_engine::{ExtendedEvaluator, Options};
/// let len = Address { base: Reg::R1, offset: 0 };
/// let program = Program::from_ops(&[Op::Load(Size::W, Reg::R0, len), Op::Exit], Endian::Little).unwrap();
/// let checked = check(program, &Layout::socket_filter(), &socket::helpers(), &check::Options::default()).unwrap();
/// let evaluator = ExtendedEvaluator::new(checked, &Options::default()).unwrap();
/// assert_eq!(evaluator.run(&Packet::new(&[0; 60])), Ok(60));
/// ```
#[derive(Debug)]
pub struct ExtendedEvaluator {
    checked: Checked,
    prepared: Prepared,
    choice: Choice,
}

#[derive(Debug)]
enum Prepared {
    Reference,
    Threaded(Threaded),
    Jit(Extended),
}

impl ExtendedEvaluator {
    /// Prepares a program that was checked with [`socket_filter`](tamis_ebpf_vm::check::Layout::socket_filter).
    ///
    /// # Errors
    /// If the requested engine isn't available.
    pub fn new(checked: Checked, options: &Options) -> Result<ExtendedEvaluator, Error> {
        let harden = options.harden;
        let compile = || Extended::compile(&checked, &tamis_jit::Options { harden });
        let (choice, compiled) = choose(options.engine, options.evaluations, compile)?;
        let prepared = match (choice.engine, compiled) {
            (_, Some(compiled)) => Prepared::Jit(compiled),
            (Engine::Reference, None) => Prepared::Reference,
            (_, None) => Prepared::Threaded(Threaded::new(&checked)),
        };
        Ok(ExtendedEvaluator {
            checked,
            prepared,
            choice,
        })
    }

    /// The engine, and the reason for its choice.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The value for a packet: the number of bytes to keep, 0 for none. For many packets a [`Runner`] is faster if the
    /// program has a stack.
    ///
    /// # Errors
    /// If the helper fails, which is impossible for a checked program.
    pub fn run(&self, packet: &Packet<'_>) -> Result<u32, Fault> {
        self.runner().run(packet)
    }

    /// A runner of the program on one packet after the other.
    pub fn runner(&self) -> Runner<'_> {
        Runner {
            evaluator: self,
            frames: Frames::default(),
        }
    }

    /// The same by the reference interpreter, with the number of steps.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_reference(&self, packet: &Packet<'_>) -> Result<interp::Execution, Fault> {
        let mut context = context(packet);
        let program = self.checked.program();
        let mut memory = Memory::new(
            Context::Writable(&mut context),
            packet.bytes,
            program.endian(),
        );
        interp::run(program, &mut memory, &mut helpers(), MAX_STEPS)
    }
}

/// An extended program and the memory of its stack.
#[derive(Debug)]
pub struct Runner<'e> {
    evaluator: &'e ExtendedEvaluator,
    frames: Frames,
}

impl Runner<'_> {
    /// As [`ExtendedEvaluator::run`].
    ///
    /// # Errors
    /// The same.
    #[inline]
    pub fn run(&mut self, packet: &Packet<'_>) -> Result<u32, Fault> {
        let checked = &self.evaluator.checked;
        if checked.accesses().context_bytes() == 0 {
            return self.run_with(Context::ReadOnly(&[]), packet);
        }
        let mut context = context(packet);
        self.run_with(Context::Writable(&mut context), packet)
    }

    #[inline]
    fn run_with(&mut self, mut context: Context<'_>, packet: &Packet<'_>) -> Result<u32, Fault> {
        if let Prepared::Jit(program) = &self.evaluator.prepared
            && let Some(ret) =
                program.run_without_helpers(&mut context, packet.bytes, &mut self.frames)
        {
            return Ok(ret as u32);
        }
        self.run_with_helpers(context, packet)
    }

    fn run_with_helpers(
        &mut self,
        context: Context<'_>,
        packet: &Packet<'_>,
    ) -> Result<u32, Fault> {
        let ExtendedEvaluator {
            checked, prepared, ..
        } = self.evaluator;
        let endian = checked.program().endian();
        let frames = mem::take(&mut self.frames);
        let mut memory = Memory::with_frames(context, packet.bytes, endian, frames);
        let ret = match prepared {
            Prepared::Reference => return Ok(self.evaluator.run_reference(packet)?.ret as u32),
            Prepared::Threaded(program) => program.run(&mut memory, &mut helpers()),
            Prepared::Jit(program) => program.run(&mut memory, &mut helpers()),
        };
        self.frames = memory.into_frames();
        Ok(ret? as u32)
    }
}
