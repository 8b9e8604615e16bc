//! From the fork to the guest's first instruction.

use std::arch::x86_64::{__cpuid_count, _xgetbv};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::Ordering;

use tamis_kernel::Errno;
use tamis_kernel::spawn::Body;

use super::area::{Area, Exit, MAX_VCPUS, OWN_FDS, PAGE, State};
use super::call::{self, own};
use super::vcpu::{Entry, Vcpu};
use super::{machine, shim, signals, tables};
use crate::in_process::Program;
use crate::sys::guest::{self, SharedReport};
use crate::sys::load::load;
use crate::sys::mappings::{Mapping, for_each_mapping};

/// A program, and what its machine takes.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) area: Area,
    pub(crate) program: &'a Program,
    pub(crate) kvm: BorrowedFd<'a>,
    pub(crate) exit: Exit,
    pub(crate) last_fd: i32,
    /// The error that has ended a machine.
    pub(crate) report: SharedReport,
}

impl Body for Machine<'_> {
    fn prepare(&self) -> Result<(), Errno> {
        let state = self.state();
        state.kvm_fd.store(self.kvm.as_raw_fd(), Ordering::Relaxed);
        let report = ptr::from_ref(self.report.get());
        state.report.store(report.addr() as u64, Ordering::Relaxed);
        state.first_fd.store(first_fd()?, Ordering::Relaxed);
        set_vector_sizes(state);
        begin_heap(state)?;
        self.note_host()?;
        let (entry, stack) = load(self.program, false)?;
        state.entry.store(entry, Ordering::Relaxed);
        state.stack.store(stack, Ordering::Relaxed);
        note_code(state)?;
        guest::remove_handlers()?;
        signals::begin();
        Ok(())
    }

    fn run(&self) -> Errno {
        match self.begin() {
            Ok(end) => call::start(end),
            Err(errno) => errno,
        }
    }
}

impl Machine<'_> {
    fn state(&self) -> &State {
        // SAFETY: mapped as long as `self` lives, zeros are a value, and all of it is atomic or written once.
        unsafe { &*self.area.state() }
    }

    /// Makes the machine and its first thread; the end of that thread's stack.
    fn begin(&self) -> Result<u64, Errno> {
        const FIRST: usize = 0;
        const NO_MEMORY: Errno = Errno(libc::ENOMEM);
        let state = self.state();
        match own(libc::SYS_unshare, [libc::CLONE_FILES as u64, 0, 0, 0, 0, 0]) {
            0 => {}
            error => return Err(Errno(-error as i32)),
        }
        self.close_on_exec();
        let kvm = i64::from(self.kvm.as_raw_fd());
        state
            .kvm_fd
            .store(machine::move_fd(state, kvm, 0)?, Ordering::Relaxed);
        state
            .run_bytes
            .store(machine::shared_bytes(state)?, Ordering::Relaxed);
        machine::read_cpuid(state)?;
        machine::create(state)?;
        shim::write(state, self.exit);
        tables::root(state).ok_or(NO_MEMORY)?;
        show_pages(state).ok_or(NO_MEMORY)?;
        for (first, after) in state.codes.iter() {
            let is_done = tables::remap(state, first, after - first, true);
            is_done.then_some(()).ok_or(NO_MEMORY)?;
        }
        state.in_use[FIRST].store(1, Ordering::Relaxed);
        let vcpu = Vcpu::at(state.stack_of(FIRST));
        vcpu.state = ptr::from_ref(state);
        vcpu.fd = machine::create_vcpu(state, FIRST)?;
        vcpu.is_first = true;
        vcpu.entry = Entry::New;
        vcpu.registers.rip = state.entry.load(Ordering::Relaxed);
        vcpu.registers.rsp = state.stack.load(Ordering::Relaxed);
        vcpu.registers.rflags = 0x202;
        vcpu.signal_stack = [0, 0, u64::from(libc::SS_DISABLE as u32)];
        vcpu.mask = signals::block_all();
        Ok(vcpu.stack_end())
    }

    /// Notes what there is: none of it is the guest's.
    fn note_host(&self) -> Result<(), Errno> {
        let state = self.state();
        let area = self.area.range();
        let report = ptr::from_ref(self.report.get()).addr() as u64;
        let mut end_of_image = 0;
        for_each_mapping(&mut |mapping| {
            let Mapping { first, after, .. } = *mapping;
            let is_kept = first == report || mapping.is_kernels;
            // Behind a file's variables are those that begin as zeros.
            let is_image = mapping.has_file && !mapping.is_shared || first == end_of_image;
            end_of_image = if mapping.has_file { after } else { 0 };
            let is_noted = match (is_kept || is_image, mapping.is_shared) {
                (true, _) => state.hosts.add(first, after),
                // The guest may get these addresses later.
                (false, true) => state.shared.add(first, after),
                // The area may be one mapping with what is beside it.
                (false, false) => {
                    let parts = [(first, after.min(area.start)), (first.max(area.end), after)];
                    let mut parts = parts.into_iter().filter(|(first, after)| first < after);
                    parts.all(|(first, after)| state.private.add(first, after))
                        && state.hosts.add(first, after)
                }
            };
            is_noted.then_some(()).ok_or(Errno(libc::ENOMEM))
        })
    }

    /// Closes what `execve` would, but for KVM.
    fn close_on_exec(&self) {
        for fd in 0..=self.last_fd {
            let flags = own(
                libc::SYS_fcntl,
                [fd as u64, libc::F_GETFD as u64, 0, 0, 0, 0],
            );
            let is_closed = flags >= 0 && flags & i64::from(libc::FD_CLOEXEC) != 0;
            if is_closed && fd != self.kvm.as_raw_fd() {
                own(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0]);
            }
        }
    }
}

