//! The mappings of one address space of a guest: slots, the table of its threads, and areas.

use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex};

use tamis_kernel::memory;

use super::area::{self, Area, Numbers};
use super::dispatcher::{Channel, GuestAddresses, Slots, lock};
use super::inject::{Injection, NextStop, Refusal};
use super::sites::{AppliedPatch, Patch, Plan};
use super::slot::{RequestBytes, Slot};
use super::trampoline::{Places, Trampoline};
use crate::sys::shared::{Atomic, Shared};
use crate::sys::stub;

/// The most threads with a slot; the calls of others stop.
const SLOTS: usize = 1024;
const SLOTS_BYTES: u64 = (SLOTS * size_of::<Slot>()) as u64;
const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
const NO_FILE: u64 = u64::MAX;
/// Trampolines begin at multiples of this many bytes.
pub(super) const ALIGNMENT: usize = 16;

/// The mappings of one address space.
pub(super) struct Space {
    pub(super) slots: Arc<Slots>,
    /// The slots of calls in which this process or an ancestor was forked, with their initial contents. They are never
    /// assigned to a thread, nor in processes that this one forks: the end of such a call isn't visible.
    forked_in: Vec<(usize, RequestBytes)>,
    slots_at: u64,
    threads_at: u64,
    /// The FS base and number of the thread of each entry of the table of threads.
    entries: HashMap<usize, (u64, i32)>,
    areas: Vec<Area>,
    /// The patches of patched sites.
    patches: Vec<Patch>,
    pub(super) known: Arc<Mutex<GuestAddresses>>,
}

impl Space {
    /// Makes a task map its slots and its table of threads.
    pub(super) fn make(
        tid: i32,
        injection: &mut Injection<'_>,
        next: NextStop<'_>,
    ) -> Result<Space, Refusal> {
        let (slots, slots_at) = make_slots(tid, None, injection, next)?;
        let private = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let table_bytes = stub::TABLE_BYTES as u64;
        let args = [0, table_bytes, READ_WRITE, private, NO_FILE, 0];
        let threads_at = injection.call(libc::SYS_mmap, args, next)?;
        let advice = libc::MADV_WIPEONFORK as u64;
        let args = [threads_at, table_bytes, advice, 0, 0, 0];
        injection.call(libc::SYS_madvise, args, next)?;
        Ok(Space {
            slots: all_but(slots, &[]),
            forked_in: Vec::new(),
            slots_at,
            threads_at,
            entries: HashMap::new(),
            areas: Vec::new(),
            patches: Vec::new(),
            known: Arc::default(),
        })
    }

