//! What a stack of filters answers to real system calls.
//!
//! No call takes place, whatever its number and arguments: below the filters that are asked about lies a
//! *guard*, a filter that answers everything with `trace`. That is stricter than `allow` and `log`, and
//! loses to everything else but a `trace` of a newer filter. This thread is the tracer: it reads the
//! message, which tells the guard's answer from others, and has the call skipped. It also sees a trap's
//! data, and whether a thread or the whole process was killed, because a second thread without filters
//! is there to survive.
//!
//! An answer of `ENOSYS` may be that error or `notify` without a listener. Such calls are made once more
//! over a guard that answers another error: that is stricter than `notify`.
//!
//! What it can't tell: `log` from `allow`, the data of an answer that nobody sees, `trace` with just
//! the guard's data from `allow`, and actions that the kernel doesn't know, for which it kills, from
//! `allow` if they are less strict than `trace`. The guard keeps the kernel from using its action
//! bitmap, see [`bitmap`](crate::measure::bitmap). Calls have the two architectures of this machine and
//! the instruction pointer of where they are made; for others see [`packets`](mod@super::packets).

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use tamis_abi::{Action, ActionKind, Arch, ArgIndex, SeccompData, Word};
use tamis_bpf::{Insn, Op, Program, Stack, Test};

use super::AskError;
use crate::NATIVE_ENDIAN;
use crate::ended::Ended;
use crate::errno::Errno;
use crate::flags::Flags;
use crate::install::{self, InstallError};
use crate::sys::page::Shared;
use crate::sys::raw_call::RawCall;
use crate::sys::signal::ChildReports;
use crate::sys::subject::{self, Board, COOKIE, Plan};
use crate::sys::wait;
use crate::tracee::{Event, Options, Resume, Stop, Stopped, Tracee};

/// What shows of an answer, from the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The whole process is killed.
    ProcessKilled,
    /// The thread is killed, and others of its process live on.
    ThreadKilled,
    /// A `SIGSYS` with this data.
    Trapped(u16),
    /// The call returns this error, 0 to 4095; 0 is success.
    Failed(u16),
    /// The call is handed to a listener.
    Notified,
    /// The call is handed to a tracer with this message.
    Traced(u16),
    /// The call is made, perhaps logged: what is less strict than `trace` counts as that.
    Made,
}

impl Outcome {
    /// What shows of a filter's return value.
    pub fn of_ret(ret: u32) -> Outcome {
        let action = Action::from_ret(ret);
        if Action::precedence(ret) > Action::precedence(ActionKind::Trace.ret()) {
            return Outcome::Made;
        }
        match action.kind {
            ActionKind::KillProcess => Outcome::ProcessKilled,
            ActionKind::KillThread => Outcome::ThreadKilled,
            ActionKind::Trap => Outcome::Trapped(action.data),
            ActionKind::Errno => Outcome::Failed(action.data.min(MAX_ERRNO)),
            ActionKind::Notify => Outcome::Notified,
            ActionKind::Trace if action.data != GUARD_DATA => Outcome::Traced(action.data),
            ActionKind::Trace | ActionKind::Log | ActionKind::Allow => Outcome::Made,
        }
    }
}

/// The largest error number that the kernel lets a filter answer with.
const MAX_ERRNO: u16 = 4095;
/// The data of the guard's answer.
const GUARD_DATA: u16 = 0x9c1f;
/// What the second guard answers: not `ENOSYS`.
const OTHER_ERROR: u16 = 4001;
/// `ENOSYS`, as the outcome of a call.
const ENOSYS: Outcome = Outcome::Failed(libc::ENOSYS as u16);
/// `uretprobe` and `uprobe`, which the kernel puts to no filter.
const EXEMPT: [u32; 2] = [335, 336];

/// What a stack answered to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The call as the filters saw it: with the instruction pointer of where it was made.
    pub call: SeccompData,
    /// What showed.
    pub outcome: Outcome,
}

