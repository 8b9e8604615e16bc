//! The call sites that are due to be patched, and their replaced instructions.
//!
//! A site is due after some calls, and again much later if only the moment was unsuitable. The replaced instructions
//! are found in the text of its mapping, which is decoded once for all processes. The replacing code is made elsewhere.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use tamis_abi::{Arch, Nr, SeccompData, syscall};
use tamis_kernel::memory;
use tamis_kernel::tracee::{Stopped, TraceError};

use super::area::{self, Mapping};
use super::inject::{RIP, RSP, Words};
use super::site::{SYSCALL_BYTES, Text, Window};
use super::trampoline::{self, Places, Trampoline};

/// Calls of a site before it is patched: fewer calls cost less than patching.
const THRESHOLD: u32 = 8;
/// Calls between two attempts at patching, if only the moment was unsuitable.
const RETRY: u32 = 256;
/// The most texts that are kept.
const MAX_TEXTS: usize = 64;
/// The most sites that are kept.
const MAX_SITES: usize = 4096;
/// The largest mapping of code that is read, in bytes.
const MAX_TEXT_BYTES: u64 = 64 << 20;
/// The bytes of a stack that are searched for addresses of a site.
const STACK_BYTES: usize = 64 << 10;

/// The sites of a guest's calls.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// The number of stops of each site's calls, by the address after it.
    stops: HashMap<u64, u32>,
    refused: HashSet<u64>,
    texts: HashMap<(String, u64), Rc<Text>>,
}

/// Whether calls with this number return once, and to the address of the call.
pub(super) fn returns_once(nr: u32) -> bool {
    const LEFT_ALONE: [&str; 6] = [
        "clone",
        "clone3",
        "fork",
        "vfork",
        "rt_sigreturn",
        "restart_syscall",
    ];
    let name = syscall::name(Arch::X86_64, Nr(nr)).unwrap_or_default();
    !LEFT_ALONE.contains(&name)
}

impl Sites {
    /// Counts a call that has stopped; returns whether its site is due.
    pub(super) fn is_due(&mut self, call: &SeccompData) -> bool {
        if call.arch != Arch::X86_64.audit() || !returns_once(call.nr) {
            return false;
        }
        if self.stops.len() >= MAX_SITES {
            self.stops.clear();
            self.refused.clear();
        }
        let count = self.stops.entry(call.ip).or_default();
        *count = count.wrapping_add(1);
        (*count == THRESHOLD || count.is_multiple_of(RETRY)) && !self.refused.contains(&call.ip)
    }

    /// Excludes the site of a call, which can't be patched.
    pub(super) fn refuse(&mut self, call: &SeccompData) {
        self.refused.insert(call.ip);
    }

    /// The plan for patching the site of a call.
    pub(super) fn plan(&mut self, tid: i32, call: &SeccompData) -> Option<Plan> {
        let site = site_of(call);
        let all = area::mappings(tid)?;
        let mapping = all.iter().find(|one| one.range.contains(&site))?;
        let range = mapping.range.clone();
        let len_bytes = range.end - range.start;
        if !mapping.is_file || mapping.access != "r-xp" || len_bytes > MAX_TEXT_BYTES {
            return None;
        }
        let key = (mapping.source.clone(), len_bytes);
        let text = match self.texts.get(&key) {
            Some(text) => Rc::clone(text),
            None => {
                let mut bytes = vec![0; len_bytes as usize];
                let read = memory::read(tid, range.start, &mut bytes).ok()?;
                bytes.truncate(read);
                let text = Rc::new(Text::new(bytes));
                if self.texts.len() >= MAX_TEXTS {
                    self.texts.clear();
                }
                self.texts.insert(key, Rc::clone(&text));
                text
            }
        };
        let window = text.window((site - range.start) as u32)?;
        Some(Plan {
            mapping: range,
            expected: text.bytes_of(&window).to_vec(),
            window,
            all,
        })
    }
}

/// The address of the `syscall` that makes a call.
pub(super) const fn site_of(call: &SeccompData) -> u64 {
    call.ip.wrapping_sub(SYSCALL_BYTES as u64)
}

/// A site and its replaced instructions.
pub(super) struct Plan {
    pub(super) mapping: Range<u64>,
    all: Vec<Mapping>,
    pub(super) window: Window,
    /// The bytes that are expected there.
    pub(super) expected: Vec<u8>,
}

impl Plan {
    /// The addresses of the replaced instructions.
    pub(super) fn place(&self) -> Range<u64> {
        let start = self.mapping.start + u64::from(self.window.start);
        start..start + self.window.len_bytes() as u64
    }

