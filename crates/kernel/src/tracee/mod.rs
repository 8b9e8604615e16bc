//! Tracing tasks: `ptrace(2)` with `PTRACE_SEIZE`.
//!
//! A *tracee* is a task (a thread, by its number) that the calling thread traces. [`Tracee::seize`] attaches to it
//! without stopping it. [`Tracee::wait`] reports its stops and its end; a stop is a [`Stopped`], and only a
//! [`Stopped`] has registers, a call and methods to resume, so a request to a running tracee is not possible. With
//! the [`TraceOptions`] for forks and clones, new tasks are tracees from their first instruction: [`Stopped::new_task`]
//! returns them, and [`next`] waits for the first report of any task.
//!
//! Tracing is per thread: all requests and waits for a tracee must come from the thread that seized it, and when
//! that thread ends, the kernel detaches its tracees, or kills them with [`TraceOptions::EXIT_KILL`]. A tracee can be
//! killed at any time, even while it is stopped: requests then fail with `ESRCH`, and its end is the next report.
//!
//! Not included are access to the tracee's memory (`process_vm_readv`) and a loop that handles stops.

mod call;
mod error;
mod ignored;
mod last_call;
mod options;

use crate::ended::Ended;
use crate::errno::Errno;
use crate::sys::{call_registers, ptrace, seize, wait};

pub use call::{CallInfo, CallPhase};
pub use error::{Request, TraceError};
pub use ignored::{INTERRUPTED, Restarts};
pub use options::TraceOptions;

/// A task that the calling thread traces.
///
/// ```no_run
/// use tamis_kernel::tracee::{Event, TraceOptions, Resume, Tracee};
/// # fn main() -> Result<(), tamis_kernel::tracee::TraceError> {
/// let tracee = Tracee::seize(4711, TraceOptions::EXEC | TraceOptions::EXIT)?;
/// while let Event::Stopped(stopped) = tracee.wait()? {
///     println!("{:?}", stopped.stop());
///     let signal = stopped.signal();
///     stopped.resume(Resume::ToCall, signal)?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tracee {
    tid: i32,
}

/// The report of a tracee.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// It has stopped.
    Stopped(Stopped),
    /// It has ended. Its number may now belong to another task.
    Ended(Ended),
}

/// The reason of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stop {
    /// It is about to get this signal.
    Signal(i32),
    /// Job control has stopped its process with this signal. [`Stopped::listen`] keeps it stopped.
    Group(i32),
    /// [`Tracee::interrupt`] stopped it, or it is a new task before its first instruction, or
    /// `SIGCONT` ended its group stop.
    Interrupted,
    /// It is at the entry or exit of a system call, after [`Resume::ToCall`] or [`Resume::Emulate`].
    Call,
    /// A filter returned `trace` for its call, which has not been made yet.
    Seccomp,
    /// It has forked.
    Fork,
    /// It has forked by `vfork`.
    Vfork,
    /// Its `vfork` child has released it.
    VforkDone,
    /// It has cloned; usually a new thread.
    Clone,
    /// It has executed a program.
    Exec,
    /// It is about to exit, or is being killed; its state can be read for the last time.
    Exit,
    /// Another `PTRACE_EVENT_*`.
    Other(i32),
}

/// The next stop of a resumed tracee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resume {
    /// At the next signal or event.
    Run,
    /// Also at the next entry or exit of a system call.
    ToCall,
    /// At the next entry of a system call, which is skipped: [`Stopped::set_result`] sets its result. x86 since
    /// 2.6.14, AArch64 since 5.3, PowerPC since 4.20; `EIO` on other machines.
    Emulate,
    /// After one instruction.
    Step,
}

/// A stopped tracee. It stays stopped until it is resumed or detached, even if this is dropped; a clone is the same
/// tracee.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the tracee stays stopped until it is resumed or detached"]
pub struct Stopped {
    tracee: Tracee,
    stop: Stop,
}

/// The general registers of a stopped tracee: the bytes of `NT_PRSTATUS` with the layout of `struct
/// user_regs_struct` (x86-64: 27 words of 64 bits; 17 of 32 bits for a 32-bit tracee).
///
/// ```no_run
/// # fn example(stopped: tamis_kernel::tracee::Stopped) -> Result<(), tamis_kernel::tracee::TraceError> {
/// let registers = stopped.registers()?;
/// println!("{} bytes", registers.bytes().len());
/// stopped.set_registers(&registers)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers(Vec<u8>);

