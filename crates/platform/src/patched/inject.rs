//! System calls that are injected into a stopped task.
//!
//! The task makes them with the `syscall` at or behind its stop, with all its signals blocked, and stops twice for
//! each. They are subject to the guest's filter like any other call, so calls that it doesn't allow are not tried.
//! Platforms with a suitable filter make them from an [address](TRACERS_IP) that only a tracer can give to a call.

use tamis_abi::{Arch, SeccompData, restart};
use tamis_kernel::Status;
use tamis_kernel::tracee::{CallPhase, INTERRUPTED, Registers, Resume, Stop, Stopped, TraceError};
use tamis_vm::Evaluator;

use super::area;
use super::site::SYSCALL_BYTES;
use crate::task::Registers as Names;

/// The words of `struct user_regs_struct` that are used here.
pub(crate) const RAX: usize = 10;
pub(crate) const ORIG_RAX: usize = 15;
pub(crate) const RIP: usize = 16;
pub(crate) const RSP: usize = 19;
/// The index of the first argument.
pub(crate) const RDI: usize = 14;
const FS_BASE: usize = 21;
const ARGS: [usize; 6] = [RDI, 13, 12, 7, 9, 8];

/// The registers of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words(pub(crate) [u64; Names::KERNEL_WORDS]);

impl Words {
    /// The registers of a stopped 64-bit task; `None` for another.
    pub(crate) fn read(stopped: &Stopped) -> Result<Option<Words>, TraceError> {
        let registers = stopped.registers()?;
        let mut words = [0; Names::KERNEL_WORDS];
        if registers.bytes().len() != size_of_val(&words) {
            return Ok(None);
        }
        let chunks = registers.bytes().chunks_exact(size_of::<u64>());
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
        }
        Ok(Some(Words(words)))
    }

    /// The stub's key of the task.
    pub(super) const fn known_by(&self) -> u64 {
        !self.0[FS_BASE]
    }

    pub(crate) fn set(&self, stopped: &Stopped) -> Result<(), TraceError> {
        let mut registers: Registers = stopped.registers()?;
        let places = registers.bytes_mut().chunks_exact_mut(size_of::<u64>());
        for (place, word) in places.zip(self.0) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        stopped.set_registers(&registers)
    }
}

/// The address of the tracer's calls: in the kernel's half, where programs have no code.
pub(crate) const TRACERS_IP: u64 = 0xffff_a000_7a79_0000;

/// The authority that allows injected calls.
#[derive(Clone, Copy)]
enum Allowed<'a> {
    /// The guest's filter.
    By(&'a Evaluator),
    /// The address that they come from.
    AsTracers,
    /// The guest's filter, which stops at all of them.
    AtStops,
}

/// A task that makes injected calls.
pub(crate) struct Injection<'a> {
    stopped: Stopped,
    allowed: Allowed<'a>,
    /// The registers that are restored at the end.
    words: Words,
    signal_mask: u64,
    /// Whether its next call is the one at whose entry it has stopped.
    is_at_entry: bool,
    /// Signals that can't be blocked and came meanwhile.
    pub(crate) signals: Vec<i32>,
}

/// The reason why a call wasn't made.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The guest's filter doesn't allow it, or the kernel has failed.
    Refused,
    /// The task has been killed, or tracing it failed.
    Lost(TraceError),
}

impl From<TraceError> for Refusal {
    fn from(error: TraceError) -> Refusal {
        Refusal::Lost(error)
    }
}

/// Restarts the call of a task that was stopped in it, without a signal; returns the call, if there is one.
pub(crate) fn make_again(stopped: &Stopped) -> Result<Option<SeccompData>, TraceError> {
    let Some(mut words) = Words::read(stopped)? else {
        return Ok(None);
    };
    let is_call = words.0[ORIG_RAX] as i64 >= 0;
    let nr = match words.0[RAX] as i64 {
        // A signal that comes from now on counts as one that came before the call.
        INTERRUPTED if is_call && !has_signal(stopped.tracee().tid()) => {
            words.0[RAX] = restart::NO_INTR as u64;
            words.set(stopped)?;
            words.0[ORIG_RAX] as u32
        }
        restart::SYS | restart::NO_INTR | restart::NO_HAND if is_call => words.0[ORIG_RAX] as u32,
        restart::BLOCK if is_call => libc::SYS_restart_syscall as u32,
        _ => return Ok(None),
    };
    Ok(Some(SeccompData {
        nr,
        arch: Arch::X86_64.audit(),
        ip: words.0[RIP],
        args: ARGS.map(|place| words.0[place]),
    }))
}

fn has_signal(tid: i32) -> bool {
    Status::read(tid).is_some_and(|task| task.has_pending_signal())
}

/// The next stop of a task; fails if it has ended.
pub(crate) type NextStop<'a> = &'a mut dyn FnMut(i32) -> Result<Stopped, TraceError>;

impl Injection<'static> {
    /// Begins with a task that has stopped before a call which it is to skip, with the result in place. Its filter
    /// stops at every call, so the injected calls stop, and pass.
    pub(super) fn begin_asked(stopped: &Stopped) -> Result<Self, Refusal> {
        Self::new(stopped, Allowed::AtStops, true)
    }

    /// Begins with a task that has stopped because it has executed a program; the caller has put a `syscall` at the
    /// program's first instruction. Its calls are the tracer's.
    pub(crate) fn begin_executed(stopped: &Stopped, next: NextStop<'_>) -> Result<Self, Refusal> {
        let mut injection = Self::new(stopped, Allowed::AsTracers, false)?;
        // `execve` returns only then.
        injection.run_to_call(next)?;
        injection.begin_again()?;
        injection.go_behind_call();
        Ok(injection)
    }
}

