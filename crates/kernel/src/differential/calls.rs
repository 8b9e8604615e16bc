//! Runs a stack of filters on real system calls.
//!
//! No call is executed, whatever its number and arguments: below the tested filters there is a *guard*, a filter
//! that returns `trace` for everything. That is stricter than `allow` and `log`, and loses to everything else
//! except a `trace` of a newer filter. This thread is the tracer: it reads the message, which distinguishes the
//! guard's action from others, and skips the call. It also sees a trap's data, and whether a thread or the whole
//! process was killed, because a second thread without filters survives a killed thread.
//!
//! A result of `ENOSYS` may be that error or `notify` without a listener. Such calls are repeated over a guard that
//! returns another error, which is stricter than `notify`.
//!
//! It can't distinguish `log` from `allow`, invisible data of an action, `trace` with the guard's data from
//! `allow`, and from `allow` actions unknown to the kernel, for which it kills, if they are less strict than
//! `trace`. The guard keeps the kernel from using its action bitmap, see [`bitmap`](crate::measure::bitmap). Calls
//! have the two architectures of this machine and their real instruction pointer; for others see
//! [`packets`](mod@super::packets).

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use tamis_abi::{Action, ActionKind, Arch, ArgIndex, SeccompData, Word, errno, host};
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
use crate::sys::subject::{self, COOKIE, Plan, SubjectReport};
use crate::sys::wait;
use crate::tracee::{Event, Resume, Stop, Stopped, TraceOptions, Tracee};

/// The observable outcome of an action, from the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// The whole process is killed.
    ProcessKilled,
    /// The thread is killed, and others of its process live on.
    ThreadKilled,
    /// A `SIGSYS` with this data.
    Trapped(u16),
    /// The call returns this error, 0 to 4095; 0 is success.
    Failed(u16),
    /// The call is passed to a listener.
    Notified,
    /// The call is passed to a tracer with this message.
    Traced(u16),
    /// The call is executed, and possibly logged: everything less strict than `trace`.
    Made,
}

impl Effect {
    /// The observable outcome of a filter's return value.
    pub fn of_ret(ret: u32) -> Effect {
        let action = Action::from_ret(ret);
        if Action::precedence(ret) > Action::precedence(ActionKind::Trace.ret()) {
            return Effect::Made;
        }
        match action.kind {
            ActionKind::KillProcess => Effect::ProcessKilled,
            ActionKind::KillThread => Effect::ThreadKilled,
            ActionKind::Trap => Effect::Trapped(action.data),
            ActionKind::Errno => Effect::Failed(action.data.min(errno::MAX)),
            ActionKind::Notify => Effect::Notified,
            ActionKind::Trace if action.data != GUARD_DATA => Effect::Traced(action.data),
            ActionKind::Trace | ActionKind::Log | ActionKind::Allow => Effect::Made,
        }
    }
}

/// The data of the guard's action.
const GUARD_DATA: u16 = 0x9c1f;
/// The error of the second guard: not `ENOSYS`.
const OTHER_ERROR: u16 = 4001;
/// `ENOSYS`, as the outcome of a call.
const ENOSYS: Effect = Effect::Failed(libc::ENOSYS as u16);
/// `uretprobe` and `uprobe`; the kernel runs no filter for them.
const EXEMPT: [u32; 2] = [335, 336];

/// The outcome of a stack for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The call as the filters saw it, with its real instruction pointer.
    pub call: SeccompData,
    /// The outcome.
    pub outcome: Effect,
}

/// Whether a call can be made here: those of x86-64, i386 and x32 (x86-64 with different numbers), except the two
/// exempt ones; on AArch64 its own.
pub fn can_make(call: &SeccompData) -> bool {
    let Some(arch) = host::arch() else {
        return false;
    };
    match (arch, call.arch) {
        (Arch::X86_64, arch) if arch == Arch::X86_64.audit() => !EXEMPT.contains(&call.nr),
        (Arch::X86_64, arch) => arch == Arch::X86.audit(),
        (Arch::Aarch64, arch) => arch == Arch::Aarch64.audit(),
        _ => false,
    }
}

/// Whether this machine supports calls of i386: the kernel may be built without them, and a container may disable
/// them.
pub fn has_i386() -> bool {
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    let call = SeccompData {
        arch: Arch::X86.audit(),
        ..SeccompData::default()
    };
    answers(&[], &[call]).is_ok()
}