impl Registers {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// The source of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalInfo {
    /// `si_code`.
    pub code: i32,
    /// `si_errno`: the data of a trap.
    pub errno: i32,
    /// `si_syscall`, if [a filter sent it](Self::is_trap).
    pub nr: u32,
    /// `si_arch`, if [a filter sent it](Self::is_trap).
    pub arch: u32,
    bytes: [u8; SignalInfo::SIZE_BYTES],
}

impl SignalInfo {
    /// The bytes of `siginfo_t` that have a meaning, on 64-bit machines.
    pub const SIZE_BYTES: usize = 48;

    /// Of the bytes that the kernel gives on a 64-bit machine; `None` if they are too few.
    pub fn of_bytes(bytes: &[u8]) -> Option<SignalInfo> {
        let bytes = *bytes.first_chunk::<{ SignalInfo::SIZE_BYTES }>()?;
        let mut info = SignalInfo {
            code: 0,
            errno: 0,
            nr: 0,
            arch: 0,
            bytes,
        };
        (info.errno, info.code) = (info.int(4), info.int(8));
        (info.nr, info.arch) = (info.int(24) as u32, info.int(28) as u32);
        Some(info)
    }

    /// A signal that a process of a user has sent with `kill`.
    ///
    /// ```
    /// use tamis_kernel::tracee::SignalInfo;
    /// let info = SignalInfo::sent_by(15, 4711, 1000);
    /// assert_eq!((info.signal(), info.int(16), info.int(20)), (15, 4711, 1000));
    /// ```
    pub fn sent_by(signal: i32, pid: i32, uid: i32) -> SignalInfo {
        let words = [signal, 0, 0, 0, pid, uid];
        let mut bytes = [0; SignalInfo::SIZE_BYTES];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        SignalInfo {
            code: 0,
            errno: 0,
            nr: 0,
            arch: 0,
            bytes,
        }
    }

    /// Its number.
    pub fn signal(&self) -> i32 {
        self.int(0)
    }

    /// 32 bits at an offset of `siginfo_t`; 0 behind its end.
    pub fn int(&self, at: usize) -> i32 {
        let bytes = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| i32::from_ne_bytes(*bytes))
    }

    /// 64 bits at an offset of `siginfo_t`; 0 behind its end.
    pub fn word(&self, at: usize) -> u64 {
        let bytes = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    /// Whether a filter sent a `SIGSYS`.
    pub const fn is_trap(self) -> bool {
        const SYS_SECCOMP: i32 = 1;
        self.code == SYS_SECCOMP
    }
}

/// Blocks until a child or tracee of the calling thread has a report, and returns it. The report is not taken: use
/// [`Tracee::wait`] or [`Tracee::poll`]. The ends of children that are not traced count, too; children of other
/// threads don't.
///
/// # Errors
/// [`Request::Wait`] with `ECHILD` if the thread has neither.
pub fn next() -> Result<Tracee, TraceError> {
    let tid = wait::peek_any().map_err(Request::Wait.failed())?;
    Ok(Tracee { tid })
}

impl Tracee {
    /// Starts tracing a task without stopping it; other threads of its process are not traced.
    ///
    /// # Errors
    /// [`Request::Seize`] with `ESRCH` if there is no such task, `EPERM` if it may not be traced or
    /// is being traced already.
    pub fn seize(tid: i32, options: TraceOptions) -> Result<Tracee, TraceError> {
        // With this option, stops at calls are distinct from signals.
        let options = options.bits() | libc::PTRACE_O_TRACESYSGOOD;
        seize::seize(tid, options).map_err(Request::Seize.failed())?;
        Ok(Tracee { tid })
    }

    /// A task that this thread traces already, by its number. Requests for another fail with `ESRCH`.
    pub const fn of_this_thread(tid: i32) -> Tracee {
        Tracee { tid }
    }

    /// The task's number.
    pub const fn tid(self) -> i32 {
        self.tid
    }

    /// Whether the calling thread traces it and hasn't taken its end: its number is no other task's then.
    pub fn is_awaited(self) -> bool {
        wait::is_awaited(self.tid)
    }