/// Whether a call can be made: one of x86-64, of i386, or of x32, which is x86-64 with another number,
/// and none of the two that are put to no filter.
pub fn can_make(call: &SeccompData) -> bool {
    match call.arch {
        arch if arch == Arch::X86_64.audit() => !EXEMPT.contains(&call.nr),
        arch => arch == Arch::X86.audit(),
    }
}

/// Whether this machine makes calls of i386: the kernel may be built without, and a container may hide
/// it.
pub fn has_i386() -> bool {
    let call = SeccompData {
        arch: Arch::X86.audit(),
        ..SeccompData::default()
    };
    answers(&[], &[call]).is_ok()
}

/// What the kernel answers to each call under these filters, the oldest first.
///
/// Every filter but the newest must let `seccomp` take place, or the next can't be installed. The
/// filters may be any that the kernel takes; together they have some 20 instructions less room than on
/// a task of their own. A process of its own makes the calls; one more takes over after each kill. A
/// call that the filters let through takes some microseconds, a kill a millisecond.
///
/// # Errors
/// See [`AskError`]; [`AskError::Died`] with `SIGSEGV` if this machine makes no calls of i386.
///
/// # Panics
/// If a call [can't be made](can_make).
pub fn answers(filters: &[&[Insn]], calls: &[SeccompData]) -> Result<Vec<Answer>, AskError> {
    if !cfg!(target_arch = "x86_64") {
        return Err(AskError::NotHere);
    }
    assert!(calls.iter().all(can_make), "calls that can be made");
    let tracing = guard(Action::new(ActionKind::Trace, GUARD_DATA));
    let mut answers = all(&tracing, filters, calls)?;
    let unclear: Vec<usize> = (0..calls.len())
        .filter(|index| answers[*index].outcome == ENOSYS)
        .collect();
    let again: Vec<SeccompData> = unclear.iter().map(|index| calls[*index]).collect();
    let failing = guard(Action::errno(OTHER_ERROR));
    for (index, answer) in unclear.into_iter().zip(all(&failing, filters, &again)?) {
        if answer.outcome == Outcome::Failed(OTHER_ERROR) {
            answers[index].outcome = Outcome::Notified;
        }
    }
    Ok(answers)
}

/// A call to which the kernel answers something else than the reference interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The call as the filters saw it.
    pub call: SeccompData,
    /// What the interpreter makes expect.
    pub expected: Outcome,
    /// What the kernel answered.
    pub answered: Outcome,
}

/// Puts the calls that can be made here to the kernel, and tells those to which it answers something
/// else than the reference interpreter, with the number of calls made.
///
/// # Errors
/// As [`answers`].
pub fn compare(stack: &Stack, calls: &[SeccompData]) -> Result<(usize, Vec<Mismatch>), AskError> {
    let filters: Vec<&[Insn]> = stack.programs().iter().map(Program::insns).collect();
    let mut calls: Vec<SeccompData> = calls.iter().copied().filter(can_make).collect();
    let is_i386 = |call: &SeccompData| call.arch == Arch::X86.audit();
    if calls.iter().any(is_i386) && !has_i386() {
        calls.retain(|call| !is_i386(call));
    }
    let answers = answers(&filters, &calls)?;
    let mismatch = |answer: &Answer| {
        let run = stack.run(&answer.call);
        let expected = Outcome::of_ret(run.ret);
        (expected != answer.outcome).then_some(Mismatch {
            call: answer.call,
            expected,
            answered: answer.outcome,
        })
    };
    Ok((answers.len(), answers.iter().filter_map(mismatch).collect()))
}

/// A filter that gives one answer to everything but the installation of the filters above it.
fn guard(action: Action) -> Program {
    let last = ArgIndex::ALL[5];
    let answers_unless = |word: Word, value: u64, skip: u8| {
        let test = Op::branch(Test::Eq, value as u32, 0, skip);
        [Op::LoadData(word.offset(NATIVE_ENDIAN)), test]
    };
    let mut ops = Vec::new();
    ops.extend(answers_unless(Word::NR, libc::SYS_seccomp as u64, 5));
    ops.extend(answers_unless(Word::arg_low(last), COOKIE, 3));
    ops.extend(answers_unless(Word::arg_high(last), COOKIE >> 32, 1));
    ops.extend([Op::RetImm(Action::ALLOW.ret()), Op::RetImm(action.ret())]);
    let insns = ops.into_iter().map(Insn::from).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("it is a valid program")
}

