//! The monitor's state: an area that its tracer maps after the execution of a program; forked processes have a copy.

use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use tamis_kernel::Errno;

use super::call;
use super::signals::Handlers;

pub(super) const PAGE: u64 = 4096;
/// The most threads of a guest at a time.
pub(crate) const MAX_VCPUS: usize = 256;
/// The bytes of a thread's stack in the monitor, with its [`Vcpu`](super::vcpu::Vcpu) at the lowest address.
pub(super) const STACK_BYTES: u64 = 64 << 10;
/// The bytes for the structure that KVM shares with the monitor.
pub(crate) const RUN_BYTES: u64 = 16 << 10;
const GUEST_PAGES: u64 = 1 << 20;
const RUNS: u64 = 4 << 20;
pub(super) const STACKS: u64 = 8 << 20;
pub(super) const TABLES: u64 = 24 << 20;
/// The most page tables.
pub(super) const MAX_TABLES: u32 = 32 << 10;
const LEN_BYTES: u64 = TABLES + MAX_TABLES as u64 * PAGE;
/// The bytes of an area at any alignment.
pub(crate) const AREA_BYTES: u64 = LEN_BYTES + STACK_BYTES;
/// The most pieces of 256 MiB in which a guest may have memory: limited by 39 bits of addresses, which all machines
/// have.
pub(super) const MAX_CHUNKS: usize = 1600;
const MAX_HOSTS: usize = 1024;
const MAX_HANDLERS: usize = 16;

/// An area of this process, used to build the state of a new machine.
#[derive(Debug)]
pub(crate) struct Area {
    base: u64,
}

impl Area {
    /// Maps an area; its pages are allocated when they are used.
    pub(crate) fn new() -> Result<Area, Errno> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping affects no other.
        match unsafe { libc::mmap(ptr::null_mut(), AREA_BYTES as usize, access, flags, -1, 0) } {
            libc::MAP_FAILED => Err(Errno::last()),
            mapped => Ok(Area {
                base: mapped as u64,
            }),
        }
    }

    /// The state.
    pub(super) fn state(&self) -> *mut State {
        pointer(state_at(self.base))
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to `self`.
        unsafe { libc::munmap(pointer(self.base), AREA_BYTES as usize) };
    }
}

/// The address of an area's state: at a multiple of the size of a stack.
pub(super) const fn state_at(area: u64) -> u64 {
    area.next_multiple_of(STACK_BYTES)
}

/// The exit from the machine that calls use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Exit {
    /// By `hlt`, which requires a KVM that enters the shim with privileges.
    Halt,
    /// By a write to a port.
    Port,
    /// By a write to unmapped memory.
    Memory,
}

impl Exit {
    /// The exit with this number; any other number means the last.
    pub(super) const fn from_number(number: u32) -> Exit {
        match number {
            0 => Exit::Halt,
            1 => Exit::Port,
            _ => Exit::Memory,
        }
    }
}

/// Some ranges of addresses.
#[repr(C)]
pub(super) struct Ranges {
    count: AtomicU32,
    /// First addresses and ends.
    ranges: [[AtomicU64; 2]; MAX_HOSTS],
}

impl Ranges {
    /// Adds a range, or extends the last one; false if there is no room.
    pub(super) fn add(&self, first: u64, after: u64) -> bool {
        let count = self.count.load(Ordering::Relaxed) as usize;
        if count > 0
            && let Some([_, end]) = self.ranges.get(count - 1)
            && end.load(Ordering::Relaxed) == first
        {
            end.store(after, Ordering::Relaxed);
            return true;
        }
        let Some([from, to]) = self.ranges.get(count) else {
            return false;
        };
        from.store(first, Ordering::Relaxed);
        to.store(after, Ordering::Relaxed);
        self.count.store(count as u32 + 1, Ordering::Release);
        true
    }

    /// All ranges, in the order in which they were added.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let count = self.count.load(Ordering::Acquire) as usize;
        let ranges = self.ranges.iter().take(count);
        ranges.map(|range| {
            let [first, after] = range.each_ref().map(|end| end.load(Ordering::Relaxed));
            (first, after)
        })
    }
}

