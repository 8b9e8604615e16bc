//! A forked child that becomes a guest and asks a supervisor in its parent through shared memory.
//!
//! The child has its own address space and, from the signal handler, makes only calls that its filter lets it make. A
//! thread that isn't known yet says hello by a call that the filter hands to the supervisor, so that who it is comes from
//! the kernel. Whatever fails here, the handler makes the guest's call as it is, and the kernel decides.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tamis_abi::{Arch, SeccompData};
use tamis_kernel::Errno;
use tamis_kernel::spawn::Body;

use crate::in_process::Program;
use crate::in_process::calls::{Calls, Far};
use crate::patched::slot::{Answered, Request, Slot};
use crate::sys::guest;
use crate::sys::load::load;
use crate::sys::shared::Shared;
use crate::sys::stub;

/// The numbers of calls that are told apart.
pub(crate) const NUMBERS: usize = stub::ERRORS;
const PAGE: u64 = 4096;

/// Whether this process is such a child.
static IS_SEPARATE: AtomicBool = AtomicBool::new(false);
/// The threads of this process that have a slot, or have asked for one.
static THREADS: [Thread; (1 << stub::TABLE_BITS) + stub::WINDOW] =
    [const { Thread::NONE }; (1 << stub::TABLE_BITS) + stub::WINDOW];

/// A thread, by its FS base.
struct Thread {
    /// One more than that, or 0.
    fs_base: AtomicU64,
    /// One more than the index of its slot, or 0.
    slot: AtomicU32,
    /// Whether it asks. Two threads with the same FS base can't ask at once.
    is_busy: AtomicBool,
}

impl Thread {
    const NONE: Thread = Thread {
        fs_base: AtomicU64::new(0),
        slot: AtomicU32::new(0),
        is_busy: AtomicBool::new(false),
    };
}

pub(super) fn is_separate() -> bool {
    IS_SEPARATE.load(Ordering::Relaxed)
}

/// Asks the kernel for this memory of the guest, to be read or written.
pub(super) fn populate(address: u64, len_bytes: usize, is_written: bool) -> Result<(), Errno> {
    const POPULATE_READ: u64 = 22;
    const POPULATE_WRITE: u64 = 23;
    let advice = if is_written {
        POPULATE_WRITE
    } else {
        POPULATE_READ
    };
    let first = address & !(PAGE - 1);
    let end = address.checked_add(len_bytes as u64);
    let end = end.and_then(|end| end.checked_next_multiple_of(PAGE));
    let len_bytes = end.ok_or(Errno(libc::EFAULT))? - first;
    match guest::make(libc::SYS_madvise as u32, [first, len_bytes, advice, 0, 0, 0]) {
        0 => Ok(()),
        _ => Err(Errno(libc::EFAULT)),
    }
}

/// What a guest has of its supervisor.
pub(crate) struct Link<'a> {
    pub(crate) slots: &'a Shared<Slot>,
    /// Whether the supervisor could be asked about calls with a number.
    pub(crate) asked: [bool; NUMBERS],
}

impl Far for Link<'_> {
    fn ask(&self, fs_base: u64, call: &SeccompData) -> Option<i64> {
        let is_asked = self.asked.get(call.nr as usize).copied().unwrap_or(false);
        if !is_asked || call.arch != Arch::X86_64.audit() {
            return None;
        }
        let thread = find(fs_base).or_else(|| hello(fs_base))?;
        let index = thread.slot.load(Ordering::Acquire).checked_sub(1)?;
        let slot = self.slots.get(index as usize)?;
        if thread.is_busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let request = Request {
            nr: call.nr,
            site: 0,
            args: call.args,
        };
        let answered = slot.ask(&request, wait, wake);
        thread.is_busy.store(false, Ordering::Release);
        match answered {
            Answered::Value(value) => Some(value),
            Answered::ByKernel => None,
        }
    }

    fn forget(&self, fs_base: u64) {
        if let Some(thread) = find(fs_base) {
            thread.slot.store(0, Ordering::Relaxed);
            thread.fs_base.store(0, Ordering::Release);
        }
    }
}