    /// The space of a process that a stopped task with this one has forked, whose table of threads is empty. It uses
    /// its parent's slots until it is [separated](Self::separate). The fork may be that of a signal handler that has
    /// interrupted a call.
    pub(super) fn forked<'a>(
        &self,
        tid: i32,
        channels: impl Iterator<Item = &'a Channel>,
    ) -> Space {
        let used = self.entries.iter();
        let used = used.filter(|(index, _)| self.is_in_use(tid, **index));
        let in_calls: HashSet<i32> = used.map(|(_, (_, thread))| *thread).collect();
        let here = channels.filter(|channel| Arc::ptr_eq(&channel.slots, &self.slots));
        let here = here.filter(|channel| in_calls.contains(&channel.tid));
        let in_calls = here.map(|channel| (channel.index, channel.slot().of_forked()));
        Space {
            slots: Arc::clone(&self.slots),
            forked_in: self.forked_in.iter().copied().chain(in_calls).collect(),
            slots_at: self.slots_at,
            threads_at: self.threads_at,
            entries: HashMap::new(),
            areas: self.areas.clone(),
            patches: self.patches.clone(),
            known: Arc::new(Mutex::new(lock(&self.known).clone())),
        }
    }

    /// Whether an entry marks a call as in progress, in the memory of this task.
    pub(super) fn is_in_use(&self, tid: i32, index: usize) -> bool {
        let mut in_use = [0; size_of::<u32>()];
        let place = self.entry_address(index) + stub::IN_USE as u64;
        memory::read(tid, place, &mut in_use) != Ok(in_use.len()) || in_use != [0; 4]
    }

    /// Makes a forked process that is about to run replace its parent's slots by slots of its own. If a signal handler
    /// of the parent has interrupted a call to fork, the child makes the call itself, unless it has an answer.
    pub(super) fn separate(
        &mut self,
        tid: i32,
        injection: &mut Injection<'_>,
        next: NextStop<'_>,
    ) -> Result<(), Refusal> {
        self.slots = match make_slots(tid, Some(self.slots_at), injection, next) {
            Ok((slots, _)) => all_but(slots, &self.forked_in),
            Err(Refusal::Lost(error)) => return Err(Refusal::Lost(error)),
            // Its calls stop, since it has no slots.
            Err(Refusal::Refused) => {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                let args = [
                    self.slots_at,
                    SLOTS_BYTES,
                    READ_WRITE,
                    flags as u64,
                    NO_FILE,
                    0,
                ];
                injection.call(libc::SYS_mmap, args, next)?;
                Arc::new(Slots {
                    memory: Arc::clone(&self.slots.memory),
                    free: Mutex::default(),
                })
            }
        };
        for (index, begin) in &self.forked_in {
            let written = memory::write(tid, self.slot_address(*index), begin);
            written.map_err(|_| Refusal::Refused)?;
        }
        Ok(())
    }

    pub(super) const fn slot_address(&self, index: usize) -> u64 {
        self.slots_at + (index * size_of::<Slot>()) as u64
    }

    /// The index of a thread's entry, if there is room for it.
    pub(super) fn entry(&mut self, tid: i32, known_by: u64) -> Option<usize> {
        let first = stub::entry_of(known_by);
        let mut window = first..first + stub::WINDOW;
        let own = |index: &usize| {
            self.entries
                .get(index)
                .is_some_and(|(known, _)| *known == known_by)
        };
        let index = window
            .clone()
            .find(own)
            .or_else(|| window.find(|index| !self.entries.contains_key(index)))?;
        self.entries.insert(index, (known_by, tid));
        Some(index)
    }

    pub(super) fn write_entry(
        &self,
        tid: i32,
        index: usize,
        known_by: u64,
        slot: u64,
        key: u64,
    ) -> Option<()> {
        let mut bytes = [0; stub::ENTRY_BYTES];
        bytes[..8].copy_from_slice(&known_by.to_le_bytes());
        bytes[8..16].copy_from_slice(&slot.to_le_bytes());
        bytes[24..32].copy_from_slice(&key.to_le_bytes());
        let written = memory::write(tid, self.entry_address(index), &bytes);
        written.ok().map(|_| ())
    }

    const fn entry_address(&self, index: usize) -> u64 {
        self.threads_at + (index * stub::ENTRY_BYTES) as u64
    }

    /// Releases the entries of a thread that has ended.
    pub(super) fn forget(&mut self, ended: i32) {
        self.entries.retain(|_, (_, tid)| *tid != ended);
    }

    /// The thread that has an FS base, as far as is known.
    pub(super) fn owner(&self, known_by: u64) -> Option<i32> {
        let mut owners = self.entries.values();
        owners
            .find(|(known, _)| *known == known_by)
            .map(|(_, tid)| *tid)
    }

    /// Whether an address is in an area.
    pub(super) fn has_code_at(&self, address: u64) -> bool {
        let known = lock(&self.known);
        let mut areas = known.areas.iter();
        areas.any(|area| (*area..area + area::LEN_BYTES as u64).contains(&address))
    }

    /// The area whose trampolines reach the code.
    pub(super) fn area_for(&self, code: &Range<u64>) -> Option<usize> {
        area::serving(&self.areas, code)
    }

    /// Makes a task map an area, and fills it.
    pub(super) fn add_area(
        &mut self,
        tid: i32,
        at: u64,
        numbers: &Numbers,
        injection: &mut Injection<'_>,
        next: NextStop<'_>,
    ) -> Result<(), Refusal> {
        map_code(at, area::LEN_BYTES as u64, injection, next)?;
        for (offset, bytes) in numbers.contents(self.threads_at) {
            let written = memory::overwrite(tid, at + offset as u64, &bytes);
            written.map_err(|_| Refusal::Refused)?;
        }
        self.areas.push(Area { start: at, used: 0 });
        lock(&self.known).areas.push(at);
        Ok(())
    }

    pub(super) const fn is_patched(&self) -> bool {
        !self.patches.is_empty()
    }

    /// Restores the patched sites, unless the guest has changed them. Threads in trampolines leave those by themselves.
    pub(super) fn roll_back(&mut self, tid: i32) {
        for one in self.patches.drain(..) {
            one.take_back(tid);
        }
    }

    /// Patches a site.
    pub(super) fn patch(&mut self, tid: i32, plan: &Plan) -> Option<AppliedPatch> {
        let index = self.area_for(&plan.mapping)?;
        let area = &mut self.areas[index];
        let start = plan.place().start;
        let places = Places {
            own: area.next(),
            numbers: area.start + area::NUMBERS as u64,
            window: start,
        };
        let trampoline = Trampoline::asking(&plan.window, &places, area.start)?;
        let resume = places.own + trampoline.resume as u64;
        let site = start + plan.window.before.len() as u64;
        lock(&self.known).sites.insert(resume as u32, site + 2);
        area.used += trampoline.code.len().next_multiple_of(ALIGNMENT);
        let put = plan.put(tid, &places, trampoline)?;
        self.patches.push(Patch::from_plan(plan, &put));
        Some(put)
    }
}