    /// Stops it asynchronously; [`wait`](Self::wait) reports the stop as [`Stop::Interrupted`], unless another
    /// comes first.
    ///
    /// # Errors
    /// [`Request::Interrupt`] with `ESRCH` if it has ended or is not a tracee of this thread.
    pub fn interrupt(self) -> Result<(), TraceError> {
        ptrace::interrupt(self.tid).map_err(Request::Interrupt.failed())
    }

    /// Blocks until it has a report, and takes it. For the end of a [`Child`](crate::spawn::Child) use its
    /// [`poll`](crate::spawn::Child::poll) instead.
    ///
    /// # Errors
    /// [`Request::Wait`] with `ECHILD` if it is not a tracee or child of this thread.
    pub fn wait(self) -> Result<Event, TraceError> {
        let event = wait::next(self.tid).map_err(Request::Wait.failed())?;
        Ok(Event::from_wait(self, event))
    }

    /// Its report, if there is one.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn poll(self) -> Result<Option<Event>, TraceError> {
        self.event(wait::take(self.tid))
    }

    /// The same, but its end is left for its parent to take.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn poll_stop(self) -> Result<Option<Event>, TraceError> {
        self.event(wait::take_stop(self.tid))
    }

    /// Kills it, with its process.
    ///
    /// # Errors
    /// [`Request::Kill`] with `ESRCH` if it has ended.
    pub fn kill(self) -> Result<(), TraceError> {
        wait::kill(self.tid, libc::SIGKILL).map_err(Request::Kill.failed())
    }

    /// A task and its event, of a wait's result.
    pub(crate) fn reported(
        answer: Result<(i32, wait::Event), Errno>,
    ) -> Result<(Tracee, Event), TraceError> {
        let (tid, event) = answer.map_err(Request::Wait.failed())?;
        let tracee = Tracee { tid };
        Ok((tracee, Event::from_wait(tracee, event)))
    }

    /// The event of a wait's result.
    pub(crate) fn event(
        self,
        answer: Result<Option<wait::Event>, Errno>,
    ) -> Result<Option<Event>, TraceError> {
        let event = answer.map_err(Request::Wait.failed())?;
        Ok(event.map(|event| Event::from_wait(self, event)))
    }
}

impl Event {
    fn from_wait(tracee: Tracee, event: wait::Event) -> Event {
        match event {
            wait::Event::Stopped { signal, event } => Event::Stopped(Stopped {
                tracee,
                stop: Stop::from_signal(signal, event),
            }),
            wait::Event::Ended(ended) => Event::Ended(ended),
        }
    }
}

impl Stop {
    /// `event` is the number of a `PTRACE_EVENT_*`, or 0.
    fn from_signal(signal: i32, event: i32) -> Stop {
        const CALL: i32 = libc::SIGTRAP | 0x80;
        match (event, signal) {
            (0, CALL) => Stop::Call,
            (0, signal) => Stop::Signal(signal),
            (libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => Stop::Interrupted,
            (libc::PTRACE_EVENT_STOP, signal) => Stop::Group(signal),
            (libc::PTRACE_EVENT_SECCOMP, _) => Stop::Seccomp,
            (libc::PTRACE_EVENT_FORK, _) => Stop::Fork,
            (libc::PTRACE_EVENT_VFORK, _) => Stop::Vfork,
            (libc::PTRACE_EVENT_VFORK_DONE, _) => Stop::VforkDone,
            (libc::PTRACE_EVENT_CLONE, _) => Stop::Clone,
            (libc::PTRACE_EVENT_EXEC, _) => Stop::Exec,
            (libc::PTRACE_EVENT_EXIT, _) => Stop::Exit,
            (event, _) => Stop::Other(event),
        }
    }
}

impl Stopped {
    /// The task.
    pub const fn tracee(&self) -> Tracee {
        self.tracee
    }

    /// The reason of the stop.
    pub const fn stop(&self) -> Stop {
        self.stop
    }

    /// The signal that it is about to get. To be transparent, tracing must resume or detach it with this signal.
    pub const fn signal(&self) -> Option<i32> {
        match self.stop {
            Stop::Signal(signal) => Some(signal),
            _ => None,
        }
    }