/// The answers to all calls over one guard.
fn all(
    guard: &Program,
    filters: &[&[Insn]],
    calls: &[SeccompData],
) -> Result<Vec<Answer>, AskError> {
    let filters: Vec<&[Insn]> = [guard.insns()]
        .into_iter()
        .chain(filters.iter().copied())
        .collect();
    let mut answers = Vec::with_capacity(calls.len());
    while answers.len() < calls.len() {
        let rest = &calls[answers.len()..];
        let some = &rest[..rest.len().min(subject::MAX_CALLS)];
        let more = some_answers(&filters, some)?;
        if more.is_empty() {
            return Err(AskError::Died { signal: None });
        }
        answers.extend(more);
    }
    Ok(answers)
}

/// The answers to the first calls, up to the first kill.
fn some_answers(filters: &[&[Insn]], calls: &[SeccompData]) -> Result<Vec<Answer>, AskError> {
    let board = Shared::<Board>::new().map_err(AskError::Start)?;
    let raw: Vec<RawCall> = calls.iter().map(RawCall::of).collect();
    let plan = Plan {
        filters,
        calls: &raw,
        board: &board,
    };
    let _child_reports = ChildReports::keep();
    let (gate, mut opener) = io::pipe()?;
    let pid = subject::spawn(&plan, gate.as_fd()).map_err(AskError::Start)?;
    let mut process = Process {
        pid,
        subject: None,
        board: &board,
        outcomes: vec![None; calls.len()],
    };
    process.start(&mut opener)?;
    let is_killed = process.follow()?;
    refusal(&board, filters.len())?;
    let last = board.call.load(Ordering::Acquire) as usize;
    if let Some(outcome) = is_killed {
        process.outcomes[last] = Some(outcome);
    }
    let made = calls[..=last].iter().enumerate();
    Ok(made
        .map(|(index, call)| process.answer(index, call))
        .collect())
}

/// What kept a process from installing its filters; the first is the guard.
fn refusal(board: &Board, filters: usize) -> Result<(), AskError> {
    let installed = board.installed.load(Ordering::Acquire) as usize;
    let errno = Errno(board.errno.load(Ordering::Acquire));
    if errno.0 == 0 && installed == filters {
        return Ok(());
    }
    let filter = installed.saturating_sub(1);
    let error = match errno.0 {
        libc::ENOMEM => InstallError::NoRoom {
            filters: u32::try_from(filter).ok(),
        },
        _ => install::explain(errno, Flags::NONE),
    };
    Err(AskError::Refused { filter, error })
}

/// A traced process that makes calls; dropping it ends it.
struct Process<'a> {
    pid: libc::pid_t,
    /// The thread with the filters.
    subject: Option<Tracee>,
    board: &'a Board,
    /// What the tracer saw of each call.
    outcomes: Vec<Option<Outcome>>,
}

