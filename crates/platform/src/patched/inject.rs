//! System calls that a stopped task makes on our behalf.
//!
//! They are made with the `syscall` at or behind which the task has stopped, with all its signals blocked, and subject to the
//! guest's filter like any other call: what it doesn't allow is not tried. Between them the task stops twice.

use tamis_abi::{Arch, SeccompData};
use tamis_engine::Evaluator;
use tamis_kernel::tracee::{CallPhase, Registers, Resume, Stop, Stopped, TraceError};

use super::area;
use super::site::SYSCALL_BYTES;
use crate::task::Registers as Names;

/// The words of `struct user_regs_struct` that are used here.
pub(super) const RAX: usize = 10;
const ORIG_RAX: usize = 15;
pub(super) const RIP: usize = 16;
pub(super) const RSP: usize = 19;
const FS_BASE: usize = 21;
const ARGS: [usize; 6] = [14, 13, 12, 7, 9, 8];

/// The registers of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words(pub(super) [u64; Names::KERNEL_WORDS]);

impl Words {
    /// Those of a stopped 64-bit task; `None` for another.
    pub(super) fn of(stopped: &Stopped) -> Result<Option<Words>, TraceError> {
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

    pub(super) const fn fs_base(&self) -> u64 {
        self.0[FS_BASE]
    }

    pub(super) fn set(&self, stopped: &Stopped) -> Result<(), TraceError> {
        let mut registers: Registers = stopped.registers()?;
        let places = registers.bytes_mut().chunks_exact_mut(size_of::<u64>());
        for (place, word) in places.zip(self.0) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        stopped.set_registers(&registers)
    }
}

/// A task that makes calls for us.
pub(super) struct Injection<'a> {
    stopped: Stopped,
    evaluator: &'a Evaluator,
    /// Its registers, to which it returns.
    words: Words,
    signal_mask: u64,
    /// Whether its next call is the one at whose entry it has stopped.
    is_at_entry: bool,
    /// Signals that can't be blocked and came meanwhile.
    pub(super) signals: Vec<i32>,
}

/// Why a call wasn't made.
#[derive(Debug)]
pub(super) enum Refusal {
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

/// The next stop of a task; fails if it has ended.
pub(super) type NextStop<'a> = &'a mut dyn FnMut(i32) -> Result<Stopped, TraceError>;

impl<'a> Injection<'a> {
    /// Begins with a task that has stopped before a call which it is to skip, with its result in place.
    pub(super) fn begin(
        stopped: &Stopped,
        evaluator: &'a Evaluator,
    ) -> Result<Injection<'a>, Refusal> {
        Self::new(stopped, evaluator, true)
    }

    /// Begins with a new task that has stopped behind the call that has created it.
    pub(super) fn begin_new(
        stopped: &Stopped,
        evaluator: &'a Evaluator,
    ) -> Result<Injection<'a>, Refusal> {
        Self::new(stopped, evaluator, false)
    }

    fn new(
        stopped: &Stopped,
        evaluator: &'a Evaluator,
        is_at_entry: bool,
    ) -> Result<Injection<'a>, Refusal> {
        let words = Words::of(stopped)?.ok_or(Refusal::Refused)?;
        let signal_mask = stopped.signal_mask()?;
        stopped.set_signal_mask(u64::MAX)?;
        Ok(Injection {
            stopped: stopped.clone(),
            evaluator,
            words,
            signal_mask,
            is_at_entry,
            signals: Vec::new(),
        })
    }

    /// Has the task make a call; returns its result.
    pub(super) fn call(
        &mut self,
        nr: i64,
        args: [u64; 6],
        next: NextStop<'_>,
    ) -> Result<u64, Refusal> {
        let ip = self.words.0[RIP];
        let call = SeccompData {
            nr: nr as u32,
            arch: Arch::X86_64.audit(),
            ip,
            args,
        };
        if !area::allows(self.evaluator, &call) {
            return Err(Refusal::Refused);
        }
        let mut words = self.words;
        for (place, value) in ARGS.into_iter().zip(args) {
            words.0[place] = value;
        }
        if self.is_at_entry {
            words.0[ORIG_RAX] = nr as u64;
            words.set(&self.stopped)?;
        } else {
            words.0[RAX] = nr as u64;
            // No call to be made again.
            words.0[ORIG_RAX] = u64::MAX;
            words.0[RIP] = ip - SYSCALL_BYTES as u64;
            words.set(&self.stopped)?;
            self.run_to_call(next)?;
        }
        self.is_at_entry = false;
        loop {
            self.run_to_call(next)?;
            if let CallPhase::Exit { result, .. } = self.stopped.call()?.phase {
                return match result {
                    -4095..=-1 => Err(Refusal::Refused),
                    _ => Ok(result as u64),
                };
            }
        }
    }

    /// Runs the task to its next stop at a call.
    fn run_to_call(&mut self, next: NextStop<'_>) -> Result<(), Refusal> {
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

    /// Gives the task its registers and signals back; it is to go on at this address.
    pub(super) fn end(mut self, ip: u64) -> Result<Vec<i32>, TraceError> {
        self.words.0[RIP] = ip;
        self.words.0[ORIG_RAX] = u64::MAX;
        self.words.set(&self.stopped)?;
        self.stopped.set_signal_mask(self.signal_mask)?;
        Ok(self.signals)
    }

    /// Where the task goes on if nothing changes.
    pub(super) const fn ip(&self) -> u64 {
        self.words.0[RIP]
    }

    /// An address in its stack that nothing uses.
    pub(super) const fn scratch(&self) -> u64 {
        const BELOW_RED_ZONE: u64 = 512;
        (self.words.0[RSP] - BELOW_RED_ZONE) & !15
    }
}
