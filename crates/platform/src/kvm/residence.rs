//! Bringing the monitor into the memory of a program that has just been executed.
//!
//! The task has stopped before the program's first instruction, traced. The tracer injects some calls, which the filter
//! identifies as the tracer's: they map the monitor's code at its address in this process, since the filter identifies
//! the monitor's calls by their addresses, and an area. The task continues in the monitor, which creates the machine
//! and starts the program there.
//!
//! If the program has a mapping at the address of the monitor's code, which random addresses make as rare as one in ten
//! thousand, the program is executed again.

use std::fs;
use std::sync::atomic::Ordering;

use tamis_kernel::tracee::{Stopped, TraceError};
use tamis_kernel::{Errno, Status, memory};

use crate::attached::Residence;
use crate::patched::inject::{Injection, NextStop, RAX, RDI, RIP, RSP, Refusal, Words};
use crate::sys::kvm::area::AREA_BYTES;
use crate::sys::kvm::{self, BLOCKED, Executed, InitialState, Machine};
use crate::sys::machine;

/// The most executions of a program before it ends.
const ATTEMPTS: u32 = 8;
/// `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// The reason why a monitor can't be mapped.
enum Problem {
    /// The task has been killed, or can't be traced.
    Lost(TraceError),
    /// The kernel's error.
    Failed(Errno),
    /// The address is occupied.
    Occupied,
}

impl From<TraceError> for Problem {
    fn from(error: TraceError) -> Problem {
        Problem::Lost(error)
    }
}

impl From<Errno> for Problem {
    fn from(errno: Errno) -> Problem {
        Problem::Failed(errno)
    }
}

impl Residence for Machine<'_> {
    fn move_in(&self, stopped: &Stopped, next: NextStop<'_>) -> Result<(), TraceError> {
        let tid = stopped.tracee().tid();
        // The first task to execute a program belongs to the first process: only programs create others.
        let (relaxed, none) = (Ordering::Relaxed, 0);
        let _ = self.first.compare_exchange(none, tid, relaxed, relaxed);
        match move_in(self, stopped, next) {
            Ok(signals) => {
                for signal in signals {
                    let _ = machine::signal_thread(tid, signal);
                }
                Ok(())
            }
            Err(Problem::Lost(error)) => Err(error),
            Err(problem) => {
                // A failure for a task that has been killed is no failure of the machine.
                stopped.registers()?;
                let errno = match problem {
                    Problem::Failed(errno) => errno.0,
                    _ => libc::EEXIST,
                };
                note_failure(self, tid, errno);
                stopped.tracee().kill()
            }
        }
    }

    fn has_failed(&self, stopped: &Stopped, signal: i32) -> Result<bool, TraceError> {
        if signal != libc::SIGILL {
            return Ok(false);
        }
        let words = Words::read(stopped)?;
        let failed = words.filter(|words| words.0[RIP] == kvm::failed_at());
        if let Some(words) = failed {
            note_failure(self, stopped.tracee().tid(), words.0[RDI] as i32);
        }
        Ok(failed.is_some())
    }
}

/// Handles the failure of a stopped task's machine. Failures in later processes are like crashes of programs: their
/// parents see them.
fn note_failure(machine: &Machine<'_>, tid: i32, errno: i32) {
    let first = machine.first.load(Ordering::Relaxed);
    if fs::exists(format!("/proc/{first}/task/{tid}")).unwrap_or(false) {
        let (release, relaxed, none) = (Ordering::Release, Ordering::Relaxed, 0);
        let failure = &machine.failure;
        let _ = failure.compare_exchange(none, errno, release, relaxed);
    }
}

/// Continues the task in a monitor; returns the signals that came meanwhile.
fn move_in(
    machine: &Machine<'_>,
    stopped: &Stopped,
    next: NextStop<'_>,
) -> Result<Vec<i32>, Problem> {
    let tid = stopped.tracee().tid();
    let words = Words::read(stopped)?.ok_or(NO_PROGRAM)?;
    let mut entry = Entry::take(tid, words.0[RIP])?;
    let injection = Injection::begin_executed(stopped, next);
    let mut injection = injection.map_err(|refusal| match refusal {
        Refusal::Refused => Problem::Failed(NO_PROGRAM),
        Refusal::Lost(error) => Problem::Lost(error),
    })?;
    for _ in 0..ATTEMPTS {
        match map_code(machine, &mut injection, next) {
            Err(Problem::Occupied) => {}
            mapped => {
                mapped?;
                return begin(machine, tid, &entry, injection, next);
            }
        }
        execute_again(tid, &mut injection, next)?;
        entry = Entry::take(tid, injection.words().0[RIP])?;
        injection.go_behind_call();
    }
    Err(Problem::Occupied)
}

/// The error for a program that machines can't run.
const NO_PROGRAM: Errno = Errno(libc::ENOEXEC);

/// A program's first instruction, replaced by a `syscall`.
struct Entry {
    at: u64,
    bytes: [u8; SYSCALL.len()],
}

impl Entry {
    fn take(tid: i32, at: u64) -> Result<Entry, Errno> {
        let mut bytes = [0; SYSCALL.len()];
        memory::read(tid, at, &mut bytes)?;
        memory::overwrite(tid, at, &SYSCALL)?;
        Ok(Entry { at, bytes })
    }

    fn give_back(&self, tid: i32) -> Result<(), Errno> {
        memory::overwrite(tid, self.at, &self.bytes)
    }
}

