//! From a program's execution to its first instruction in a machine.
//!
//! The kernel executes programs, so interpreters, descriptors, the stack and the process's name are the native ones.
//! The memory that a program begins with contains no part of the monitor. The [tracer](crate::kvm) maps the monitor's
//! code and an area there, writes the beginning of the area, and continues the task here.

use std::arch::x86_64::{__cpuid_count, _xgetbv};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use tamis_kernel::Errno;
use tamis_kernel::spawn::Body;

use super::area::{
    Area, CODE_FD, Exit, KVM_FD, MAX_VCPUS, OWN_FDS, PAGE, PLACE_FD, STACK_BYTES, STACKS, State,
    pointer, state_at,
};
use super::call::{self, own};
use super::vcpu::{Entry, Vcpu};
use super::{descriptors, machine, shim, signals, tables};
use crate::sys::image::Snapshot;
use crate::sys::mappings::{Mapping, each_of};

/// The resources for machines whose guests are programs that this process has started.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) kvm: BorrowedFd<'a>,
    /// A descriptor without any access, which reserves numbers.
    pub(crate) place: BorrowedFd<'a>,
    pub(crate) exit: Exit,
    pub(crate) code: Snapshot,
    /// The first of the monitor's descriptors.
    pub(crate) first_fd: i32,
    /// The guest's first process, or 0 before it has executed its program.
    pub(crate) first: AtomicI32,
    /// The error that has ended the machine of that process, or 0.
    pub(crate) failure: AtomicI32,
}

impl Body for Machine<'_> {
    fn prepare(&self) -> Result<(), Errno> {
        const GET: libc::c_ulong = 0xffff_ffff;
        // Without randomisation, a program's addresses would conflict with the monitor's code.
        // SAFETY: takes numbers only.
        unsafe {
            let persona = libc::personality(GET);
            libc::personality((persona & !libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        }
        Ok(())
    }

    /// Moves the descriptors that programs begin with to their numbers.
    fn run(&self) -> Option<Errno> {
        match own(libc::SYS_unshare, [libc::CLONE_FILES as u64, 0, 0, 0, 0, 0]) {
            0 => {}
            error => return Some(Errno(-error as i32)),
        }
        let code = (self.code.as_fd(), CODE_FD);
        let places = [(self.kvm, KVM_FD), code, (self.place, PLACE_FD)];
        let mut problems = places.into_iter().filter_map(|(fd, index)| {
            let wanted = u64::from((self.first_fd + index) as u32);
            // A descriptor at this number would be closed by `execve`.
            own(libc::SYS_close, [wanted, 0, 0, 0, 0, 0]);
            let args = [fd.as_raw_fd() as u64, libc::F_DUPFD as u64, wanted, 0, 0, 0];
            match own(libc::SYS_fcntl, args) {
                moved if moved == wanted as i64 => None,
                error @ ..0 => Some(Errno(-error as i32)),
                _ => Some(Errno(libc::EMFILE)),
            }
        });
        problems.next()
    }
}

impl Machine<'_> {
    /// The number of the file with the monitor's code in processes of the guest.
    pub(crate) const fn code_fd(&self) -> i32 {
        self.first_fd + CODE_FD
    }
}

/// A program that has been executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executed<'a> {
    /// Its entry and stack.
    pub(crate) entry: u64,
    pub(crate) stack: u64,
    /// The signals that it begins with as blocked and as ignored.
    pub(crate) mask: u64,
    pub(crate) ignored: u64,
    /// Its memory, in the kernel's list.
    pub(crate) maps: &'a [u8],
}

/// The initial bytes of a monitor's area with their address, and the address and stack at which the task continues.
#[derive(Debug)]
pub(crate) struct InitialState {
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) ip: u64,
    pub(crate) stack: u64,
}