/// Shows the machine what is the monitor's in it.
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

/// The monitor's descriptors are the last that every process may have.
fn first_fd() -> Result<i32, Errno> {
    const USUAL: u64 = 1024;
    const LEAST: u64 = 64;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    match limit.rlim_cur.min(USUAL).checked_sub(OWN_FDS) {
        Some(first @ LEAST..) => Ok(first as i32),
        _ => Err(Errno(libc::EMFILE)),
    }
}

/// Which vector registers a guest has: those of the host that fit into KVM's classic form.
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

/// The guest's heap begins at the first page after the host's.
fn begin_heap(state: &State) -> Result<(), Errno> {
    // SAFETY: takes a number; the host's heap grows by less than a page.
    let at = |end: u64| unsafe { libc::syscall(libc::SYS_brk, end) } as u64;
    let first = at(0).next_multiple_of(PAGE);
    if at(first) != first {
        return Err(Errno(libc::ENOMEM));
    }
    state.heap.store(first, Ordering::Relaxed);
    state.heap_end.store(first, Ordering::Relaxed);
    Ok(())
}

/// Notes which of the guest's memory may be executed.
fn note_code(state: &State) -> Result<(), Errno> {
    for_each_mapping(&mut |mapping| {
        let Mapping { first, after, .. } = *mapping;
        if !mapping.is_code || state.is_host(first, after - first) {
            return Ok(());
        }
        let is_noted = state.codes.add(first, after);
        is_noted.then_some(()).ok_or(Errno(libc::ENOMEM))
    })
}

/// Forgets the supervisor's memory, of which the process has a copy, and leaves what both share. Nothing of the process
/// but its code, and the variables of that, is used any more.
pub(super) fn leave_supervisor(state: &State) {
    for (first, after) in state.private.iter() {
        let args = [first, after - first, libc::MADV_DONTNEED as u64, 0, 0, 0];
        own(libc::SYS_madvise, args);
    }
    for (first, after) in state.shared.iter() {
        own(libc::SYS_munmap, [first, after - first, 0, 0, 0, 0]);
    }
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
