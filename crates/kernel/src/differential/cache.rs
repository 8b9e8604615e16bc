//! For which calls the kernel runs no filter at all, found out by time.
//!
//! The kernel's action bitmap can't be read, except on kernels built for debugging it. But a call that lies in
//! the bitmap takes as long under a thousand instructions as under one. So *ballast* lies below the programs
//! that are asked about: four filters of 4000 comparisons each, which are in the bitmap for every call
//! themselves and take some three microseconds to run. Each call is timed before the filters are
//! installed and afterwards, the fastest of twenty batches, beside two calls of which it is known: one whose
//! number lies in no bitmap. What it costs is compared with that.
//!
//! It is a measurement: it belongs in no test that must not fail on a busy machine. A call whose cost is
//! neither clearly that of no filter nor clearly that of the ballast is undecided.

use std::sync::atomic::Ordering;

use tamis_abi::{Action, Arch, SeccompData};
use tamis_bpf::{Insn, Op, Operand, Program, Test};

use super::AskError;
use super::calls::{raw_call, refusal};
use crate::measure::Call;
use crate::sys::page::Shared;
use crate::sys::signal::ChildReports;
use crate::sys::subject::{self, Board, Plan, RawCall};
use crate::sys::wait::{self, Event};

/// The filters below those that are asked about.
const BALLAST_FILTERS: usize = 4;
const BALLAST_INSNS: usize = 4000;
/// A number that no call has and no kernel keeps a bit for.
const NO_NUMBER: u32 = 0x1000_0000;
/// How often an undecided measurement is repeated.
const TRIES: usize = 3;

/// Calls that can be made any number of times, on both architectures of an x86-64 machine.
pub fn calls() -> Vec<SeccompData> {
    let names = [
        "read", "write", "close", "fstat", "lseek", "ioctl", "dup", "getpid", "fcntl", "fsync",
        "umask", "getuid", "getgid", "geteuid", "getppid", "gettid", "futex", "openat",
    ];
    let found = names.iter().filter_map(|name| Call::find(name).ok());
    let found: Vec<Call> = found.collect();
    let on = |arch: Arch| found.iter().filter_map(move |call| call.data(arch));
    on(Arch::X86_64).chain(on(Arch::X86)).collect()
}

/// For each of these calls, at most 500 and such as [`calls`] gives, whether the kernel runs no filter if these
/// programs are all filters of a task; `None` where the times say neither.
///
/// No program may kill or trap: see [`harmless`](mod@tamis_bpf::harmless). They may have some 16000
/// instructions together as the kernel counts. Takes a tenth of a second.
///
/// # Errors
/// See [`AskError`].
pub fn uncalled(
    programs: &[&Program],
    calls: &[SeccompData],
) -> Result<Vec<Option<bool>>, AskError> {
    if !cfg!(target_arch = "x86_64") {
        return Err(AskError::NotHere);
    }
    let mut found = measure(programs, calls)?;
    for _ in 1..TRIES {
        if !found.contains(&None) {
            break;
        }
        for (found, again) in found.iter_mut().zip(measure(programs, calls)?) {
            *found = found.or(again);
        }
    }
    Ok(found)
}

/// One measurement, in a process of its own.
fn measure(programs: &[&Program], calls: &[SeccompData]) -> Result<Vec<Option<bool>>, AskError> {
    let ballast = ballast();
    let mut filters: Vec<&[Insn]> = vec![ballast.insns(); BALLAST_FILTERS];
    filters.extend(programs.iter().map(|program| program.insns()));
    let in_no_bitmap = [Arch::X86_64, Arch::X86].map(|arch| SeccompData {
        nr: NO_NUMBER,
        arch: arch.audit(),
        ..SeccompData::default()
    });
    let raw: Vec<RawCall> = in_no_bitmap.iter().chain(calls).map(raw_call).collect();
    let board = Shared::<Board>::new().map_err(AskError::Start)?;
    let plan = Plan {
        filters: &filters,
        calls: &raw,
        board: &board,
    };
    let _child_reports = ChildReports::keep();
    let pid = subject::spawn_timing(&plan).map_err(AskError::Start)?;
    let end = wait::next(pid).map_err(AskError::Start)?;
    refusal(&board, filters.len()).map_err(|error| match error {
        AskError::Refused { filter, error } => AskError::Refused {
            filter: (filter + 1).saturating_sub(BALLAST_FILTERS),
            error,
        },
        other => other,
    })?;
    match end {
        Event::Signalled {
            signal: libc::SIGILL,
            ..
        } => {}
        Event::Signalled { signal, .. } => {
            return Err(AskError::Died {
                signal: Some(signal),
            });
        }
        _ => return Err(AskError::Died { signal: None }),
    }
    let costs: Vec<u64> = board.ticks[..raw.len()]
        .iter()
        .map(|[before, after]| {
            let after = after.load(Ordering::Acquire);
            after.saturating_sub(before.load(Ordering::Acquire))
        })
        .collect();
    let (of_ballast, costs) = costs.split_at(in_no_bitmap.len());
    let verdict = |(call, cost): (&SeccompData, &u64)| {
        let of_ballast = of_ballast[usize::from(call.arch == Arch::X86.audit())];
        match cost {
            cost if cost * 4 < of_ballast => Some(true),
            cost if cost * 2 > of_ballast => Some(false),
            _ => None,
        }
    };
    Ok(calls.iter().zip(costs).map(verdict).collect())
}

/// A filter that allows everything, slowly, with nothing in the way of the bitmap.
fn ballast() -> Program {
    let compare = Op::Branch {
        test: Test::Eq,
        operand: Operand::K(0x7654_3210),
        jt: 0,
        jf: 0,
    };
    let mut ops = vec![Op::LoadData(0)];
    ops.extend(vec![compare; BALLAST_INSNS]);
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    Program::new(ops.into_iter().map(Insn::from).collect()).expect("it is a valid program")
}