impl InitialState {
    /// The beginning for a program, in an area at this address.
    pub(crate) fn new(
        machine: &Machine<'_>,
        program: &Executed<'_>,
        area: Range<u64>,
    ) -> Result<InitialState, Errno> {
        let own_area = Area::new()?;
        // SAFETY: mapped as long as the area lives, zeros are a value, and all of it is atomic.
        let state = unsafe { &*own_area.state() };
        state.exit.store(machine.exit as u32, Ordering::Relaxed);
        state.first_fd.store(machine.first_fd, Ordering::Relaxed);
        let kvm = machine.first_fd + KVM_FD;
        state.kvm_fd.store(kvm, Ordering::Relaxed);
        state.entry.store(program.entry, Ordering::Relaxed);
        state.stack.store(program.stack, Ordering::Relaxed);
        state.mask.store(program.mask, Ordering::Relaxed);
        signals::note_ignored(state, program.ignored);
        note_memory(state, machine, program.maps, area.clone())?;
        let at = state_at(area.start);
        let len_bytes = size_of::<State>();
        // SAFETY: of the area above, which no other code uses.
        let bytes = unsafe { std::slice::from_raw_parts(own_area.state().cast::<u8>(), len_bytes) };
        Ok(InitialState {
            at,
            bytes: bytes.to_vec(),
            ip: begin as *const () as u64,
            // As after a call.
            stack: at + STACKS + STACK_BYTES - 8,
        })
    }
}

/// Notes the host's part of a program's memory, and its executable part.
fn note_memory(
    state: &State,
    machine: &Machine<'_>,
    maps: &[u8],
    area: Range<u64>,
) -> Result<(), Errno> {
    let parts = machine.code.parts().iter().map(|part| part.range.clone());
    let hosts: Vec<Range<u64>> = parts.chain([area]).collect();
    let is_noted = hosts
        .iter()
        .all(|range| state.hosts.add(range.start, range.end));
    is_noted.then_some(()).ok_or(Errno(libc::ENOMEM))?;
    each_of(maps, &mut |mapping| {
        let Mapping { first, after, .. } = *mapping;
        let is_noted = match mapping.is_kernels {
            true => state.hosts.add(first, after),
            false if mapping.is_code && !state.is_host(first, after - first) => {
                state.codes.add(first, after)
            }
            false => true,
        };
        is_noted.then_some(()).ok_or(Errno(libc::ENOMEM))
    })
}

/// The first function of a monitor, with an address in the stack of its first thread.
extern "sysv64" fn begin(on_stack: u64) -> ! {
    let stack = Vcpu::place(on_stack).addr() as u64;
    // SAFETY: the tracer has mapped it, and has written its beginning.
    let state = unsafe { &*pointer::<State>(stack - STACKS) };
    match make(state) {
        Ok(end) => call::start(end),
        Err(errno) => state.fail(errno),
    }
}

/// Creates the machine and its first thread; returns the end of that thread's stack.
fn make(state: &State) -> Result<u64, Errno> {
    const FIRST: usize = 0;
    const NO_MEMORY: Errno = Errno(libc::ENOMEM);
    signals::begin();
    set_vector_sizes(state);
    state
        .run_bytes
        .store(machine::shared_bytes(state)?, Ordering::Relaxed);
    machine::read_cpuid(state)?;
    machine::create(state)?;
    shim::write(state, Exit::from_number(state.exit.load(Ordering::Relaxed)));
    tables::root(state).ok_or(NO_MEMORY)?;
    show_pages(state).ok_or(NO_MEMORY)?;
    for (first, after) in state.codes.iter() {
        let is_done = tables::remap(state, first, after - first, true);
        is_done.then_some(()).ok_or(NO_MEMORY)?;
    }
    state.in_use[FIRST].store(1, Ordering::Relaxed);
    let vcpu = Vcpu::at(state.stack_of(FIRST));
    vcpu.state = std::ptr::from_ref(state);
    vcpu.fd = machine::create_vcpu(state, FIRST)?;
    descriptors::occupy(state)?;
    vcpu.entry = Entry::New;
    vcpu.registers.rip = state.entry.load(Ordering::Relaxed);
    vcpu.registers.rsp = state.stack.load(Ordering::Relaxed);
    vcpu.registers.rflags = 0x202;
    vcpu.signal_stack = [0, 0, u64::from(libc::SS_DISABLE as u32)];
    vcpu.mask = state.mask.load(Ordering::Relaxed);
    Ok(vcpu.stack_end())
}