    /// The current call: number and arguments at [`Stop::Call`] and [`Stop::Seccomp`]; architecture and addresses at
    /// every stop. Kernel 5.3.
    ///
    /// # Errors
    /// [`Request::CallInfo`] with `EIO` on older kernels.
    pub fn call(&self) -> Result<CallInfo, TraceError> {
        ptrace::call_info(self.tracee.tid).map_err(Request::CallInfo.failed())
    }

    /// The current or last call, at any stop; `None` if it wasn't in a call, or without `/proc`. The architecture
    /// is 0 if the kernel doesn't report it (before 5.3).
    pub fn last_call(&self) -> Option<tamis_abi::SeccompData> {
        last_call::read(self.tracee.tid).map(|call| self.with_arch(call))
    }

    /// At the exit of a task that a filter has killed, or at the signal of a trap: the call. On AArch64 the kernel has
    /// forgotten its number by then, and the registers still have it.
    pub fn fatal_call(&self) -> Option<tamis_abi::SeccompData> {
        let left = || call_registers::left_call(self.tracee.tid).map(|call| self.with_arch(call));
        self.last_call().or_else(left)
    }

    fn with_arch(&self, call: tamis_abi::SeccompData) -> tamis_abi::SeccompData {
        let arch = self.call().map_or(0, |info| info.arch);
        tamis_abi::SeccompData { arch, ..call }
    }

    /// Its general registers.
    ///
    /// # Errors
    /// [`Request::Registers`] with `ESRCH` if it has been killed.
    pub fn registers(&self) -> Result<Registers, TraceError> {
        let bytes = ptrace::registers(self.tracee.tid).map_err(Request::Registers.failed())?;
        Ok(Registers(bytes))
    }

    /// The value in the result register of a call, for both interfaces of x86-64; `None` on other machines.
    ///
    /// # Errors
    /// As [`registers`](Self::registers).
    pub fn result(&self) -> Result<Option<i64>, TraceError> {
        const WORDS: usize = 27;
        const RAX: usize = 10;
        const WORDS_I386: usize = 17;
        const EAX: usize = 6;
        let registers = self.registers()?;
        let bytes = registers.bytes();
        let word = |index: usize, size: usize| bytes.get(index * size..(index + 1) * size);
        Ok(match bytes.len() {
            len if len == WORDS * 8 => word(RAX, 8)
                .and_then(|bytes| bytes.try_into().ok())
                .map(i64::from_ne_bytes),
            len if len == WORDS_I386 * 4 => word(EAX, 4)
                .and_then(|bytes| bytes.try_into().ok())
                .map(|bytes| i32::from_ne_bytes(bytes).into()),
            _ => None,
        })
    }

    /// Replaces its general registers.
    ///
    /// # Errors
    /// [`Request::SetRegisters`] with `EIO` or `EINVAL` for invalid values.
    pub fn set_registers(&self, registers: &Registers) -> Result<(), TraceError> {
        ptrace::set_registers(self.tracee.tid, &registers.0).map_err(Request::SetRegisters.failed())
    }

    /// At [`Stop::Seccomp`] or the entry of a call: skips the call. It returns the value of
    /// [`set_result`](Self::set_result), by default `-ENOSYS`.
    ///
    /// # Errors
    /// [`Request::SetRegisters`] with `ENOSYS` on machines other than x86-64 and AArch64.
    pub fn skip_call(&self) -> Result<(), TraceError> {
        call_registers::skip_call(self.tracee.tid).map_err(Request::SetRegisters.failed())
    }

    /// Sets the result of a call that is skipped, emulated or at its exit; -4095 to -1 are errors.
    ///
    /// # Errors
    /// As [`skip_call`](Self::skip_call).
    pub fn set_result(&self, result: i64) -> Result<(), TraceError> {
        call_registers::set_result(self.tracee.tid, result).map_err(Request::SetRegisters.failed())
    }

    /// At the entry of an emulated or skipped call: makes the call after all, from its instruction on, so that it
    /// stops at its entry again, with this number and these arguments.
    ///
    /// # Errors
    /// As [`skip_call`](Self::skip_call).
    pub fn repeat_call(&self, nr: u32, args: &[u64; 6], ip: u64) -> Result<(), TraceError> {
        call_registers::repeat_call(self.tracee.tid, nr, args, ip)
            .map_err(Request::SetRegisters.failed())
    }

