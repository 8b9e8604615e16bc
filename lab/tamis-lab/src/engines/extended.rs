//! The engines for extended programs: filters of seccomp in the kernel's conversion, filters of sockets compiled
//! directly, and programs of object files.

use tamis_abi::Endian;
use tamis_bpf::packet::Packet;
use tamis_bpf::{Program, Stack, packet, stack};
use tamis_ebpf_vm::check::{self, Checked, Layout, check};
use tamis_ebpf_vm::convert::converted;
use tamis_ebpf_vm::direct::{self, Given};
use tamis_ebpf_vm::memory::{Context, Frames, Helpers, Memory};
use tamis_ebpf_vm::threaded::Threaded;
use tamis_engine::{Engine, Error, ExtendedEvaluator, Options};
use tamis_jit::Extended;
use tamis_report::engines::Row;

use crate::object;

/// The rows of the interpreter and of machine code.
pub(super) const ROWS: [Row; 2] = [Row::plain("extended"), Row::plain("extended, jit")];

/// The reason that a filter of sockets can't be compiled to an extended program.
pub(super) const NOT_WRITTEN: &str =
    "it uses values beside the packet or divides by X, which isn't written as an extended program";

/// A stack of converted filters, oldest first.
pub(super) struct Converted {
    threaded: Vec<Threaded>,
    /// The machine code, or the reason for its absence.
    native: Result<Vec<Extended>, tamis_jit::Error>,
    endian: Endian,
}

impl Converted {
    /// Converts all filters of a stack; the error is the reason that one can't be converted.
    pub(super) fn new(stack: &Stack) -> Result<Converted, String> {
        let programs = stack.programs().iter().map(checked);
        let programs: Vec<Checked> = programs.collect::<Result<_, String>>()?;
        let compile = |program| Extended::compile(program, &tamis_jit::Options::default());
        Ok(Converted {
            threaded: programs.iter().map(Threaded::new).collect(),
            native: programs.iter().map(compile).collect(),
            endian: stack.endian().unwrap_or(Endian::Little),
        })
    }

    /// The reason that the machine code is absent, if it is.
    pub(super) fn without_native(&self) -> Option<&tamis_jit::Error> {
        self.native.as_ref().err()
    }

    /// The verdict of the interpreter for the bytes of a call.
    pub(super) fn interpreted(&self, context: &[u8; 64], frames: &mut Frames) -> u32 {
        self.verdict(context, frames, &self.threaded, |program, memory| {
            program.run(memory, &mut Helpers::none())
        })
    }

    /// The verdict of machine code; without it, that of an empty stack.
    pub(super) fn native(&self, context: &[u8; 64], frames: &mut Frames) -> u32 {
        let programs = self.native.as_deref().unwrap_or(&[]).iter().rev();
        let runs = programs.map(|program| {
            let mut context = Context::ReadOnly(context);
            // Converted filters call no helpers, so there is a value.
            let ret = program.run_without_helpers(&mut context, &[], frames);
            ret.unwrap_or_default() as u32
        });
        runs.fold(stack::NO_FILTER, stack::stricter)
    }

    #[inline]
    fn verdict<P, E>(
        &self,
        context: &[u8; 64],
        frames: &mut Frames,
        programs: &[P],
        run: impl Fn(&P, &mut Memory<'_>) -> Result<u64, E>,
    ) -> u32 {
        let context = Context::ReadOnly(context);
        let mut memory = Memory::with_frames(context, &[], self.endian, std::mem::take(frames));
        // A fault counts as 0, which no other engine returns, so it is a difference.
        let runs = programs.iter().rev();
        let runs = runs.map(|program| run(program, &mut memory).map_or(0, |ret| ret as u32));
        let verdict = runs.fold(stack::NO_FILTER, stack::stricter);
        *frames = memory.into_frames();
        verdict
    }
}

/// Compiles a filter of sockets to an extended program.
pub(super) fn of_packet_filter(filter: &packet::Program) -> Result<Checked, String> {
    let program = direct::packet(filter, Given::SocketFilter).ok_or(NOT_WRITTEN)?;
    object::checked(program)
}

/// A program on an engine.
pub(super) fn evaluator(
    program: &Checked,
    engine: Engine,
    evaluations: Option<usize>,
) -> Result<ExtendedEvaluator, Error> {
    let options = Options {
        engine,
        evaluations: evaluations.map(|count| count as u64),
        ..Options::default()
    };
    ExtendedEvaluator::new(program.clone(), &options)
}

/// The value of a program for packets in sequence. A checked program has no faults; a fault would count as 0.
pub(super) fn run(evaluator: &ExtendedEvaluator) -> impl FnMut(&Packet<'_>) -> u32 {
    let mut runner = evaluator.runner();
    move |packet| runner.run(packet).unwrap_or_default()
}

fn checked(program: &Program) -> Result<Checked, String> {
    let converted = converted(program).map_err(|error| error.to_string())?;
    let options = check::Options {
        max_steps: 1_000_000,
        permits_unreachable: true,
    };
    let checked = check(converted, &Layout::seccomp(), &Helpers::none(), &options);
    checked.map_err(|refusal| refusal.to_string())
}
