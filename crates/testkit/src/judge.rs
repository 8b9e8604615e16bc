//! The running kernel as a judge of programs: does it take them, and what do they answer?
//!
//! A filter cannot be removed, so every filter is installed in a process of its own, forked for it.
//! That process may not be able to make a single call afterwards; it leaves its findings in shared
//! memory and ends itself by an illegal instruction, which needs no call. A refused filter leaves no
//! trace, so the same process goes on with the next one.
//!
//! Only x86-64 is supported; [`unavailable`] says so elsewhere.

mod process;

use std::fmt;

use tamis_abi::{Action, ActionKind, SeccompData};
use tamis_bpf::Insn;

use self::process::{Board, Ending};

/// The kernel's word on installing a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was installed.
    Accepted,
    /// It was refused with this errno.
    Refused(i32),
}

/// What a caller sees of a filter's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call returned this errno, 0 for success; a call that took place counts as `ENOSYS`, which
    /// is what calling a number without a call gives.
    Errno(u16),
    /// `SIGSYS` ended the process.
    Killed,
}

const ENOSYS: u16 = 38;

impl Outcome {
    /// What a caller sees of this return value if it has no tracer, no supervisor and no handler for
    /// `SIGSYS`, and calls a number that does nothing.
    pub fn of_ret(ret: u32) -> Outcome {
        let action = Action::from_ret(ret);
        match action.kind {
            ActionKind::KillProcess | ActionKind::KillThread | ActionKind::Trap => Outcome::Killed,
            ActionKind::Errno => Outcome::Errno(action.data.min(4095)),
            ActionKind::Notify | ActionKind::Trace | ActionKind::Log | ActionKind::Allow => {
                Outcome::Errno(ENOSYS)
            }
        }
    }

    fn of_result(result: i64) -> Outcome {
        match result {
            ..0 => Outcome::Errno(result.unsigned_abs() as u16),
            0 => Outcome::Errno(0),
            1.. => Outcome::Errno(ENOSYS),
        }
    }
}

/// What a filter answered to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the caller saw.
    pub outcome: Outcome,
    /// The instruction pointer that the filter saw.
    pub ip: u64,
}

/// Why the kernel cannot be asked; `None` if it can.
pub fn unavailable() -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("filters are judged on x86-64 only".to_owned());
    }
    let allow = [Insn {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: Action::ALLOW.ret(),
    }];
    match verdicts(&[allow.to_vec()])[..] {
        [Verdict::Accepted] => None,
        [Verdict::Refused(errno)] => {
            let error = std::io::Error::from_raw_os_error(errno);
            Some(format!("no filter can be installed here: {error}"))
        }
        _ => Some("the kernel gave no verdict".to_owned()),
    }
}

/// The kernel's verdict on each list of instructions.
///
/// # Panics
/// If a process cannot be made or ends without a verdict.
pub fn verdicts(lists: &[Vec<Insn>]) -> Vec<Verdict> {
    let board = Board::new(lists.len());
    let mut verdicts = Vec::with_capacity(lists.len());
    while verdicts.len() < lists.len() {
        let first = verdicts.len();
        process::install_until_accepted(&lists[first..], &board, first);
        verdicts.extend(board.written_from(first).map(|result| match result {
            0 => Verdict::Accepted,
            error => Verdict::Refused(-error as i32),
        }));
        assert!(
            verdicts.len() > first,
            "the process that installs ended without a verdict"
        );
    }
    verdicts
}

/// What a task with these filters, the oldest first, sees of each call, made by 64-bit code with
/// these numbers and arguments; architecture and instruction pointer are what they are.
///
/// Every filter but the last must allow `seccomp`, or the next cannot be installed.
///
/// # Panics
/// If the kernel refuses a filter, a process cannot be made or ends in an unexpected way.
pub fn answers(filters: &[&[Insn]], calls: &[SeccompData]) -> Vec<Answer> {
    let (results, ips) = (Board::new(calls.len()), Board::new(calls.len()));
    let mut answers = Vec::with_capacity(calls.len());
    while answers.len() < calls.len() {
        let first = answers.len();
        let ending = process::install_and_call(filters, &calls[first..], &results, &ips, first);
        let results = results.written_from(first);
        let mut outcomes: Vec<Outcome> = results.map(Outcome::of_result).collect();
        match ending {
            Ending::AsIntended => {}
            Ending::KilledByFilter => outcomes.push(Outcome::Killed),
            Ending::Refused => panic!("the kernel refused one of {filters:?}"),
        }
        assert!(
            !outcomes.is_empty(),
            "the process that calls ended without an answer"
        );
        for (index, outcome) in (first..).zip(outcomes) {
            let ip = ips.value(index).expect("a call notes its place first");
            let ip = ip as u64;
            answers.push(Answer { outcome, ip });
        }
    }
    answers
}

/// How often one task can install a filter, which must allow `seccomp`.
///
/// # Panics
/// If a process cannot be made, or the kernel refuses the filter for another reason than the number
/// of those that are there.
pub fn how_many_fit(insns: &[Insn]) -> usize {
    const ENOMEM: i64 = 12;
    let board = Board::new(2);
    process::install_until_refused(insns, &board);
    assert_eq!(board.value(1), Some(-ENOMEM), "refused for lack of room");
    board.value(0).expect("the number is written first") as usize
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Accepted => f.write_str("accepted"),
            Verdict::Refused(errno) => write!(f, "refused with errno {errno}"),
        }
    }
}
