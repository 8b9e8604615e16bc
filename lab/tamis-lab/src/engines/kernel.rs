//! The running kernel as an evaluator: `BPF_PROG_TEST_RUN`, less what a program takes there that does nothing.
//!
//! The kernel offers no such thing for the filters that it has installed, so programs are written anew
//! ([`tamis_ebpf_vm::direct`]) and loaded as classifiers of packets. One system call runs a program many times on one
//! packet, so only cases of one input have a row.

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
/// That of the program that does nothing, which isn't reported.
const EMPTY: Row = Row::plain("kernel, empty");

/// The size of `struct __sk_buff`.
const SOCKET_BUFFER_BYTES: usize = 192;

/// Programs in the kernel, oldest first.
pub(super) struct Kernel {
    programs: Vec<Loaded>,
    /// One that does nothing.
    nothing: Loaded,
}

/// What the kernel is given in a case of one input, and the value that it has for it.
pub(super) struct Turn<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) packet: &'a [u8],
    pub(super) value: Result<u32, String>,
}

/// Why the kernel has no row in a case that offered it a turn.
pub(super) enum Missing {
    /// It gives this value, which no other evaluator does.
    OtherValue(u32),
    /// It gives none.
    Unable(String),
}

impl Kernel {
    /// Loads the filters of a stack, or says why they can't be.
    pub(super) fn of_stack(stack: &Stack) -> Result<Kernel, String> {
        let programs = stack.programs().iter().map(direct::call);
        let programs: Result<Vec<Program>, _> = programs.collect();
        Kernel::of_programs(&programs.map_err(|error| error.to_string())?)
    }

    /// Loads a filter of sockets, or says why it can't be.
    pub(super) fn of_packet_filter(filter: &packet::Program) -> Result<Kernel, String> {
        let Some(program) = direct::packet(filter, Given::SocketBuffer) else {
            return Err(super::extended::NOT_WRITTEN.to_owned());
        };
        Kernel::of_programs(&[program])
    }

    /// Loads programs for classifiers.
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

    /// The value for a packet, as a stack of filters gives it, or why there is none.
    pub(super) fn verdict(&self, packet: &[u8]) -> Result<u32, String> {
        let mut kept = stack::NO_FILTER;
        for program in self.programs.iter().rev() {
            kept = stack::stricter(kept, run(program, packet, 1)?);
        }
        Ok(kept)
    }

    /// The value of the only program for a packet, or why there is none.
    pub(super) fn value(&self, packet: &[u8]) -> Result<u32, String> {
        let values = self.programs.iter().map(|program| run(program, packet, 1));
        values.sum()
    }

    /// What runs all programs on a packet so often, and what does nothing as often.
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

/// Lets the evaluators of a case take turns, with the kernel if it has a turn and the value that is expected for the
/// case's only input.
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
