//! A forked child that becomes a guest and asks a supervisor in its parent through shared memory.
//!
//! The child has its own address space and, from the signal handler, makes only calls that its filter lets it make. A
//! thread that isn't known yet says hello by a call that the filter hands to the supervisor, so that who it is comes from
//! the kernel. Whatever fails here, the handler makes the guest's call as it is, and the kernel decides.

use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use tamis_abi::{Arch, SeccompData};
use tamis_kernel::Errno;
use tamis_kernel::spawn::Body;

use crate::in_process::Program;
use crate::in_process::calls::{Calls, Far};
use crate::patched::slot::{Answered, Request, Slot};
use crate::sys::guest;
use crate::sys::load::load;
use crate::sys::mappings::{Mapping, for_each_mapping};
use crate::sys::shared::Shared;
use crate::sys::stub;

/// The numbers of calls that are told apart.
pub(crate) const NUMBERS: usize = stub::ERRORS;
const PAGE: u64 = 4096;

/// Whether this process is such a child.
static IS_SEPARATE: AtomicBool = AtomicBool::new(false);
/// The threads of this process that have a slot, or have asked for one.
static THREADS: [Thread; (1 << stub::TABLE_BITS) + stub::WINDOW] =
    [const { Thread::none() }; (1 << stub::TABLE_BITS) + stub::WINDOW];

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
    const fn none() -> Thread {
        Thread {
            fs_base: AtomicU64::new(0),
            slot: AtomicU32::new(0),
            is_busy: AtomicBool::new(false),
        }
    }
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
    match guest::make(
        libc::SYS_madvise as u32,
        [first, len_bytes, advice, 0, 0, 0],
    ) {
        0 => Ok(()),
        _ => Err(Errno(libc::EFAULT)),
    }
}

/// What a guest has of its supervisor: of its own, since the supervisor's memory is forgotten.
#[derive(Debug)]
pub(crate) struct Link {
    /// The address of the slots, and their count.
    slots: AtomicU64,
    count: AtomicU64,
    /// Whether the supervisor could be asked about calls with a number.
    asked: [AtomicBool; NUMBERS],
}

static LINK: Link = Link {
    slots: AtomicU64::new(0),
    count: AtomicU64::new(0),
    asked: [const { AtomicBool::new(false) }; NUMBERS],
};
static CALLS: Calls<'static> = Calls::there(&LINK);

/// Where a guest has a byte for each number of a call: 0 if it doesn't ask about it. Its process is a copy of this one.
pub(crate) fn asked_at() -> u64 {
    LINK.asked.as_ptr().addr() as u64
}

impl Link {
    fn set(&self, slots: &[Slot], asked: &[bool; NUMBERS]) {
        let first = slots.as_ptr().addr() as u64;
        self.slots.store(first, Ordering::Relaxed);
        self.count.store(slots.len() as u64, Ordering::Relaxed);
        for (place, is_asked) in self.asked.iter().zip(asked) {
            place.store(*is_asked, Ordering::Relaxed);
        }
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        let index = u64::from(index);
        let first: *const Slot = ptr::with_exposed_provenance(self.first() as usize);
        // SAFETY: so many slots are mapped as long as this process lives, unless the guest unmaps them, and have atomic
        // numbers only.
        (index < self.count.load(Ordering::Relaxed)).then(|| unsafe { &*first.add(index as usize) })
    }

    fn first(&self) -> u64 {
        self.slots.load(Ordering::Relaxed)
    }
}