    /// An address for an area in a task that reaches the site.
    pub(super) fn place_of_area(&self, tid: i32) -> Option<u64> {
        // Mappings that were made meanwhile are missing in the list.
        match area::mappings(tid) {
            Some(all) => area::place(&all, &self.mapping),
            None => area::place(&self.all, &self.mapping),
        }
    }

    /// The addresses between its instructions.
    fn boundaries(&self) -> impl Iterator<Item = u64> {
        let start = self.place().start;
        let offsets = self.window.boundaries.iter();
        offsets.map(move |offset| start + *offset as u64)
    }

    /// Whether the replaced instructions are unchanged, and no stopped thread is within them.
    pub(super) fn is_free(
        &self,
        stopped: &Stopped,
        others: &[Stopped],
    ) -> Result<bool, TraceError> {
        let mut found = vec![0; self.expected.len()];
        let read = memory::read(stopped.tracee().tid(), self.place().start, &mut found);
        if read != Ok(found.len()) || found != self.expected {
            return Ok(false);
        }
        for one in others.iter().chain([stopped]) {
            if !self.is_clear(one)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a thread is at a boundary between instructions, and has no address between the replaced ones on its
    /// stack, to which a signal handler would return.
    fn is_clear(&self, stopped: &Stopped) -> Result<bool, TraceError> {
        let Some(words) = Words::read(stopped)? else {
            return Ok(false);
        };
        let place = self.place();
        let ip = words.0[RIP];
        let is_inside = ip > place.start && ip < place.end;
        if is_inside && !self.boundaries().any(|boundary| boundary == ip) {
            return Ok(false);
        }
        let mut stack = vec![0; STACK_BYTES];
        let from = words.0[RSP] & !7;
        let read = memory::read(stopped.tracee().tid(), from, &mut stack).unwrap_or(0);
        let mut words = stack[..read].chunks_exact(size_of::<u64>());
        let is_found = words.any(|word| {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            word > place.start && word < place.end
        });
        Ok(!is_found)
    }

    /// Writes a trampoline and the jump to it.
    pub(super) fn put(
        &self,
        tid: i32,
        places: &Places,
        trampoline: Trampoline,
    ) -> Option<AppliedPatch> {
        let patch = trampoline::patch(&self.window, places)?;
        memory::overwrite(tid, places.own, &trampoline.code).ok()?;
        memory::overwrite(tid, places.window, &patch).ok()?;
        Some(AppliedPatch {
            window: self.window.clone(),
            start: places.window,
            own: places.own,
            trampoline,
            patch,
        })
    }
}

/// A patched site.
#[derive(Debug)]
pub(super) struct AppliedPatch {
    window: Window,
    start: u64,
    own: u64,
    pub(super) trampoline: Trampoline,
    patch: Vec<u8>,
}

impl AppliedPatch {
    /// Moves stopped threads that are between the replaced instructions to the trampoline.
    pub(super) fn move_threads<'s>(
        &self,
        threads: impl IntoIterator<Item = &'s Stopped>,
    ) -> Result<(), TraceError> {
        for one in threads {
            if let Some(mut words) = Words::read(one)?
                && let Some(ip) = self.moved(words.0[RIP])
            {
                words.0[RIP] = ip;
                words.set(one)?;
            }
        }
        Ok(())
    }

    fn moved(&self, ip: u64) -> Option<u64> {
        let offset = ip.checked_sub(self.start)? as usize;
        // An interrupted call is restarted two bytes before the next instruction.
        let behind_call = self.window.before.len() + SYSCALL_BYTES;
        let is_moved = self.window.boundaries.contains(&offset) || offset == behind_call;
        is_moved.then(|| self.own + self.trampoline.moved(&self.window, offset) as u64)
    }
}

/// The bytes that were written at a site.
#[derive(Clone, Debug)]
pub(super) struct Patch {
    start: u64,
    former: Vec<u8>,
    patch: Vec<u8>,
}

impl Patch {
    pub(super) fn from_plan(plan: &Plan, put: &AppliedPatch) -> Patch {
        Patch {
            start: put.start,
            former: plan.expected.clone(),
            patch: put.patch.clone(),
        }
    }

    /// Restores the former bytes, unless the guest has changed the site.
    pub(super) fn take_back(&self, tid: i32) {
        let mut found = vec![0; self.patch.len()];
        let read = memory::read(tid, self.start, &mut found);
        if read == Ok(found.len()) && found == self.patch {
            // If the bytes can't be written, the guest has unmapped them meanwhile.
            let _ = memory::overwrite(tid, self.start, &self.former[..found.len()]);
        }
    }
}
