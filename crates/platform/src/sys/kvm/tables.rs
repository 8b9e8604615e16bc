//! The guest's page tables: the same addresses as in this process, for pages that it may use.
//!
//! An entry is made when the guest faults, after the kernel has populated the page with the requested access: the
//! mappings are the kernel's. So entries are a cache. When the kernel unmaps memory, it notifies KVM, which then fails
//! to run the guest; all entries are cleared, and the guest's own fault provides the address. The kernel doesn't report
//! whether a page is executable, so the monitor notes it in a bit of the entry when memory is mapped or protected.
//!
//! The machine has physical memory in pieces of 256 MiB, in the order in which the guest uses these pieces of its
//! addresses.

use std::sync::atomic::{AtomicU64, Ordering};

use super::area::{MAX_CHUNKS, MAX_TABLES, PAGE, State, TABLES, pointer};
use super::call::{self, own};
use super::machine;

/// The end of the addresses that a process can map.
pub(super) const USER_END: u64 = 0x7fff_ffff_f000;
/// The size of a piece of memory, as a power of two.
const CHUNK_BITS: u32 = 28;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const USED: u64 = 1 << 5 | 1 << 6;
/// A bit of the monitor's: the page may be executed.
const EXECUTABLE: u64 = 1 << 9;
const NO_EXECUTE: u64 = 1 << 63;
const FRAME: u64 = 0x000f_ffff_ffff_f000;

/// The bytes that are populated at once for sequential access.
const RUN_BYTES: u64 = 16 * PAGE;

/// The bits of a fault's error code.
const BY_WRITE: u64 = 1 << 1;
const BY_FETCH: u64 = 1 << 4;

/// An unresolved fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// There is no memory, or none for this access: signal and code.
    Signal(i32, i32),
    /// The machine can't have more memory.
    Exhausted,
}

const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;
const BUS_ADRERR: i32 = 2;

/// The physical address of the root.
pub(super) fn root(state: &State) -> Option<u64> {
    state.locked(|| {
        if state.table_count.load(Ordering::Relaxed) == 0 {
            new_table(state)?;
        }
        physical(state, state.base() + TABLES)
    })
}

/// The physical address of a byte of this process; its piece is added to the machine if needed.
fn physical(state: &State, address: u64) -> Option<u64> {
    let piece = (address >> CHUNK_BITS) as u32;
    let count = state.chunk_count.load(Ordering::Relaxed) as usize;
    let known = state.chunks.iter().take(count);
    let mut known = known.map(|chunk| chunk.load(Ordering::Relaxed));
    let index = match known.position(|known| known == piece) {
        Some(index) => index,
        None => {
            if count == MAX_CHUNKS || !add_memory(state, count, piece) {
                return None;
            }
            state.chunks.get(count)?.store(piece, Ordering::Relaxed);
            state.chunk_count.store(count as u32 + 1, Ordering::Relaxed);
            count
        }
    };
    Some(((index as u64 + 1) << CHUNK_BITS) | address & ((1 << CHUNK_BITS) - 1))
}

fn add_memory(state: &State, index: usize, piece: u32) -> bool {
    let first = u64::from(piece) << CHUNK_BITS;
    // The first piece begins at 0, which can't be mapped, and the last is incomplete.
    let len_bytes = (1 << CHUNK_BITS).min(USER_END - first);
    machine::set_memory(
        state,
        index as u32,
        (index as u64 + 1) << CHUNK_BITS,
        len_bytes,
        first,
    )
}

/// Adds the memory that a former machine had to a new one.
pub(super) fn add_all(state: &State) -> bool {
    let count = state.chunk_count.load(Ordering::Relaxed) as usize;
    let mut chunks = state.chunks.iter().take(count).enumerate();
    chunks.all(|(index, piece)| add_memory(state, index, piece.load(Ordering::Relaxed)))
}

fn new_table(state: &State) -> Option<u64> {
    let index = state.table_count.load(Ordering::Relaxed);
    if index == MAX_TABLES {
        return None;
    }
    let table = state.base() + TABLES + u64::from(index) * PAGE;
    let at = physical(state, table)?;
    state.table_count.store(index + 1, Ordering::Relaxed);
    Some(at)
}

