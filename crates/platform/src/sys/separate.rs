//! A forked child that becomes a guest and hands calls over to a supervisor in its parent through shared memory.
//!
//! The child has its own address space and, from the signal handler, makes only calls that its filter allows. A new
//! thread registers by a call that the filter passes to the supervisor, so the kernel identifies the thread. If any
//! step here fails, the handler makes the guest's call unchanged, and the kernel decides.

use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI16, AtomicU8, AtomicU32, AtomicU64, Ordering};

use tamis_abi::{Arch, SeccompData};
use tamis_kernel::Errno;
use tamis_kernel::spawn::Body;

use crate::in_process::Program;
use crate::in_process::calls::{Calls, RemoteSupervisor, Thread as Caller};
use crate::patched::Tables;
use crate::patched::slot::{Reply, Request, Slot};
use crate::sys::guest;
use crate::sys::load::load;
use crate::sys::mappings::{Mapping, for_each_mapping};
use crate::sys::shared::Shared;
use crate::sys::stub;

/// The call numbers with entries of their own.
const NUMBERS: usize = stub::ERRORS;
const PAGE: u64 = 4096;

/// Whether this process is such a child.
static IS_SEPARATE: AtomicBool = AtomicBool::new(false);
/// The threads of this process whose calls raise the signal.
static THREADS: [Thread; (1 << stub::TABLE_BITS) + stub::WINDOW] =
    [const { Thread::none() }; (1 << stub::TABLE_BITS) + stub::WINDOW];

/// A thread, by its FS base.
struct Thread {
    /// The FS base plus 1, or 0.
    fs_base: AtomicU64,
    /// The index of its slot plus 1, 0 before the thread has requested one, or [`REFUSED`].
    slot: AtomicU32,
    /// Whether it is handing a call over. Two threads with the same FS base can't do so at once.
    is_busy: AtomicBool,
    /// Whether it is restoring its signal mask.
    is_leaving: AtomicU32,
}

/// In place of a slot: there is none.
const REFUSED: u32 = u32::MAX;

impl Thread {
    const fn none() -> Thread {
        Thread {
            fs_base: AtomicU64::new(0),
            slot: AtomicU32::new(0),
            is_busy: AtomicBool::new(false),
            is_leaving: AtomicU32::new(0),
        }
    }
}

/// Wakes all threads that sleep until the supervisor answers.
pub(super) fn wake_all() {
    let busy = THREADS
        .iter()
        .filter(|thread| thread.is_busy.load(Ordering::SeqCst));
    let slots = busy.filter_map(|thread| {
        let index = thread.slot.load(Ordering::Acquire).checked_sub(1)?;
        LINK.slot(index)
    });
    slots.for_each(|slot| slot.wake(wake));
}

/// Whether any thread is restoring its signal mask.
pub(super) fn is_any_leaving() -> bool {
    let mut threads = THREADS.iter();
    threads.any(|thread| thread.is_leaving.load(Ordering::SeqCst) != 0)
}

pub(crate) fn is_separate() -> bool {
    IS_SEPARATE.load(Ordering::Relaxed)
}

/// Requests the kernel to populate this memory of the guest, for reading or writing.
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

/// A guest's link to its supervisor; a copy of its own, since the supervisor's memory is discarded.
#[derive(Debug)]
pub(crate) struct Link {
    /// The address of the slots, and their count.
    slots: AtomicU64,
    count: AtomicU64,
    /// The actions for calls, by their numbers, and the errors of those that fail.
    numbers: [AtomicU8; NUMBERS],
    errors: [AtomicI16; NUMBERS],
}

static LINK: Link = Link {
    slots: AtomicU64::new(0),
    count: AtomicU64::new(0),
    numbers: [const { AtomicU8::new(stub::BY_KERNEL) }; NUMBERS],
    errors: [const { AtomicI16::new(0) }; NUMBERS],
};
static CALLS: Calls<'static> = Calls::there(&LINK);

/// The address of the table of numbers in a guest, whose process is a copy of this one.
pub(crate) fn numbers_at() -> u64 {
    LINK.numbers.as_ptr().addr() as u64
}