impl<'a> Injection<'a> {
    /// Begins with a task that has stopped before a call which it is to skip, with the result in place.
    pub(super) fn begin(
        stopped: &Stopped,
        evaluator: &'a Evaluator,
    ) -> Result<Injection<'a>, Refusal> {
        Self::new(stopped, Allowed::By(evaluator), true)
    }

    /// Begins with a new task that has stopped behind the call that has created it.
    pub(super) fn begin_new(
        stopped: &Stopped,
        evaluator: &'a Evaluator,
    ) -> Result<Injection<'a>, Refusal> {
        Self::new(stopped, Allowed::By(evaluator), false)
    }

    fn new(
        stopped: &Stopped,
        allowed: Allowed<'a>,
        is_at_entry: bool,
    ) -> Result<Injection<'a>, Refusal> {
        let words = Words::read(stopped)?.ok_or(Refusal::Refused)?;
        let signal_mask = stopped.signal_mask()?;
        stopped.set_signal_mask(u64::MAX)?;
        Ok(Injection {
            stopped: stopped.clone(),
            allowed,
            words,
            signal_mask,
            is_at_entry,
            signals: Vec::new(),
        })
    }

    /// Makes the task execute a call; returns its result.
    pub(super) fn call(
        &mut self,
        nr: i64,
        args: [u64; 6],
        next: NextStop<'_>,
    ) -> Result<u64, Refusal> {
        if let Allowed::By(evaluator) = self.allowed {
            let call = SeccompData {
                nr: nr as u32,
                arch: Arch::X86_64.audit(),
                ip: self.words.0[RIP],
                args,
            };
            if !area::allows(evaluator, &call) {
                return Err(Refusal::Refused);
            }
        }
        match self.make(nr, args, next)? {
            -4095..=-1 => Err(Refusal::Refused),
            result => Ok(result as u64),
        }
    }

    /// Does the same; returns the kernel's value, which may be an error.
    pub(crate) fn make(
        &mut self,
        nr: i64,
        args: [u64; 6],
        next: NextStop<'_>,
    ) -> Result<i64, TraceError> {
        let ip = self.words.0[RIP];
        let mut words = self.words;
        for (place, value) in ARGS.into_iter().zip(args) {
            words.0[place] = value;
        }
        if self.is_at_entry {
            words.0[ORIG_RAX] = nr as u64;
            words.set(&self.stopped)?;
        } else {
            words.0[RAX] = nr as u64;
            // There is no call to restart.
            words.0[ORIG_RAX] = u64::MAX;
            words.0[RIP] = ip - SYSCALL_BYTES as u64;
            words.set(&self.stopped)?;
            self.run_to_call(next)?;
        }
        self.is_at_entry = false;
        loop {
            self.leave_as_tracers()?;
            self.run_to_call(next)?;
            if let CallPhase::Exit { result, .. } = self.stopped.call()?.phase {
                return Ok(result);
            }
        }
    }

    /// Sets the tracer's address in the call at whose entry the task has stopped, if needed.
    fn leave_as_tracers(&self) -> Result<(), TraceError> {
        if let Allowed::AsTracers = self.allowed
            && let Some(mut words) = Words::read(&self.stopped)?
        {
            words.0[RIP] = TRACERS_IP;
            words.set(&self.stopped)?;
        }
        Ok(())
    }

    /// Runs the task to its next stop at a call.
    fn run_to_call(&mut self, next: NextStop<'_>) -> Result<(), TraceError> {
        loop {
            self.stopped.clone().resume(Resume::ToCall, None)?;
            self.stopped = next(self.stopped.tracee().tid())?;
            match self.stopped.stop() {
                Stop::Call => return Ok(()),
                Stop::Signal(signal) => self.signals.push(signal),
                _ => {}
            }
        }
    }

    /// Restores the task's registers and signals; it is to go on at this address.
    pub(crate) fn end(mut self, ip: u64) -> Result<Vec<i32>, TraceError> {
        self.words.0[RIP] = ip;
        self.words.0[ORIG_RAX] = u64::MAX;
        self.words.set(&self.stopped)?;
        self.stopped.set_signal_mask(self.signal_mask)?;
        Ok(self.signals)
    }

    /// Reloads the registers, since the task has executed another program.
    pub(crate) fn begin_again(&mut self) -> Result<(), TraceError> {
        if let Some(words) = Words::read(&self.stopped)? {
            self.words = words;
        }
        Ok(())
    }

    /// Skips the `syscall` at the task's address.
    pub(crate) const fn go_behind_call(&mut self) {
        self.words.0[RIP] += SYSCALL_BYTES as u64;
    }

    /// The signals that the task blocks.
    pub(crate) const fn signal_mask(&self) -> u64 {
        self.signal_mask
    }

    /// The task's own registers.
    pub(crate) const fn words(&self) -> Words {
        self.words
    }

    /// Ends with other registers and signals.
    pub(crate) fn end_with(
        mut self,
        words: Words,
        signal_mask: u64,
    ) -> Result<Vec<i32>, TraceError> {
        let ip = words.0[RIP];
        (self.words, self.signal_mask) = (words, signal_mask);
        self.end(ip)
    }

    /// The address where the task goes on if it isn't changed.
    pub(super) const fn ip(&self) -> u64 {
        self.words.0[RIP]
    }

    /// An unused address in its stack.
    pub(crate) const fn scratch(&self) -> u64 {
        const BELOW_RED_ZONE: u64 = 512;
        (self.words.0[RSP] - BELOW_RED_ZONE) & !15
    }
}
