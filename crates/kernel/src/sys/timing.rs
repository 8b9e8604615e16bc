//! The child of a measurement: installs filters and times system calls under them.
//!
//! The restrictions for the child of a run apply here, too: after the fork it may call only async-signal-safe
//! functions, and from the first filter on each call may be denied. So it reports through shared memory, a
//! [`TimingReport`] and a list of ticks, reads the time without system calls, and ends by an illegal instruction if the
//! filter denies `exit_group`.

use std::hint;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use tamis_bpf::Insn;

use crate::errno::Errno;
use crate::flags::Flags;
use crate::sys::raw_call::{self, RawCall};
use crate::sys::{affinity, check, seccomp};

/// The progress of a child, as the number in [`TimingReport::stage`].
pub(crate) mod stage {
    /// The initial stage.
    pub(crate) const START: u32 = 0;
    /// Choosing its CPU.
    pub(crate) const PIN: u32 = 1;
    /// Setting `no_new_privs`.
    pub(crate) const NO_NEW_PRIVS: u32 = 2;
    /// Installing the filter in [`TimingReport::filter`](super::TimingReport::filter).
    pub(crate) const INSTALL: u32 = 3;
    /// Waiting for [`TimingReport::go`](super::TimingReport::go) with all filters installed.
    pub(crate) const HOLD: u32 = 4;
    /// Timing calls.
    pub(crate) const TIME: u32 = 5;
    /// All figures are stored.
    pub(crate) const DONE: u32 = 6;
}

/// The child's report, except for the ticks of batches.
pub(crate) struct TimingReport {
    /// One of [`stage`].
    pub(crate) stage: AtomicU32,
    /// The filter being installed.
    pub(crate) filter: AtomicU32,
    /// The error that ended the stage; 0 while there is none.
    pub(crate) errno: AtomicI32,
    /// The ticks for installing all filters.
    pub(crate) install_ticks: AtomicU64,
    /// A held child waits until this is not 0.
    pub(crate) go: AtomicU32,
}

impl Default for TimingReport {
    fn default() -> TimingReport {
        TimingReport {
            stage: AtomicU32::new(stage::START),
            filter: AtomicU32::new(0),
            errno: AtomicI32::new(0),
            install_ticks: AtomicU64::new(0),
            go: AtomicU32::new(0),
        }
    }
}

/// The address of the memory for calls; fixed, so that their arguments are the same in all children.
pub(crate) const MEMORY_ADDRESS: u64 = 0x2000_0000;
/// The memory is all zeros before this offset and all ones from here on.
pub(crate) const ONES_OFFSET: u64 = 0x4000;
/// The memory is writable from this offset on.
pub(crate) const RESULT_OFFSET: u64 = 0x8000;
/// The total size; the parts are whole pages on machines with pages of up to 16 KiB.
const MEMORY_BYTES: u64 = 0xc000;

/// A sequence of calls, in batches that are timed together, several times.
pub(crate) struct Series {
    /// The batches: indices of the plan's calls, in order.
    pub(crate) batches: Vec<Vec<u32>>,
    /// The count of passes over each batch.
    pub(crate) passes: usize,
}

impl Series {
    /// The count of figures: batch by batch, each with all its passes.
    pub(crate) fn len(&self) -> usize {
        self.batches.len() * self.passes
    }
}

/// The inputs of a child.
pub(crate) struct Plan<'a> {
    /// The filters, the oldest first.
    pub(crate) filters: &'a [&'a [Insn]],
    /// The calls used in series.
    pub(crate) calls: &'a [RawCall],
    /// The series to time.
    pub(crate) series: &'a [Series],
    /// The CPU to stay on.
    pub(crate) cpu: usize,
    /// Whether to wait for [`TimingReport::go`] before timing.
    pub(crate) holds: bool,
    /// The board for the report.
    pub(crate) board: &'a TimingReport,
    /// The places for the ticks of batches, one series after the other.
    pub(crate) ticks: &'a [AtomicU64],
}

/// Forks a child that executes the plan; returns its process number.
pub(crate) fn spawn(plan: &Plan<'_>) -> Result<libc::pid_t, Errno> {
    // SAFETY: takes no arguments and can't fail.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child only runs `carry_out`, which is async-signal-safe.
    let forked = check(unsafe { libc::fork() });
    if forked == Ok(0) {
        carry_out(plan, parent);
    }
    forked
}

/// The last CPU that this thread may run on: interrupts tend to go to the first.
pub(crate) fn last_cpu() -> Result<usize, Errno> {
    affinity::get(0)?.pop().ok_or(Errno(libc::EINVAL))
}

/// The child.
fn carry_out(plan: &Plan<'_>, parent: libc::pid_t) -> ! {
    let board = plan.board;
    if let Err(errno) = set_up(plan, parent) {
        give_up(board, errno);
    }
    board.stage.store(stage::INSTALL, Ordering::Release);
    let start = ticks();
    for (index, insns) in plan.filters.iter().enumerate() {
        board.filter.store(index as u32, Ordering::Release);
        if let Err(errno) = seccomp::set_filter(insns, Flags::NONE) {
            give_up(board, errno);
        }
    }
    let install_ticks = ticks().wrapping_sub(start);
    board.install_ticks.store(install_ticks, Ordering::Release);
    if plan.holds {
        board.stage.store(stage::HOLD, Ordering::Release);
        // Sleeping would take a system call, which the filters may deny.
        while board.go.load(Ordering::Acquire) == 0 {
            hint::spin_loop();
        }
    }
    board.stage.store(stage::TIME, Ordering::Release);
    let mut rest = plan.ticks;
    for series in plan.series {
        // The parent has allocated room for all series.
        let Some((places, others)) = rest.split_at_checked(series.len()) else {
            break;
        };
        time(series, plan.calls, places);
        rest = others;
    }
    board.stage.store(stage::DONE, Ordering::Release);
    end(0)
}