impl Link {
    fn set(&self, slots: &[Slot], tables: &Tables) {
        let first = slots.as_ptr().addr() as u64;
        self.slots.store(first, Ordering::Relaxed);
        self.count.store(slots.len() as u64, Ordering::Relaxed);
        for (place, number) in self.numbers.iter().zip(tables.numbers) {
            place.store(number, Ordering::Relaxed);
        }
        for (place, error) in self.errors.iter().zip(tables.errors) {
            place.store(error, Ordering::Relaxed);
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

impl RemoteSupervisor for Link {
    fn ask(&self, thread: &mut Caller, call: &SeccompData) -> Option<i64> {
        let nr = call.nr as usize;
        if call.arch != Arch::X86_64.audit() {
            return None;
        }
        match self.numbers.get(nr)?.load(Ordering::Relaxed) {
            stub::ASK => {}
            stub::FAIL => return Some(self.errors[nr].load(Ordering::Relaxed).into()),
            _ => return None,
        }
        let own = claim(thread.fs_base)?;
        if own.slot.load(Ordering::Acquire) == 0 {
            hello(thread.fs_base, own);
        }
        let index = own.slot.load(Ordering::Acquire).checked_sub(1)?;
        let slot = self.slot(index)?;
        if own.is_busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let request = Request {
            nr: call.nr,
            site: 0,
            args: call.args,
        };
        let wait = |word: &AtomicU32, value| guest::sleep(thread, word, value);
        let answered = slot.ask(&request, wait, wake, pass);
        own.is_busy.store(false, Ordering::Release);
        match answered {
            Reply::Value(value) => Some(value),
            Reply::ByKernel => None,
        }
    }

    fn leaving(&self, fs_base: u64) -> Option<&AtomicU32> {
        claim(fs_base).map(|thread| &thread.is_leaving)
    }

    fn forget(&self, fs_base: u64) {
        if let Some(thread) = find(fs_base) {
            thread.is_busy.store(false, Ordering::Relaxed);
            thread.is_leaving.store(0, Ordering::Relaxed);
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

/// The entry of a thread, which may be new.
fn claim(fs_base: u64) -> Option<&'static Thread> {
    let key = fs_base.wrapping_add(1);
    let order = Ordering::AcqRel;
    let is_free = |thread: &&Thread| {
        let taken = thread
            .fs_base
            .compare_exchange(0, key, order, Ordering::Relaxed);
        taken.is_ok()
    };
    find(fs_base).or_else(|| window(fs_base).iter().find(is_free))
}

/// Requests a slot from the supervisor.
fn hello(fs_base: u64, own: &Thread) {
    let args = [fs_base, 0, 0, 0, 0, 0];
    let index = guest::make(stub::HELLO, args);
    let slot = u32::try_from(index + 1).unwrap_or(0);
    let slot = if slot == 0 { REFUSED } else { slot };
    own.slot.store(slot, Ordering::Release);
}

fn pass() {
    guest::make(libc::SYS_sched_yield as u32, [0; 6]);
}

fn wake(word: &AtomicU32) {
    let args = [word.as_ptr() as u64, libc::FUTEX_WAKE as u64, 1, 0, 0, 0];
    guest::make(libc::SYS_futex as u32, args);
}

/// Memory of the supervisor that this process has a copy of: private or shared.
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

/// Notes the supervisor's memory: all except code, its variables, and the slots.
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

/// Discards the supervisor's memory. The caller's stack isn't in it.
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

/// A program that this process is to become.
#[derive(Debug)]
pub(crate) struct Separate<'a> {
    program: &'a Program,
    slots: &'a Shared<Slot>,
    tables: &'a Tables,
    /// The descriptors that the program inherits.
    kept: Vec<RawFd>,
    entry: AtomicU64,
    stack: AtomicU64,
}

impl<'a> Separate<'a> {
    /// A program with its slots, and the actions by call numbers.
    pub(crate) fn new(
        program: &'a Program,
        slots: &'a Shared<Slot>,
        tables: &'a Tables,
    ) -> Separate<'a> {
        Separate {
            program,
            slots,
            tables,
            kept: guest::inherited(),
            entry: AtomicU64::new(0),
            stack: AtomicU64::new(0),
        }
    }
}

impl Body for Separate<'_> {
    fn prepare(&self) -> Result<(), Errno> {
        LINK.set(self.slots, self.tables);
        self.slots.keep_from_children()?;
        note_host()?;
        let (entry, stack) = load(self.program, true)?;
        self.entry.store(entry, Ordering::Relaxed);
        self.stack.store(stack, Ordering::Relaxed);
        IS_SEPARATE.store(true, Ordering::Relaxed);
        guest::prepare(&CALLS)
    }

    fn run(&self) -> Option<Errno> {
        if let Err(errno) = guest::close_others(&self.kept) {
            return Some(errno);
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
        let unblocked = guest::make(libc::SYS_rt_sigprocmask as u32, args);
        if unblocked < 0 {
            return Some(Errno(-unblocked as i32));
        }
        Some(guest::enter(
            self.entry.load(Ordering::Relaxed),
            self.stack.load(Ordering::Relaxed),
        ))
    }
}