/// Whether the tables suffice for all pages of so many bytes, at any addresses.
pub(super) fn has_room(state: &State, len_bytes: u64) -> bool {
    /// The bytes that a table of the lowest level maps, and some tables above it.
    const TABLE_BYTES: u64 = 512 * PAGE;
    const ABOVE: u64 = 8;
    let left = MAX_TABLES - state.table_count.load(Ordering::Relaxed).min(MAX_TABLES);
    let upper = len_bytes / (512 * TABLE_BYTES);
    len_bytes / TABLE_BYTES + upper + ABOVE <= u64::from(left)
}

/// The address in this process that an entry points to.
fn process_address(state: &State, entry: u64) -> u64 {
    let address = entry & FRAME;
    let index = (address >> CHUNK_BITS) as usize - 1;
    let piece = state
        .chunks
        .get(index)
        .map_or(0, |chunk| chunk.load(Ordering::Relaxed));
    u64::from(piece) << CHUNK_BITS | address & ((1 << CHUNK_BITS) - 1)
}

/// The entry of a page; missing tables are created if `is_made`. `Err` is the number of bytes that the missing table
/// would map.
fn entry(state: &State, address: u64, is_made: bool) -> Result<&AtomicU64, u64> {
    let mut table = state.base() + TABLES;
    for level in (1..4).rev() {
        let shift = 12 + 9 * level;
        let slot = slot(table, address, shift);
        let mut value = slot.load(Ordering::Relaxed);
        if value & PRESENT == 0 {
            if !is_made {
                return Err(1 << shift);
            }
            value = new_table(state).ok_or(0_u64)? | PRESENT | WRITABLE | USER | USED;
            slot.store(value, Ordering::Release);
        }
        table = process_address(state, value);
    }
    Ok(slot(table, address, 12))
}

fn slot<'a>(table: u64, address: u64, shift: u32) -> &'a AtomicU64 {
    let place = table + 8 * (address >> shift & 511);
    // SAFETY: a table of the area, which lives as long as the process, and whose words are only used as atomics.
    unsafe { AtomicU64::from_ptr(pointer(place)) }
}

/// Maps a page of the monitor in the machine.
pub(super) fn show(
    state: &State,
    address: u64,
    is_user: bool,
    is_writable: bool,
    is_code: bool,
) -> bool {
    let mut bits = PRESENT | USED;
    bits |= if is_user { USER } else { 0 };
    bits |= if is_writable { WRITABLE } else { 0 };
    bits |= if is_code { EXECUTABLE } else { NO_EXECUTE };
    state.locked(|| {
        let (Ok(entry), Some(at)) = (entry(state, address, true), physical(state, address)) else {
            return false;
        };
        entry.store(at | bits, Ordering::Release);
        true
    })
}

/// Maps a page of the guest to an address without memory.
pub(super) fn show_nothing(state: &State, address: u64, physical: u64) -> bool {
    state.locked(|| {
        let Ok(entry) = entry(state, address, true) else {
            return false;
        };
        entry.store(
            physical | PRESENT | WRITABLE | USER | USED | NO_EXECUTE,
            Ordering::Release,
        );
        true
    })
}

