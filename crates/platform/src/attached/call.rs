//! Deciding a call at a stop.
//!
//! A filter's `trace` stops a task once, before the call: the number -1 skips it, and its result is set.
//! `PTRACE_SYSCALL` does the same at the entry of every call, and stops again at its exit. `PTRACE_SYSEMU` stops once
//! and executes no call; a call that is to be executed is restarted from its instruction, with `PTRACE_SYSCALL`. Calls
//! through the vsyscall page stop for a filter alone, and not at their exit.
//!
//! A stop by a filter doesn't identify the filter: if several filters return `trace`, the data is the newest one's,
//! which may be the guest's own. The action of the guest's first filter decides about the call.

use std::thread;

use tamis_abi::{Action, ActionKind, Arch, SeccompData, host, restart};
use tamis_kernel::tracee::{CallPhase, Stopped, TraceError};

use super::Mechanism;
use super::filters::{INSTALLS, OURS, is_vsyscall};
use super::tracer::Tracer;
use crate::error::{PlatformError, Unsupported};
use crate::installing::{concerns_all, may_install};
use crate::remote::Remote;
use crate::supervisor::Answer;
use crate::sys::stub;
use crate::task::{Registers, Space, Task, TaskId};

/// The position of a task in a call that takes several stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// In no such call.
    #[default]
    Free,
    /// The task's next stop at a call is the exit of this one.
    Exit {
        call: SeccompData,
        /// Whether the supervisor gets the result.
        is_told: bool,
    },
    /// The task's next stop at a call should be the entry of this one, which has been decided.
    Repeat(SeccompData),
}

/// The decision about a call at its entry.
#[derive(Clone, Copy, Debug)]
enum Decision {
    /// The call is executed.
    Make {
        /// Whether the supervisor has forwarded it.
        is_asked: bool,
    },
    /// The call is replaced by this one.
    Replace(SeccompData),
    /// The call is skipped and has this result.
    Skip(i64),
    /// No action: the guest is being killed.
    End,
}