    /// At the entry of a call of the 64-bit interface: replaces its number and arguments.
    ///
    /// # Errors
    /// As [`skip_call`](Self::skip_call).
    pub fn replace_call(&self, nr: u32, args: &[u64; 6]) -> Result<(), TraceError> {
        call_registers::replace_call(self.tracee.tid, nr, args)
            .map_err(Request::SetRegisters.failed())
    }

    /// The signals that it blocks, signal 1 in the lowest bit. Kernel 3.11.
    ///
    /// # Errors
    /// [`Request::Registers`] with `ESRCH` if it has been killed.
    pub fn signal_mask(&self) -> Result<u64, TraceError> {
        ptrace::signal_mask(self.tracee.tid).map_err(Request::Registers.failed())
    }

    /// Replaces the signals that it blocks. Kernel 3.11.
    ///
    /// # Errors
    /// As [`signal_mask`](Self::signal_mask).
    pub fn set_signal_mask(&self, mask: u64) -> Result<(), TraceError> {
        ptrace::set_signal_mask(self.tracee.tid, mask).map_err(Request::SetRegisters.failed())
    }

    /// The source of the signal that it is about to get.
    ///
    /// # Errors
    /// [`Request::SignalInfo`] with `EINVAL` at a stop without a signal.
    pub fn signal_info(&self) -> Result<SignalInfo, TraceError> {
        ptrace::signal_info(self.tracee.tid).map_err(Request::SignalInfo.failed())
    }

    /// The message of an event: the new task's number at [`Stop::Fork`], [`Stop::Vfork`] and [`Stop::Clone`], the
    /// wait status at [`Stop::Exit`], the data of the action at [`Stop::Seccomp`], the former thread number at
    /// [`Stop::Exec`].
    ///
    /// # Errors
    /// [`Request::Message`] with `ESRCH` if it has been killed.
    pub fn message(&self) -> Result<u64, TraceError> {
        ptrace::event_message(self.tracee.tid).map_err(Request::Message.failed())
    }

    /// The task that it has created, at [`Stop::Fork`], [`Stop::Vfork`] and [`Stop::Clone`]; `None` at other stops.
    /// It is a tracee with the same options, and its first report is [`Stop::Interrupted`].
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn new_task(&self) -> Result<Option<Tracee>, TraceError> {
        match self.stop {
            Stop::Fork | Stop::Vfork | Stop::Clone => {
                let tid = self.message()? as i32;
                Ok(Some(Tracee { tid }))
            }
            _ => Ok(None),
        }
    }

    /// The instructions of one of its filters; the oldest has the index 0. Kernel 4.4, with
    /// `CONFIG_CHECKPOINT_RESTORE`.
    ///
    /// # Errors
    /// [`Request::Filter`] with `ENOENT` beyond the newest filter, `EACCES` without `CAP_SYS_ADMIN`
    /// or under a filter.
    pub fn filter(&self, index: usize) -> Result<Vec<tamis_bpf::Insn>, TraceError> {
        ptrace::filter(self.tracee.tid, index).map_err(Request::Filter.failed())
    }

    /// Resumes it, with a signal if one is given.
    ///
    /// # Errors
    /// [`Request::Resume`] with `ESRCH` if it has been killed: its end is its next report.
    pub fn resume(self, how: Resume, signal: Option<i32>) -> Result<(), TraceError> {
        let tid = self.tracee.tid;
        ptrace::resume(tid, how, signal.unwrap_or(0)).map_err(Request::Resume.failed())
    }

    /// Leaves it in its [group stop](Stop::Group) until its next event.
    ///
    /// # Errors
    /// [`Request::Listen`] with `EIO` at another stop, `ESRCH` if it has been killed.
    pub fn listen(self) -> Result<(), TraceError> {
        ptrace::listen(self.tracee.tid).map_err(Request::Listen.failed())
    }

    /// Ends tracing and resumes the task, with a signal if one is given.
    ///
    /// # Errors
    /// [`Request::Detach`] with `ESRCH` if it has been killed.
    pub fn detach(self, signal: Option<i32>) -> Result<(), TraceError> {
        let tid = self.tracee.tid;
        ptrace::detach(tid, signal.unwrap_or(0)).map_err(Request::Detach.failed())
    }
}