/// The state that the threads of an address space share. Zeros are the initial value.
#[repr(C)]
pub(super) struct State {
    /// The lock of the page tables, chunks and threads: an address in the stack of its owner, or 0.
    pub(super) lock: AtomicU64,
    /// The exit of calls, as a number.
    pub(super) exit: AtomicU32,
    pub(super) kvm_fd: AtomicI32,
    pub(super) vm_fd: AtomicI32,
    /// The first of the monitor's descriptors: KVM's, the machine's, those of the threads, that of its code, and the
    /// placeholder.
    pub(super) first_fd: AtomicI32,
    /// The privilege level of calls in the shim, plus 1.
    pub(super) shim_ring: AtomicU32,
    pub(super) run_bytes: AtomicU64,
    pub(super) xcr0: AtomicU64,
    /// The size of the state that `xsave` stores.
    pub(super) xsave_bytes: AtomicU64,
    /// The end of the guest's heap, if it has changed.
    pub(super) heap_end: AtomicU64,
    /// The program's entry, stack and mask.
    pub(super) entry: AtomicU64,
    pub(super) stack: AtomicU64,
    pub(super) mask: AtomicU64,
    pub(super) table_count: AtomicU32,
    pub(super) chunk_count: AtomicU32,
    /// The threads in use.
    pub(super) in_use: [AtomicU32; MAX_VCPUS],
    /// Their descriptors: 0 if KVM hasn't created them, negative if they aren't set up.
    pub(super) vcpu_fds: [AtomicI32; MAX_VCPUS],
    /// The pieces of memory that the machine has, in the order of its physical memory.
    pub(super) chunks: [AtomicU32; MAX_CHUNKS],
    /// The host's memory.
    pub(super) hosts: Ranges,
    /// The program's executable memory.
    pub(super) codes: Ranges,
    pub(super) handlers: [Handlers; MAX_HANDLERS],
    pub(super) cpuid: [AtomicU32; 4096],
}

const _: () = assert!(size_of::<State>() as u64 <= GUEST_PAGES);

impl State {
    pub(super) fn base(&self) -> u64 {
        ptr::from_ref(self).addr() as u64
    }

    /// The page of the shim, which is visible to the guest.
    pub(super) fn shim(&self) -> u64 {
        self.base() + GUEST_PAGES
    }

    /// The table of interrupts.
    pub(super) fn idt(&self) -> u64 {
        self.shim() + PAGE
    }

    /// The pages of a thread in the machine: one for its descriptor table, task state and stack for exceptions, and one
    /// writable page, for return frames.
    pub(super) fn vcpu_pages(&self, index: usize) -> u64 {
        self.shim() + (2 + 2 * index as u64) * PAGE
    }

    pub(super) fn run(&self, index: usize) -> u64 {
        self.base() + RUNS + index as u64 * RUN_BYTES
    }

    /// The lowest address of a thread's stack in the monitor.
    pub(super) fn stack_of(&self, index: usize) -> u64 {
        self.base() + STACKS + index as u64 * STACK_BYTES
    }

    /// Whether some of these bytes are the host's, or beyond user space.
    pub(super) fn is_host(&self, address: u64, len_bytes: u64) -> bool {
        let Some(end) = address.checked_add(len_bytes) else {
            return true;
        };
        if end > super::tables::USER_END {
            return true;
        }
        let mut hosts = self.hosts.iter();
        hosts.any(|(first, after)| address < after && end > first)
    }

    /// Runs `body` while no other thread does so.
    pub(super) fn locked<T>(&self, body: impl FnOnce() -> T) -> T {
        let own = 0_u8;
        let own = ptr::from_ref(&own).addr() as u64;
        while self
            .lock
            .compare_exchange_weak(0, own, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        let value = body();
        self.lock.store(0, Ordering::Release);
        value
    }

    /// Reports to the tracer that the machine has failed, and ends the process.
    pub(super) fn fail(&self, errno: Errno) -> ! {
        call::fail(errno)
    }

    /// Releases the lock of a thread that has ended.
    pub(super) fn unlock_of(&self, index: usize) {
        let first = self.stack_of(index);
        let owner = self.lock.load(Ordering::Relaxed);
        if (first..first + STACK_BYTES).contains(&owner) {
            self.lock.store(0, Ordering::Release);
        }
    }
}

/// The number of a monitor's descriptors.
pub(super) const OWN_FDS: u64 = PLACE_FD as u64 + 1;
/// The index of KVM's.
pub(super) const KVM_FD: i32 = 0;
/// The index of the file with the monitor's code, which the tracer has mapped after `execve`.
pub(super) const CODE_FD: i32 = 2 + MAX_VCPUS as i32;
/// The index of the placeholder, whose copies reserve the numbers of descriptors that aren't created.
pub(super) const PLACE_FD: i32 = CODE_FD + 1;

pub(super) const fn pointer<T>(address: u64) -> *mut T {
    ptr::with_exposed_provenance_mut(address as usize)
}