impl Tracer<'_> {
    /// Handles a stop by a filter's `trace`.
    pub(super) fn on_filter(&mut self, stopped: &Stopped) -> Result<(), TraceError> {
        let info = stopped.call()?;
        let (Some(call), CallPhase::Seccomp { data, .. }) = (info.data(), info.phase) else {
            return Ok(());
        };
        if data != u32::from(OURS) && self.mechanism == Mechanism::Watch {
            return self.on_foreign(stopped, &call);
        }
        // The platform still installs the guest's filters.
        if !self.is_armed() {
            return Ok(());
        }
        let is_stopped_before = matches!(self.mechanism, Mechanism::Syscall | Mechanism::Emulate);
        if is_stopped_before && !is_vsyscall(&call) {
            return without_tracer(stopped);
        }
        if may_install(&call) && !self.roll_back(stopped, concerns_all(&call))? {
            // The task restarts the call, and other reports are handled meanwhile.
            stopped.skip_call()?;
            return stopped.repeat_call(call.nr, &call.args, call.ip);
        }
        let tid = stopped.tracee().tid();
        if let Some(patching) = &mut self.patching
            && data == u32::from(OURS)
            && call.nr == stub::HELLO
            && call.arch == X86_64
        {
            let result = patching.hello(tid, call.args[0]);
            return self.carry_out(stopped, call, Decision::Skip(result));
        }
        if !self.is_notified(&call) {
            let is_ours = self.mechanism == Mechanism::Patch
                && data == u32::from(INSTALLS)
                && may_install(&call);
            return match is_ours {
                true => Ok(()),
                false => without_tracer(stopped),
            };
        }
        if let Some(patching) = &mut self.patching
            && let Some(permit) = patching.dispatcher().take_permit(tid, &call)
        {
            let made = Decision::Make { is_asked: true };
            let decision = permit
                .replacement
                .map_or(made, |new| self.replace(&call, new));
            return self.carry_out(stopped, call, decision);
        }
        // The supervisor has forwarded it before.
        if self.is_repeated(tid, &call) {
            return Ok(());
        }
        // `decides` also changes this tracer, which contains it.
        if let Some(mut counting) = self.counting.take() {
            let is_decided = counting.decides(self, stopped, &call);
            self.counting = Some(counting);
            if is_decided? {
                return Ok(());
            }
        }
        let decision = self.ask(stopped, &call);
        let is_answered = matches!(decision, Decision::Skip(_));
        self.carry_out(stopped, call, decision)?;
        let Some(mut patching) = self.patching.take_if(|_| is_answered) else {
            return Ok(());
        };
        let done = patching.answered(self, stopped, &call);
        self.patching = Some(patching);
        done
    }

    /// Rolls patched sites back in the memory of a stopped task that is about to install a filter, for all its threads
    /// or not. Returns whether it may install it.
    fn roll_back(&mut self, stopped: &Stopped, of_all: bool) -> Result<bool, TraceError> {
        let Some(mut patching) = self.patching.take() else {
            return Ok(true);
        };
        let is_ready = patching.is_ready(self, stopped, of_all);
        self.patching = Some(patching);
        is_ready
    }

    /// Handles `trace` of a filter of a watched guest: that filter has no tracer, so the call fails.
    fn on_foreign(&self, stopped: &Stopped, call: &SeccompData) -> Result<(), TraceError> {
        without_tracer(stopped)?;
        if self.is_notified(call) {
            let mut task = StoppedTask::new(stopped, ORIG_RAX);
            let _ = self.supervisor.call(&mut task, call);
            self.supervisor.result(&mut task, call, NO_TRACER);
        }
        Ok(())
    }

    /// Handles a stop at the entry or exit of a call.
    pub(super) fn on_call(&mut self, stopped: &Stopped) -> Result<(), TraceError> {
        let info = stopped.call()?;
        if let CallPhase::Exit { result, .. } = info.phase {
            return self.on_result(stopped, result);
        }
        let Some(call) = info.data() else {
            return Ok(());
        };
        if !self.is_armed() {
            return Ok(());
        }
        let tid = stopped.tracee().tid();
        let (phase, is_emulated) = match self.tasks.get_mut(&tid) {
            Some(state) => (std::mem::take(&mut state.phase), state.is_emulated),
            None => (Phase::Free, false),
        };
        if is_emulated {
            return self.on_emulated(stopped, call);
        }
        let decision = match phase {
            // A signal handler may have run in between: then this is another call, or this one with other registers.
            Phase::Repeat(decided) if decided == call => Decision::Make { is_asked: true },
            _ if self.is_notified(&call) => self.ask(stopped, &call),
            _ => Decision::Make { is_asked: false },
        };
        self.carry_out(stopped, call, decision)
    }

    /// Handles a stop at the entry of a call that is not executed.
    fn on_emulated(&mut self, stopped: &Stopped, call: SeccompData) -> Result<(), TraceError> {
        let decision = match self.is_notified(&call) {
            true => self.ask(stopped, &call),
            // The kernel carries out all other actions of the filter.
            false => Decision::Make { is_asked: false },
        };
        let repeated = match decision {
            Decision::Make { .. } => call,
            Decision::Replace(new) => new,
            Decision::Skip(result) => return stopped.set_result(result),
            Decision::End => return Ok(()),
        };
        if repeated != call {
            stopped.replace_call(repeated.nr, &repeated.args)?;
        }
        stopped.repeat_call(repeated.nr, &repeated.args, call.ip)?;
        self.set_phase(stopped, Phase::Repeat(repeated));
        Ok(())
    }

    /// Carries out a decision at the entry of a call that would be executed.
    fn carry_out(
        &mut self,
        stopped: &Stopped,
        call: SeccompData,
        decision: Decision,
    ) -> Result<(), TraceError> {
        let (call, is_asked) = match decision {
            Decision::Make { is_asked } => (call, is_asked),
            Decision::Replace(new) => {
                stopped.replace_call(new.nr, &new.args)?;
                (new, true)
            }
            Decision::Skip(result) => {
                stopped.skip_call()?;
                stopped.set_result(result)?;
                (call, false)
            }
            Decision::End => return Ok(()),
        };
        // Such a call has no exit stop.
        if is_vsyscall(&call) {
            return Ok(());
        }
        let is_told = is_asked && self.has_results;
        if is_told || self.mechanism == Mechanism::Syscall {
            self.set_phase(stopped, Phase::Exit { call, is_told });
        }
        Ok(())
    }

    /// Handles the exit of a call.
    fn on_result(&mut self, stopped: &Stopped, result: i64) -> Result<(), TraceError> {
        let tid = stopped.tracee().tid();
        let Some(state) = self.tasks.get_mut(&tid) else {
            return Ok(());
        };
        // An emulated call that is executed after all has an exit stop, too, before its execution.
        let Phase::Exit { call, is_told } = state.phase else {
            return Ok(());
        };
        state.phase = Phase::Free;
        let is_made_again = restart::CODES.contains(&result);
        if is_made_again && is_told && self.mechanism == Mechanism::Watch {
            self.supervisor.interrupted(TaskId(tid), &call, result);
        }
        if !is_told || is_made_again {
            return Ok(());
        }
        let mut task = StoppedTask::new(stopped, RAX);
        let new = self.supervisor.result(&mut task, &call, result);
        match new == result {
            true => Ok(()),
            false => stopped.set_result(new),
        }
    }

    /// Whether the guest's filter returns `notify`.
    fn is_notified(&self, call: &SeccompData) -> bool {
        let evaluator = self.evaluator;
        evaluator.is_some_and(|evaluator| {
            Action::from_ret(evaluator.run(call)).kind == ActionKind::Notify
        })
    }

    /// Calls the supervisor and converts its answer.
    fn ask(&mut self, stopped: &Stopped, call: &SeccompData) -> Decision {
        let mut task = StoppedTask::new(stopped, ORIG_RAX);
        let answer = self.supervisor.call(&mut task, call);
        self.decide(answer, call)
    }

    fn decide(&mut self, answer: Answer, call: &SeccompData) -> Decision {
        match answer {
            Answer::Return(value) => Decision::Skip(value),
            Answer::Errno(errno) => Decision::Skip(-i64::from(errno)),
            Answer::Forward => Decision::Make { is_asked: true },
            Answer::ForwardWith(new) => self.replace(call, new),
            Answer::Descriptor(_) => self.refuse("answering with a descriptor"),
            Answer::Kill => {
                self.end();
                Decision::End
            }
            // A wait for reports of tasks has no time limit, so the other tasks wait, too.
            Answer::Later(time, answer) => {
                thread::sleep(time);
                self.decide(*answer, call)
            }
        }
    }

    /// Replaces a call.
    fn replace(&mut self, call: &SeccompData, new: SeccompData) -> Decision {
        // The kernel kills a task that changes the number of a call through the page.
        if is_vsyscall(call) && new.nr != call.nr {
            return self.refuse("replacing a call through the vsyscall page by another");
        }
        let native = host::arch().map(Arch::audit);
        if new.arch == call.arch && native == Some(call.arch) {
            return Decision::Replace(SeccompData { ip: call.ip, ..new });
        }
        self.refuse("replacing calls of 32-bit programs, or by calls of another machine")
    }

    fn refuse(&mut self, what: &'static str) -> Decision {
        self.fail(PlatformError::Unsupported(Unsupported::new(what)));
        Decision::End
    }

    fn set_phase(&mut self, stopped: &Stopped, phase: Phase) {
        if let Some(state) = self.tasks.get_mut(&stopped.tracee().tid()) {
            state.phase = phase;
        }
    }
}