/// The signals that a monitor begins with as blocked: all that it doesn't need itself.
pub(crate) const BLOCKED: u64 = !signals::OWN;

/// Maps the monitor's pages in the machine.
fn show_pages(state: &State) -> Option<()> {
    let is_user = true;
    let mut is_done = tables::show(state, state.shim(), is_user, false, true);
    is_done &= tables::show(state, state.idt(), !is_user, false, false);
    is_done &= tables::show_nothing(state, shim::no_memory(state), shim::NO_MEMORY);
    for index in 0..MAX_VCPUS {
        let pages = state.vcpu_pages(index);
        is_done &= tables::show(state, pages, !is_user, true, false);
        is_done &= tables::show(state, pages + PAGE, is_user, true, false);
    }
    is_done.then_some(())
}

/// Returns the first of the monitor's descriptors, which are the last numbers that every process may have, without
/// inherited ones if possible.
pub(crate) fn first_fd() -> Result<i32, Errno> {
    const USUAL: u64 = 1024;
    const LEAST: u64 = 64;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let end = limit.rlim_cur.min(USUAL);
    let mut free = 0;
    for fd in (LEAST..end).rev() {
        // SAFETY: takes numbers only.
        let flags = unsafe { libc::fcntl(fd as i32, libc::F_GETFD) };
        let is_inherited = flags >= 0 && flags & libc::FD_CLOEXEC == 0;
        free = if is_inherited { 0 } else { free + 1 };
        if free == OWN_FDS {
            return Ok(fd as i32);
        }
    }
    // Otherwise the program may lose inherited descriptors.
    match end.checked_sub(OWN_FDS) {
        Some(first @ LEAST..) => Ok(first as i32),
        _ => Err(Errno(libc::EMFILE)),
    }
}

/// Sets the vector registers of a guest: those of the host that fit into KVM's classic form.
fn set_vector_sizes(state: &State) {
    /// x87, SSE, AVX, AVX-512 and PKRU.
    const KNOWN: u64 = 0x2e7;
    const LEGACY_BYTES: u64 = 576;
    const LEAF: u32 = 0xd;
    // SAFETY: all processors that run 64-bit guests have these instructions, and the kernel has enabled the second.
    let xcr0 = unsafe { _xgetbv(0) } & KNOWN;
    let mut size = LEGACY_BYTES;
    for component in (2..10).filter(|bit| xcr0 & 1 << bit != 0) {
        let found = __cpuid_count(LEAF, component);
        size = size.max(u64::from(found.ebx) + u64::from(found.eax));
    }
    state.xcr0.store(xcr0, Ordering::Relaxed);
    state
        .xsave_bytes
        .store(size.next_multiple_of(64), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_hosts_is_found_at_its_edges() {
        let area = Area::new().unwrap();
        // SAFETY: mapped, and of zeros.
        let state = unsafe { &*area.state() };
        for (first, after) in [(0x1000, 0x3000), (0x3000, 0x4000), (0x8000, 0x9000)] {
            assert!(state.hosts.add(first, after));
        }
        for (address, len_bytes, expected) in [
            (0, 0x1000, false),
            (0, 0x1001, true),
            (0x3fff, 1, true),
            (0x4000, 0x4000, false),
            (0x4000, 0x5000, true),
            (0x9000, 1, false),
            (u64::MAX, 2, true),
            (tables::USER_END, 1, true),
        ] {
            assert_eq!(state.is_host(address, len_bytes), expected, "{address:#x}");
        }
    }
}