/// The preparations that need system calls, before the filters: dying with the parent, no core dumps, one CPU. It
/// also touches all memory that will be written.
fn set_up(plan: &Plan<'_>, parent: libc::pid_t) -> Result<(), Errno> {
    let no_core = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    for place in plan.ticks {
        place.store(0, Ordering::Relaxed);
    }
    map_memory()?;
    plan.board.stage.store(stage::PIN, Ordering::Release);
    // SAFETY: the calls read only their arguments.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != parent {
            end(1);
        }
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::signal(libc::SIGILL, libc::SIG_DFL);
    }
    affinity::set(0, plan.cpu)?;
    plan.board
        .stage
        .store(stage::NO_NEW_PRIVS, Ordering::Release);
    seccomp::set_no_new_privs()
}

/// Maps the memory for calls.
fn map_memory() -> Result<(), Errno> {
    let address = MEMORY_ADDRESS as *mut u8;
    let (flags, access) = (
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
        libc::PROT_READ | libc::PROT_WRITE,
    );
    let bytes = MEMORY_BYTES as usize;
    // SAFETY: a new mapping that replaces nothing.
    let mapped = unsafe { libc::mmap(address.cast(), bytes, access, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    // Kernels before 4.17 treat the address as a hint.
    if mapped.cast() != address {
        return Err(Errno(libc::EEXIST));
    }
    let ones = (RESULT_OFFSET - ONES_OFFSET) as usize;
    // SAFETY: both ranges are in the mapping, which has no other users.
    unsafe {
        ptr::write_bytes(address, 0, bytes);
        ptr::write_bytes(address.add(ONES_OFFSET as usize), 0xff, ones);
    }
    // SAFETY: as above.
    let protected = unsafe { libc::mprotect(mapped, RESULT_OFFSET as usize, libc::PROT_READ) };
    check(protected).map(|_| ())
}

/// Times a series and stores its ticks in the places.
fn time(series: &Series, calls: &[RawCall], places: &[AtomicU64]) {
    // Warm up caches and branch predictors.
    for order in &series.batches {
        batch(calls, order);
    }
    for pass in 0..series.passes {
        let places = places.chunks(series.passes);
        for (order, places) in series.batches.iter().zip(places) {
            let ticks = batch(calls, order);
            if let Some(place) = places.get(pass) {
                place.store(ticks, Ordering::Relaxed);
            }
        }
    }
}

/// The ticks of one batch.
fn batch(calls: &[RawCall], order: &[u32]) -> u64 {
    let start = ticks();
    for index in order {
        // An invalid index would be a bug of the parent; a panic here would hang.
        let Some(raw) = calls.get(*index as usize) else {
            continue;
        };
        if raw.is_compat {
            raw_call::call(raw, &AtomicU64::new(0));
            continue;
        }
        let (nr, [a, b, c, d, e, f]) = (libc::c_long::from(raw.nr as i32), raw.args);
        // SAFETY: the table has only calls that take no pointers, fail before they use them, or use the memory for
        // calls.
        unsafe { libc::syscall(nr, a, b, c, d, e, f) };
    }
    ticks().wrapping_sub(start)
}

/// The name of the clock.
pub(crate) const CLOCK: &str = if cfg!(target_arch = "x86_64") {
    "TSC"
} else {
    "CLOCK_MONOTONIC"
};

/// The processor's time stamp counter, which needs no system call that a filter could deny.
#[cfg(target_arch = "x86_64")]
pub(crate) fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has both instructions; the fence keeps the calls outside.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// The C library's clock, which reads the time without a system call.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn ticks() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The unadjusted time since the start of the machine, in nanoseconds.
pub(crate) fn raw_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC_RAW)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the C library fills the structure; zero is valid if it can't.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Reports an error and ends the child.
fn give_up(board: &TimingReport, errno: Errno) -> ! {
    board.errno.store(errno.0, Ordering::Release);
    end(1)
}

/// Ends the child, even if the filter denies `exit_group`.
fn end(code: libc::c_int) -> ! {
    // SAFETY: it only ends the process, and returns only under a filter that denies it.
    unsafe { libc::syscall(libc::SYS_exit_group, code) };
    illegal_instruction()
}

/// Ends the process without a system call.
#[cfg(target_arch = "x86_64")]
pub(crate) fn illegal_instruction() -> ! {
    // SAFETY: the instruction only raises SIGILL, which has its default action.
    unsafe { std::arch::asm!("ud2", options(noreturn)) }
}

/// Ends the process without a system call.
#[cfg(target_arch = "aarch64")]
pub(crate) fn illegal_instruction() -> ! {
    // SAFETY: the instruction only raises SIGILL, which has its default action.
    unsafe { std::arch::asm!("udf #0", options(noreturn)) }
}

/// Ends the process.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn illegal_instruction() -> ! {
    std::process::abort()
}