impl Far for Link {
    fn ask(&self, fs_base: u64, call: &SeccompData) -> Option<i64> {
        let asked = self.asked.get(call.nr as usize);
        if !asked.is_some_and(|asked| asked.load(Ordering::Relaxed))
            || call.arch != Arch::X86_64.audit()
        {
            return None;
        }
        let thread = find(fs_base).or_else(|| hello(fs_base))?;
        let index = thread.slot.load(Ordering::Acquire).checked_sub(1)?;
        let slot = self.slot(index)?;
        if thread.is_busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let request = Request {
            nr: call.nr,
            site: 0,
            args: call.args,
        };
        let answered = slot.ask(&request, wait, wake, pass);
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
        let taken = thread
            .fs_base
            .compare_exchange(0, key, order, Ordering::Relaxed);
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

fn pass() {
    guest::make(libc::SYS_sched_yield as u32, [0; 6]);
}

fn wake(word: &AtomicU32) {
    let args = [word.as_ptr() as u64, libc::FUTEX_WAKE as u64, 1, 0, 0, 0];
    guest::make(libc::SYS_futex as u32, args);
}

/// Memory of the supervisor, of which this process has a copy: private or shared.
static HOSTS: [Range; 512] = [const { Range::none() }; 512];

struct Range {
    first: AtomicU64,
    after: AtomicU64,
    is_shared: AtomicBool,
}

impl Range {
    const fn none() -> Range {
        Range {
            first: AtomicU64::new(0),
            after: AtomicU64::new(0),
            is_shared: AtomicBool::new(false),
        }
    }
}

/// Notes what is the supervisor's: all but code, the variables of that, and the slots.
fn note_host() -> Result<(), Errno> {
    let mut end_of_image = 0;
    let mut places = HOSTS.iter();
    for_each_mapping(&mut |mapping| {
        let Mapping { first, after, .. } = *mapping;
        let is_image = mapping.has_file && !mapping.is_shared || first == end_of_image;
        end_of_image = if mapping.has_file { after } else { 0 };
        let slots = LINK.first();
        if is_image || mapping.is_kernels || (first..after).contains(&slots) {
            return Ok(());
        }
        let place = places.next().ok_or(Errno(libc::ENOMEM))?;
        place.first.store(first, Ordering::Relaxed);
        place.after.store(after, Ordering::Relaxed);
        place.is_shared.store(mapping.is_shared, Ordering::Relaxed);
        Ok(())
    })
}

/// Forgets the supervisor's memory. The caller's stack isn't in it.
pub(super) extern "sysv64" fn leave_supervisor() {
    for range in &HOSTS {
        let first = range.first.load(Ordering::Relaxed);
        let len_bytes = range.after.load(Ordering::Relaxed) - first;
        if len_bytes == 0 {
            return;
        }
        match range.is_shared.load(Ordering::Relaxed) {
            true => guest::make(libc::SYS_munmap as u32, [first, len_bytes, 0, 0, 0, 0]),
            false => {
                let advice = libc::MADV_DONTNEED as u64;
                guest::make(
                    libc::SYS_madvise as u32,
                    [first, len_bytes, advice, 0, 0, 0],
                )
            }
        };
    }
}

/// A program to become.
#[derive(Debug)]
pub(crate) struct Separate<'a> {
    program: &'a Program,
    slots: &'a Shared<Slot>,
    asked: &'a [bool; NUMBERS],
    last_fd: RawFd,
    entry: AtomicU64,
    stack: AtomicU64,
}

impl<'a> Separate<'a> {
    /// Slots, and the numbers of calls about which the supervisor could be asked.
    pub(crate) fn new(
        program: &'a Program,
        slots: &'a Shared<Slot>,
        asked: &'a [bool; NUMBERS],
    ) -> Separate<'a> {
        Separate {
            program,
            slots,
            asked,
            last_fd: guest::last_fd(),
            entry: AtomicU64::new(0),
            stack: AtomicU64::new(0),
        }
    }
}

impl Body for Separate<'_> {
    fn prepare(&self) -> Result<(), Errno> {
        LINK.set(self.slots, self.asked);
        self.slots.keep_from_children()?;
        note_host()?;
        let (entry, stack) = load(self.program, true)?;
        self.entry.store(entry, Ordering::Relaxed);
        self.stack.store(stack, Ordering::Relaxed);
        IS_SEPARATE.store(true, Ordering::Relaxed);
        guest::prepare(&CALLS)
    }

    fn run(&self) -> Option<Errno> {
        let made = |nr: i64, args: [u64; 6]| match guest::make(nr as u32, args) {
            result @ 0.. => Ok(result),
            errno => Err(Errno(-errno as i32)),
        };
        if let Err(errno) = made(libc::SYS_unshare, [libc::CLONE_FILES as u64, 0, 0, 0, 0, 0]) {
            return Some(errno);
        }
        for fd in 0..=self.last_fd {
            let flags = made(
                libc::SYS_fcntl,
                [fd as u64, libc::F_GETFD as u64, 0, 0, 0, 0],
            );
            if flags.is_ok_and(|flags| flags & i64::from(libc::FD_CLOEXEC) != 0) {
                let _ = made(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0]);
            }
        }
        let set: u64 = 1 << (libc::SIGSYS - 1);
        let args = [
            libc::SIG_UNBLOCK as u64,
            (&raw const set).addr() as u64,
            0,
            8,
            0,
            0,
        ];
        if let Err(errno) = made(libc::SYS_rt_sigprocmask, args) {
            return Some(errno);
        }
        Some(guest::enter(
            self.entry.load(Ordering::Relaxed),
            self.stack.load(Ordering::Relaxed),
        ))
    }
}