/// Makes the task execute its program once more, with the arguments and environment on its stack.
fn execute_again(
    tid: i32,
    injection: &mut Injection<'_>,
    next: NextStop<'_>,
) -> Result<(), Problem> {
    const WORD: u64 = size_of::<u64>() as u64;
    let stack = injection.words().0[RSP];
    let args = stack + WORD;
    let count = Words64::new(tid, stack).next()?;
    let environment = args + (count + 1) * WORD;
    let path = injection.scratch();
    memory::write(tid, path, b"/proc/self/exe\0")?;
    let args = [path, args, environment, 0, 0, 0];
    call(injection, libc::SYS_execve, args, next)?;
    Ok(injection.begin_again()?)
}

/// A call that must succeed.
fn call(
    injection: &mut Injection<'_>,
    nr: i64,
    args: [u64; 6],
    next: NextStop<'_>,
) -> Result<u64, Problem> {
    match injection.make(nr, args, next)? {
        errno @ -4095..=-1 => Err(Problem::Failed(Errno(-errno as i32))),
        result => Ok(result as u64),
    }
}

/// Maps the monitor's code at its address in this process.
fn map_code(
    machine: &Machine<'_>,
    injection: &mut Injection<'_>,
    next: NextStop<'_>,
) -> Result<(), Problem> {
    const ACCESS: u64 = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    const FLAGS: u64 = (libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE) as u64;
    let fd = machine.code_fd() as u64;
    for part in machine.code.parts() {
        let (first, len_bytes) = (part.range.start, part.range.end - part.range.start);
        let args = [first, len_bytes, ACCESS, FLAGS, fd, part.offset];
        match call(injection, libc::SYS_mmap, args, next) {
            Ok(_) => {}
            Err(Problem::Failed(Errno(libc::EEXIST))) => return Err(Problem::Occupied),
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}

/// Maps the area, and starts the monitor in the task.
fn begin(
    machine: &Machine<'_>,
    tid: i32,
    entry: &Entry,
    mut injection: Injection<'_>,
    next: NextStop<'_>,
) -> Result<Vec<i32>, Problem> {
    const ACCESS: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    const FLAGS: u64 = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
    let args = [0, AREA_BYTES, ACCESS, FLAGS, u64::MAX, 0];
    let area = call(&mut injection, libc::SYS_mmap, args, next)?;
    entry.give_back(tid)?;
    let mut words = injection.words();
    let stack = words.0[RSP];
    hide_vdso(tid, stack)?;
    let maps = fs::read(format!("/proc/{tid}/maps")).map_err(|_| Errno(libc::ESRCH))?;
    let program = Executed {
        entry: entry.at,
        stack,
        mask: injection.signal_mask(),
        ignored: ignored_signals(tid),
        maps: &maps,
    };
    let beginning = InitialState::new(machine, &program, area..area + AREA_BYTES)?;
    let written = memory::write(tid, beginning.at, &beginning.bytes)?;
    if written != beginning.bytes.len() {
        return Err(Problem::Failed(Errno(libc::EFAULT)));
    }
    words.0[RAX] = 0;
    words.0[RIP] = beginning.ip;
    words.0[RSP] = beginning.stack;
    words.0[RDI] = beginning.stack;
    Ok(injection.end_with(words, BLOCKED)?)
}

/// The signals that a task ignores.
fn ignored_signals(tid: i32) -> u64 {
    let task = Status::read(tid);
    task.and_then(|task| task.mask("SigIgn")).unwrap_or(0)
}

/// Hides the vDSO in a program's auxiliary vector: it reads clocks in memory that a machine doesn't have.
fn hide_vdso(tid: i32, stack: u64) -> Result<(), Errno> {
    const AT_IGNORE: u64 = 1;
    const WORD: u64 = size_of::<u64>() as u64;
    let mut words = Words64::new(tid, stack);
    // First the count of arguments; then arguments and environment with their ends; then pairs of a key and a value.
    words.next()?;
    for _ in 0..2 {
        while words.next()? != 0 {}
    }
    loop {
        let at = words.at;
        match (words.next()?, words.next()?) {
            (libc::AT_NULL, _) => return Ok(()),
            (libc::AT_SYSINFO_EHDR, _) => {
                let written = memory::write(tid, at, &AT_IGNORE.to_ne_bytes())?;
                return match written as u64 {
                    WORD => Ok(()),
                    _ => Err(Errno(libc::EFAULT)),
                };
            }
            _ => {}
        }
    }
}

/// The words of a task's memory in sequence.
struct Words64 {
    tid: i32,
    at: u64,
    bytes: Vec<u8>,
    used: usize,
}

impl Words64 {
    const fn new(tid: i32, at: u64) -> Words64 {
        Words64 {
            tid,
            at,
            bytes: Vec::new(),
            used: 0,
        }
    }

    fn next(&mut self) -> Result<u64, Errno> {
        const AT_ONCE: usize = 4096;
        if self.used == self.bytes.len() {
            self.bytes.resize(AT_ONCE, 0);
            let read = memory::read(self.tid, self.at, &mut self.bytes)?;
            self.bytes.truncate(read & !(size_of::<u64>() - 1));
            self.used = 0;
        }
        let word = self.bytes.get(self.used..self.used + size_of::<u64>());
        let word = word.and_then(|bytes| bytes.try_into().ok());
        self.used += size_of::<u64>();
        self.at += size_of::<u64>() as u64;
        word.map(u64::from_ne_bytes).ok_or(Errno(libc::EFAULT))
    }
}
