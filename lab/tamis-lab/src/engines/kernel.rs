//! The running kernel as an evaluator: the time of `BPF_PROG_TEST_RUN` minus that of an empty program.
//!
//! The kernel has no such interface for installed filters, so filters are compiled to extended BPF
//! ([`tamis_ebpf_vm::direct`]) and loaded as packet classifiers. One system call runs a program many times on one
//! packet, so only cases with one input have a row.

use tamis_bpf::{Stack, packet, stack};
use tamis_ebpf_vm::direct::{self, Given};
use tamis_ebpf_vm::{AluOp, Op, Program, Reg, Source, Width};
use tamis_kernel::NATIVE_ENDIAN;
use tamis_kernel::bpf::{Loaded, load_classifier};
use tamis_kernel::measure::Rounds;
use tamis_report::engines::Row;

use super::race::{Contestant, Outcome, race};

/// The row of the kernel.
pub(super) const ROW: Row = Row::plain("kernel");
/// The row of the empty program, which isn't reported.
const EMPTY: Row = Row::plain("kernel, empty");

/// The size of `struct __sk_buff`.
const SOCKET_BUFFER_BYTES: usize = 192;

/// Programs in the kernel, oldest first.
pub(super) struct Kernel {
    programs: Vec<Loaded>,
    /// The empty program.
    nothing: Loaded,
}

/// The kernel's input in a case with one input, and its value for that.
pub(super) struct Turn<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) packet: &'a [u8],
    pub(super) value: Result<u32, String>,
}

/// The reason that the kernel has no row in a case.
pub(super) enum Missing {
    /// The kernel returns this value, which differs from all other evaluators' values.
    OtherValue(u32),
    /// The kernel returns no value.
    Unable(String),
}

impl Kernel {
    /// Loads the filters of a stack; the error is the reason that the kernel can't run them.
    pub(super) fn of_stack(stack: &Stack) -> Result<Kernel, String> {
        let programs = stack.programs().iter().map(direct::call);
        let programs: Result<Vec<Program>, _> = programs.collect();
        Kernel::of_programs(&programs.map_err(|error| error.to_string())?)
    }

    /// Loads a filter of sockets; the error is the reason that the kernel can't run it.
    pub(super) fn of_packet_filter(filter: &packet::Program) -> Result<Kernel, String> {
        let Some(program) = direct::packet(filter, Given::SocketBuffer) else {
            return Err(super::extended::NOT_WRITTEN.to_owned());
        };
        Kernel::of_programs(&[program])
    }

    /// Loads programs as packet classifiers.
    pub(super) fn of_programs(programs: &[Program]) -> Result<Kernel, String> {
        let load = |program: &Program| {
            if program.endian() != NATIVE_ENDIAN {
                return Err("the program is for machines of the other byte order".to_owned());
            }
            load_classifier(program.insns()).map_err(|error| error.to_string())
        };
        let zero = Op::Alu(Width::W32, AluOp::Mov, Reg::R0, Source::Imm(0));
        let nothing = Program::from_ops(&[zero, Op::Exit], NATIVE_ENDIAN);
        Ok(Kernel {
            nothing: load(&nothing.expect("it ends"))?,
            programs: programs.iter().map(load).collect::<Result<_, _>>()?,
        })
    }

    /// The verdict of the stack of filters for a packet, or the reason that there is none.
    pub(super) fn verdict(&self, packet: &[u8]) -> Result<u32, String> {
        let mut kept = stack::NO_FILTER;
        for program in self.programs.iter().rev() {
            kept = stack::stricter(kept, run(program, packet, 1)?);
        }
        Ok(kept)
    }

    /// The value of the only program for a packet, or the reason that there is none.
    pub(super) fn value(&self, packet: &[u8]) -> Result<u32, String> {
        let values = self.programs.iter().map(|program| run(program, packet, 1));
        values.sum()
    }

    /// All programs on a packet, and the empty program as often.
    fn contestants<'a>(&'a self, packet: &'a [u8], evaluations: usize) -> [Contestant<'a>; 2] {
        let times = evaluations as u32;
        let ret = move |program| run(program, packet, times).unwrap_or_default();
        let all = move || self.programs.iter().map(ret).fold(0, u32::wrapping_add);
        let empty = move || {
            let nothing = self.programs.iter().map(|_| ret(&self.nothing));
            nothing.fold(0, u32::wrapping_add)
        };
        [Contestant::new(ROW, all), Contestant::new(EMPTY, empty)]
    }
}

/// Times the evaluators of a case, with the kernel if it returns the expected value for the case's only input.
pub(super) fn race_beside<'a>(
    mut contestants: Vec<Contestant<'a>>,
    turn: Option<Turn<'a>>,
    expected: &[u32],
    rounds: Rounds,
) -> (Outcome, Option<Missing>) {
    let missing = turn.and_then(|turn| match turn.value {
        Ok(ret) if ret == expected[0] => {
            contestants.extend(turn.kernel.contestants(turn.packet, expected.len()));
            None
        }
        Ok(ret) => Some(Missing::OtherValue(ret)),
        Err(reason) => Some(Missing::Unable(reason)),
    });
    let mut outcome = race(&mut contestants, rounds, expected.len());
    outcome.subtract(ROW, EMPTY);
    (outcome, missing)
}

fn run(program: &Loaded, packet: &[u8], times: u32) -> Result<u32, String> {
    let run = program.test_run(packet, &mut [0; SOCKET_BUFFER_BYTES], times);
    run.map(|run| run.ret)
        .map_err(|errno| format!("the kernel doesn't run it: {errno}"))
}