/// The kernel's outcome for each call under these filters, the oldest first.
///
/// Every filter but the newest must allow `seccomp`, or the next can't be installed. All filters that the kernel
/// accepts are supported; together they have some 20 instructions less room than on a separate task. The calls are
/// made by a separate process, which is replaced after each kill. An allowed call takes some microseconds, a kill a
/// millisecond.
///
/// # Errors
/// See [`AskError`]; [`AskError::Died`] with `SIGSEGV` if this machine doesn't support calls of i386.
///
/// # Panics
/// If a call [can't be made](can_make).
pub fn answers(filters: &[&[Insn]], calls: &[SeccompData]) -> Result<Vec<Answer>, AskError> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
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
        if answer.outcome == Effect::Failed(OTHER_ERROR) {
            answers[index].outcome = Effect::Notified;
        }
    }
    Ok(answers)
}

/// A call with different outcomes in the kernel and the reference interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The call as the filters saw it.
    pub call: SeccompData,
    /// The outcome by the interpreter.
    pub expected: Effect,
    /// The outcome in the kernel.
    pub answered: Effect,
}

/// Makes the calls that are possible here and returns their count, and those whose outcome differs from the
/// reference interpreter.
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
        let expected = Effect::of_ret(run.ret);
        (expected != answer.outcome).then_some(Mismatch {
            call: answer.call,
            expected,
            answered: answer.outcome,
        })
    };
    Ok((answers.len(), answers.iter().filter_map(mismatch).collect()))
}

/// A filter with one action for everything except the installation of the filters above it.
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

/// The outcomes of all calls over one guard.
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

/// The outcomes of the first calls, up to the first kill.
fn some_answers(filters: &[&[Insn]], calls: &[SeccompData]) -> Result<Vec<Answer>, AskError> {
    let board = Shared::<SubjectReport>::new().map_err(AskError::Start)?;
    let raw: Vec<RawCall> = calls.iter().map(RawCall::from_data).collect();
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

/// The error that kept a process from installing its filters; the first is the guard.
fn refusal(board: &SubjectReport, filters: usize) -> Result<(), AskError> {
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
    board: &'a SubjectReport,
    /// The outcome of each call by the tracer.
    outcomes: Vec<Option<Effect>>,
}

impl Process<'_> {
    /// Traces the process, resumes it, and waits for its second thread.
    fn start(&mut self, gate: &mut impl Write) -> Result<(), AskError> {
        let options = TraceOptions::CLONE | TraceOptions::SECCOMP | TraceOptions::EXIT_KILL;
        let process =
            Tracee::seize(self.pid, options).map_err(|error| AskError::NotTraced(error.errno))?;
        // If this fails, the process is gone, and waiting for it gives the reason.
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

    /// Runs the subject to its end; returns the kind of kill if a filter killed it.
    fn follow(&mut self) -> Result<Option<Effect>, AskError> {
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
                    let trapped = Effect::Trapped(info.errno as u16);
                    self.saw(info.is_trap().then_some(trapped));
                    None
                }
                _ => stopped.signal(),
            };
            // It fails if the subject has been killed; its end is reported next.
            let _ = stopped.resume(Resume::Run, passed_on);
        }
    }

    /// Handles a `trace` of a filter.
    fn on_trace(&mut self, stopped: &Stopped) -> Result<(), AskError> {
        let trace = Action::new(ActionKind::Trace, stopped.message()? as u16);
        self.saw(Some(Effect::of_ret(trace.ret())));
        Ok(stopped.skip_call()?)
    }

    /// Records the outcome of the current call.
    fn saw(&mut self, outcome: Option<Effect>) {
        let index = self.board.call.load(Ordering::Acquire) as usize;
        if let Some(place) = self.outcomes.get_mut(index) {
            *place = outcome;
        }
    }

    /// After the subject was killed by `SIGSYS`: determines whether the other thread was killed, too.
    fn scope_of_kill(&mut self) -> Result<Effect, AskError> {
        self.subject = None;
        // A kill of the whole process is recorded before the first of its threads is gone.
        let end = self.end().map_err(AskError::Start)?;
        let is_process = end.is_some_and(|end| end.is_by(libc::SIGSYS));
        Ok(match is_process {
            true => Effect::ProcessKilled,
            false => Effect::ThreadKilled,
        })
    }

    /// Kills the process unless it has ended, and reaps all its threads; returns how it ended.
    fn end(&mut self) -> Result<Option<Ended>, Errno> {
        let pid = std::mem::take(&mut self.pid);
        if pid == 0 {
            return Ok(None);
        }
        // The child hasn't been reaped, so its number is still its own.
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

    /// The error for an unexpected end of the subject or its process.
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
            self.outcomes[index].unwrap_or(Effect::Failed(returned.unsigned_abs() as u16));
        let ip = self.board.ips[index].load(Ordering::Acquire);
        Answer {
            call: SeccompData { ip, ..*call },
            outcome,
        }
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        // A process that can't be waited for is ignored.
        let _ = self.end();
    }
}