const X86_64: u32 = Arch::X86_64.audit();

/// The result of a call whose filter returns `trace` without a tracer.
const NO_TRACER: i64 = -(libc::ENOSYS as i64);

/// Does the same as the kernel for `trace` without a tracer, which a filter of the guest's own lacks.
fn without_tracer(stopped: &Stopped) -> Result<(), TraceError> {
    stopped.skip_call()?;
    stopped.set_result(NO_TRACER)
}

/// The words of `struct user_regs_struct` for the result of a call and for its number.
const RAX: usize = 10;
const ORIG_RAX: usize = 15;

/// A stopped task.
struct StoppedTask<'a> {
    stopped: &'a Stopped,
    space: Remote,
    /// The index of the word that holds the register rax.
    rax: usize,
}

impl<'a> StoppedTask<'a> {
    fn new(stopped: &'a Stopped, rax: usize) -> StoppedTask<'a> {
        let tid = stopped.tracee().tid();
        StoppedTask {
            stopped,
            space: Remote { tid },
            rax,
        }
    }
}

impl Task for StoppedTask<'_> {
    fn id(&self) -> TaskId {
        TaskId(self.space.tid)
    }

    fn space(&self) -> &dyn Space {
        &self.space
    }

    fn registers(&mut self) -> Result<Registers, Unsupported> {
        let bytes = self.stopped.registers().map_err(|_| GONE)?;
        let words = words(bytes.bytes())?;
        let rax = words[self.rax];
        Ok(Registers {
            rax,
            ..Registers::of_words(&words)
        })
    }

    fn set_registers(&mut self, registers: &Registers) -> Result<(), Unsupported> {
        let mut all = self.stopped.registers().map_err(|_| GONE)?;
        let mut words = words(all.bytes())?;
        registers.to_words(self.rax, &mut words);
        for (place, word) in all.bytes_mut().chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        self.stopped.set_registers(&all).map_err(|_| GONE)
    }
}

const GONE: Unsupported = Unsupported::new("the registers of a task that has been killed");

/// The words of `struct user_regs_struct` of a 64-bit task.
fn words(bytes: &[u8]) -> Result<[u64; Registers::KERNEL_WORDS], Unsupported> {
    let mut words = [0; Registers::KERNEL_WORDS];
    if bytes.len() != size_of_val(&words) {
        return Err(Unsupported::new("the registers of a 32-bit task"));
    }
    let chunks = bytes.chunks_exact(8);
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
    }
    Ok(words)
}