fn window(fs_base: u64) -> &'static [Thread] {
    let first = stub::entry_of(fs_base);
    THREADS.get(first..first + stub::WINDOW).unwrap_or_default()
}

fn find(fs_base: u64) -> Option<&'static Thread> {
    let key = fs_base.wrapping_add(1);
    let mut window = window(fs_base).iter();
    window.find(|thread| thread.fs_base.load(Ordering::Acquire) == key)
}

/// Asks the supervisor for a slot.
fn hello(fs_base: u64) -> Option<&'static Thread> {
    let key = fs_base.wrapping_add(1);
    let order = Ordering::AcqRel;
    let mut window = window(fs_base).iter();
    let thread = window.find(|thread| {
        let taken = thread.fs_base.compare_exchange(0, key, order, Ordering::Relaxed);
        taken.is_ok()
    })?;
    let index = guest::make(stub::HELLO, [fs_base, 0, 0, 0, 0, 0]);
    let slot = u32::try_from(index + 1).unwrap_or(0);
    thread.slot.store(slot, Ordering::Release);
    Some(thread)
}

fn wait(word: &AtomicU32, value: u32) {
    let args = [
        word.as_ptr() as u64,
        libc::FUTEX_WAIT as u64,
        u64::from(value),
        0,
        0,
        0,
    ];
    guest::make(libc::SYS_futex as u32, args);
}

fn wake(word: &AtomicU32) {
    let args = [word.as_ptr() as u64, libc::FUTEX_WAKE as u64, 1, 0, 0, 0];
    guest::make(libc::SYS_futex as u32, args);
}

/// A program to become.
pub(crate) struct Separate<'a> {
    pub(crate) program: &'a Program,
    pub(crate) calls: &'a Calls<'a>,
    pub(crate) last_fd: RawFd,
    entry: AtomicU64,
    stack: AtomicU64,
}

impl<'a> Separate<'a> {
    pub(crate) const fn new(
        program: &'a Program,
        calls: &'a Calls<'a>,
        last_fd: RawFd,
    ) -> Separate<'a> {
        Separate {
            program,
            calls,
            last_fd,
            entry: AtomicU64::new(0),
            stack: AtomicU64::new(0),
        }
    }
}

impl std::fmt::Debug for Separate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Separate").field(self.program).finish()
    }
}

// SAFETY: used in the child alone, which has one thread.
unsafe impl Sync for Separate<'_> {}

impl Body for Separate<'_> {
    fn prepare(&self) -> Result<(), Errno> {
        let (entry, stack) = load(self.program, true)?;
        self.entry.store(entry, Ordering::Relaxed);
        self.stack.store(stack, Ordering::Relaxed);
        IS_SEPARATE.store(true, Ordering::Relaxed);
        guest::prepare(self.calls)
    }

    fn run(&self) -> Errno {
        let made = |nr: i64, args: [u64; 6]| match guest::make(nr as u32, args) {
            result @ 0.. => Ok(result),
            errno => Err(Errno(-errno as i32)),
        };
        if let Err(errno) = made(libc::SYS_unshare, [libc::CLONE_FILES as u64, 0, 0, 0, 0, 0]) {
            return errno;
        }
        for fd in 0..=self.last_fd {
            let flags = made(libc::SYS_fcntl, [fd as u64, libc::F_GETFD as u64, 0, 0, 0, 0]);
            if flags.is_ok_and(|flags| flags & i64::from(libc::FD_CLOEXEC) != 0) {
                let _ = made(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0]);
            }
        }
        let set: u64 = 1 << (libc::SIGSYS - 1);
        let args = [libc::SIG_UNBLOCK as u64, (&raw const set).addr() as u64, 0, 8, 0, 0];
        if let Err(errno) = made(libc::SYS_rt_sigprocmask, args) {
            return errno;
        }
        guest::enter(
            self.entry.load(Ordering::Relaxed),
            self.stack.load(Ordering::Relaxed),
        )
    }
}