/// Resolves a fault at this address.
pub(super) fn resolve(state: &State, address: u64, error: u64) -> Result<(), Fault> {
    const POPULATE_READ: u64 = 22;
    const POPULATE_WRITE: u64 = 23;
    let page = address & !(PAGE - 1);
    if state.is_host(page, PAGE) {
        return Err(Fault::Signal(libc::SIGSEGV, SEGV_MAPERR));
    }
    let before = known(state, page.saturating_sub(PAGE));
    let is_executable = known(state, page) & EXECUTABLE != 0;
    let is_write = error & BY_WRITE != 0;
    let (advice, wanted) = match is_write {
        true => (POPULATE_WRITE, PRESENT | USER | WRITABLE),
        false => (POPULATE_READ, PRESENT | USER),
    };
    let populate = |len_bytes| own(libc::SYS_madvise, [page, len_bytes, advice, 0, 0, 0]);
    // Access is sequential if the page before has been used.
    let is_run = before & wanted == wanted && error & BY_FETCH == 0;
    if is_run && !state.is_host(page, RUN_BYTES) && populate(RUN_BYTES) == 0 {
        let mut pages = (page..page + RUN_BYTES).step_by(PAGE as usize);
        return pages.try_for_each(|page| show_guests(state, page, is_write));
    }
    match -populate(PAGE) as i32 {
        0 if error & BY_FETCH != 0 && !is_executable => {
            return Err(Fault::Signal(libc::SIGSEGV, SEGV_ACCERR));
        }
        0 => {}
        // A signal comes first, or another thread changes the mapping.
        libc::EINTR | libc::EAGAIN => return Ok(()),
        // A stack grows when it is used.
        libc::ENOMEM if call::is_readable(address) => return Ok(()),
        libc::ENOMEM => return Err(Fault::Signal(libc::SIGSEGV, SEGV_MAPERR)),
        libc::EFAULT => return Err(Fault::Signal(libc::SIGBUS, BUS_ADRERR)),
        _ => return Err(Fault::Signal(libc::SIGSEGV, SEGV_ACCERR)),
    }
    show_guests(state, page, is_write)
}

/// The entry of a page, or 0.
fn known(state: &State, page: u64) -> u64 {
    state.locked(|| entry(state, page, false).map_or(0, |entry| entry.load(Ordering::Relaxed)))
}

/// Shows the guest a page of its own, which has been populated.
fn show_guests(state: &State, page: u64, is_write: bool) -> Result<(), Fault> {
    state.locked(|| {
        let at = physical(state, page).ok_or(Fault::Exhausted)?;
        let entry = entry(state, page, true).map_err(|_| Fault::Exhausted)?;
        let value = entry.load(Ordering::Relaxed);
        if value & (PRESENT | WRITABLE) == PRESENT | WRITABLE && !is_write {
            return Ok(());
        }
        let mark = value & EXECUTABLE;
        let mut bits = PRESENT | USER | USED | mark;
        bits |= if mark == 0 { NO_EXECUTE } else { 0 };
        bits |= if is_write { WRITABLE } else { 0 };
        entry.store(at | bits, Ordering::Release);
        Ok(())
    })
}

/// Calls `change` with the entries of these bytes that have a table.
fn for_each(state: &State, address: u64, len_bytes: u64, change: impl Fn(&AtomicU64)) {
    let end = address.saturating_add(len_bytes).min(USER_END);
    let mut page = address & !(PAGE - 1);
    state.locked(|| {
        while page < end {
            match entry(state, page, false) {
                Ok(entry) => {
                    change(entry);
                    page += PAGE;
                }
                Err(missing) => page = (page & !(missing - 1)) + missing,
            }
        }
    });
}

/// Clears the entries of these bytes, which have a new mapping, and notes whether they are executable.
pub(super) fn remap(state: &State, address: u64, len_bytes: u64, is_executable: bool) -> bool {
    if state.is_host(address, len_bytes) {
        return true;
    }
    if !is_executable {
        for_each(state, address, len_bytes, |entry| {
            entry.store(0, Ordering::Release);
        });
        return true;
    }
    let mut page = address & !(PAGE - 1);
    let end = address + len_bytes;
    state.locked(|| {
        while page < end {
            let Ok(entry) = entry(state, page, true) else {
                return false;
            };
            entry.store(EXECUTABLE, Ordering::Release);
            page += PAGE;
        }
        true
    })
}

/// Whether this page may be executed.
pub(super) fn is_executable(state: &State, address: u64) -> bool {
    known(state, address & !(PAGE - 1)) & EXECUTABLE != 0
}

/// Clears all entries: the next use of each page queries the kernel again.
pub(super) fn forget_all(state: &State) {
    for_each(state, 0, USER_END, |entry| {
        let value = entry.load(Ordering::Relaxed);
        if !is_own(state, value) {
            entry.store(value & EXECUTABLE, Ordering::Release);
        }
    });
}

/// Whether an entry maps a page of the monitor, or the page without memory.
fn is_own(state: &State, entry: u64) -> bool {
    let is_present = entry & PRESENT != 0;
    let is_nothing = entry & FRAME < 1 << CHUNK_BITS;
    is_present && (is_nothing || state.is_host(process_address(state, entry), PAGE))
}