/// Slots that are all free except these.
fn all_but(memory: Shared<Slot>, taken: &[(usize, RequestBytes)]) -> Arc<Slots> {
    let is_free = |index: &usize| taken.iter().all(|(one, _)| one != index);
    Arc::new(Slots {
        memory: Arc::new(memory),
        free: Mutex::new((0..SLOTS).rev().filter(is_free).collect()),
    })
}

/// Makes a task map new slots, at this address or anywhere.
fn make_slots(
    tid: i32,
    at: Option<u64>,
    injection: &mut Injection<'_>,
    next: NextStop<'_>,
) -> Result<(Shared<Slot>, u64), Refusal> {
    let at = at.map(|at| (at, libc::MAP_FIXED));
    share(tid, SLOTS, at, injection, next)
}

/// Makes a task map an array that is shared with this process, anywhere or at an address with the flag for that;
/// returns its address.
pub(super) fn share<T: Atomic>(
    tid: i32,
    count: usize,
    at: Option<(u64, i32)>,
    injection: &mut Injection<'_>,
    next: NextStop<'_>,
) -> Result<(Shared<T>, u64), Refusal> {
    let name = injection.scratch();
    memory::write(tid, name, b"tamis\0").map_err(|_| Refusal::Refused)?;
    let flags = u64::from(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
    let fd = injection.call(libc::SYS_memfd_create, [name, flags, 0, 0, 0, 0], next)?;
    let shared = open(tid, fd, count);
    let (at, fixed) = at.unwrap_or_default();
    let flags = (libc::MAP_SHARED | fixed) as u64;
    let args = [
        at,
        (count * size_of::<T>()) as u64,
        READ_WRITE,
        flags,
        fd,
        0,
    ];
    let mapped = injection.call(libc::SYS_mmap, args, next);
    injection.call(libc::SYS_close, [fd, 0, 0, 0, 0, 0], next)?;
    Ok((shared?, mapped?))
}

/// The file of an array that a stopped task has just created.
fn open<T: Atomic>(tid: i32, fd: u64, count: usize) -> Result<Shared<T>, Refusal> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(format!("/proc/{tid}/fd/{fd}"));
    let file = file.map_err(|_| Refusal::Refused)?;
    Shared::new(&file, count).map_err(|_| Refusal::Refused)
}

/// Makes a task map memory for code at an unmapped address.
pub(super) fn map_code(
    at: u64,
    len_bytes: u64,
    injection: &mut Injection<'_>,
    next: NextStop<'_>,
) -> Result<(), Refusal> {
    let access = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let args = [at, len_bytes, access, flags as u64, NO_FILE, 0];
    match injection.call(libc::SYS_mmap, args, next)? == at {
        true => Ok(()),
        false => Err(Refusal::Refused),
    }
}
