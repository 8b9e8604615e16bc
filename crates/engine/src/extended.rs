//! Evaluators of extended programs of sockets.

use tamis_bpf::packet::Packet;
use tamis_ebpf::check::Checked;
use tamis_ebpf::interp::{self, Fault};
use tamis_ebpf::memory::{Context, Memory};
use tamis_ebpf::socket::{context, helpers};
use tamis_ebpf::threaded::Threaded;
use tamis_jit::Extended;

use crate::choice::{Choice, Engine, choose};
use crate::{Error, Options};

/// The most instructions of an evaluation by the reference interpreter: more than the checker follows.
const MAX_STEPS: u64 = 100_000_000;

/// An extended program for sockets that the checker has accepted, prepared to be run on many packets. It gets the context and
/// the helpers of [`tamis_ebpf::socket`].
///
/// ```
/// use tamis_abi::Endian;
/// use tamis_bpf::packet::Packet;
/// use tamis_ebpf::check::{self, Layout, check};
/// use tamis_ebpf::{Op, Program, Reg, Size, insn::Address, socket};
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
    /// Prepares a program that was checked with [`socket_filter`](tamis_ebpf::check::Layout::socket_filter).
    ///
    /// # Errors
    /// If the engine that was asked for isn't there.
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

    /// What it runs on, and why.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The value for a packet: how many of its bytes are kept, 0 for none.
    ///
    /// # Errors
    /// If the helper fails, which it doesn't for what the checker has accepted.
    pub fn run(&self, packet: &Packet<'_>) -> Result<u32, Fault> {
        let mut context = context(packet);
        let endian = self.checked.program().endian();
        let mut memory = Memory::new(Context::Writable(&mut context), packet.bytes, endian);
        let ret = match &self.prepared {
            Prepared::Reference => return Ok(self.run_reference(packet)?.ret as u32),
            Prepared::Threaded(program) => program.run(&mut memory, &mut helpers())?,
            Prepared::Jit(program) => program.run(&mut memory, &mut helpers())?,
        };
        Ok(ret as u32)
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