impl Process<'_> {
    /// Traces the process, lets it go on, and waits for its second thread.
    fn start(&mut self, gate: &mut impl Write) -> Result<(), AskError> {
        let options = Options::CLONE | Options::SECCOMP | Options::EXIT_KILL;
        let process =
            Tracee::seize(self.pid, options).map_err(|error| AskError::NotTraced(error.errno))?;
        // If this fails, the process is gone, and waiting for it tells how.
        let _ = gate.write_all(&[1]);
        loop {
            match process.wait()? {
                Event::Stopped(stopped) => {
                    self.subject = stopped.new_task()?;
                    let signal = stopped.signal();
                    stopped.resume(Resume::Run, signal)?;
                    if self.subject.is_some() {
                        return Ok(());
                    }
                }
                Event::Ended(ended) => {
                    self.pid = 0;
                    return Err(self.death(ended));
                }
            }
        }
    }

    /// Lets the subject run to its end; how it was killed, if a filter did it.
    fn follow(&mut self) -> Result<Option<Outcome>, AskError> {
        let Some(subject) = self.subject else {
            return Ok(None);
        };
        loop {
            let stopped = match subject.wait()? {
                Event::Stopped(stopped) => stopped,
                Event::Ended(ended) if ended.is_by(libc::SIGSYS) => {
                    return self.scope_of_kill().map(Some);
                }
                Event::Ended(ended) => return Err(self.death(ended)),
            };
            let passed_on = match stopped.stop() {
                Stop::Seccomp => {
                    self.on_trace(&stopped)?;
                    None
                }
                Stop::Signal(libc::SIGILL) => return Ok(None),
                Stop::Signal(libc::SIGSYS) => {
                    let info = stopped.signal_info()?;
                    let trapped = Outcome::Trapped(info.errno as u16);
                    self.saw(info.is_trap().then_some(trapped));
                    None
                }
                _ => stopped.signal(),
            };
            // It fails if the subject has been killed: its end comes next.
            let _ = stopped.resume(Resume::Run, passed_on);
        }
    }

    /// A filter answered `trace`.
    fn on_trace(&mut self, stopped: &Stopped) -> Result<(), AskError> {
        let trace = Action::new(ActionKind::Trace, stopped.message()? as u16);
        self.saw(Some(Outcome::of_ret(trace.ret())));
        Ok(stopped.skip_call()?)
    }

    /// Notes the outcome of the call that is being made.
    fn saw(&mut self, outcome: Option<Outcome>) {
        let index = self.board.call.load(Ordering::Acquire) as usize;
        if let Some(place) = self.outcomes.get_mut(index) {
            *place = outcome;
        }
    }

    /// After the subject was killed by `SIGSYS`: whether the other thread was too.
    fn scope_of_kill(&mut self) -> Result<Outcome, AskError> {
        self.subject = None;
        // What kills a whole process has marked it before the first of its threads is gone.
        let end = self.end().map_err(AskError::Start)?;
        let is_process = end.is_some_and(|end| end.is_by(libc::SIGSYS));
        Ok(match is_process {
            true => Outcome::ProcessKilled,
            false => Outcome::ThreadKilled,
        })
    }

    /// Kills the process unless it has ended, and waits for all of it; how it ended.
    fn end(&mut self) -> Result<Option<Ended>, Errno> {
        let pid = std::mem::take(&mut self.pid);
        if pid == 0 {
            return Ok(None);
        }
        // It is a child that nobody has waited for, so that the number is still its own.
        let _ = wait::kill(pid, libc::SIGKILL);
        if let Some(subject) = self.subject.take() {
            while let Ok(Event::Stopped(_)) = subject.wait() {}
        }
        loop {
            match wait::next(pid)? {
                wait::Event::Stopped { .. } => {}
                wait::Event::Ended(ended) => return Ok(Some(ended)),
            }
        }
    }

    /// The subject or its process ended where it should not have.
    fn death(&self, ended: Ended) -> AskError {
        let errno = Errno(self.board.errno.load(Ordering::Acquire));
        match (errno, ended) {
            (Errno(0), Ended::Signalled { signal, .. }) => AskError::Died {
                signal: Some(signal),
            },
            (Errno(0), Ended::Exited(_)) => AskError::Died { signal: None },
            (errno, _) => AskError::Start(errno),
        }
    }

    fn answer(&self, index: usize, call: &SeccompData) -> Answer {
        let returned = self.board.results[index].load(Ordering::Acquire);
        let outcome =
            self.outcomes[index].unwrap_or(Outcome::Failed(returned.unsigned_abs() as u16));
        let ip = self.board.ips[index].load(Ordering::Acquire);
        Answer {
            call: SeccompData { ip, ..*call },
            outcome,
        }
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        // Nothing can be done about a process that can't be waited for.
        let _ = self.end();
    }
}
