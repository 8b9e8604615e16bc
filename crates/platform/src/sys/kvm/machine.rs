//! Requests to KVM, by the monitor's own calls.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::Ordering;

use kvm_bindings::{
    KVM_CAP_NR_MEMSLOTS, KVM_CAP_SYNC_REGS, KVM_CAP_USER_MEMORY, KVM_SYNC_X86_REGS, kvm_regs,
    kvm_segment, kvm_sregs, kvm_userspace_memory_region, kvm_xcrs,
};
use tamis_kernel::Errno;

use super::area::{RUN_BYTES, State};
use super::call::own;
use super::{descriptors, shim, tables};

const KVM_GET_API_VERSION: u64 = 0xae00;
const KVM_CREATE_VM: u64 = 0xae01;
const KVM_CHECK_EXTENSION: u64 = 0xae03;
const KVM_GET_VCPU_MMAP_SIZE: u64 = 0xae04;
const KVM_GET_SUPPORTED_CPUID: u64 = 0xc008_ae05;
const KVM_CREATE_VCPU: u64 = 0xae41;
const KVM_SET_USER_MEMORY_REGION: u64 = 0x4020_ae46;
const KVM_SET_TSS_ADDR: u64 = 0xae47;
const KVM_SET_IDENTITY_MAP_ADDR: u64 = 0x4008_ae48;
/// Runs a thread.
pub(super) const KVM_RUN: u64 = 0xae80;
const KVM_SET_REGS: u64 = 0x4090_ae82;
const KVM_GET_SREGS: u64 = 0x8138_ae83;
const KVM_SET_SREGS: u64 = 0x4138_ae84;
const KVM_SET_MSRS: u64 = 0x4008_ae89;
const KVM_SET_CPUID2: u64 = 0x4008_ae90;
const KVM_GET_XSAVE: u64 = 0x9000_aea4;
const KVM_SET_XSAVE: u64 = 0x5000_aea5;
const KVM_SET_XCRS: u64 = 0x4188_aea7;

/// The access of mappings that KVM shares with the monitor.
pub(crate) const SHARED_ACCESS: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
/// The flags of these mappings.
pub(crate) const SHARED_FLAGS: u64 = (libc::MAP_SHARED | libc::MAP_FIXED) as u64;

const INTERRUPTED: i64 = -(libc::EINTR as i64);

/// A feature that this KVM lacks, if there is one.
pub(crate) fn missing(kvm: BorrowedFd<'_>) -> Result<Option<&'static str>, Errno> {
    const VERSION: i32 = 12;
    let request = |request: u64, arg: u32| {
        // SAFETY: these requests take numbers.
        match unsafe {
            libc::ioctl(
                kvm.as_raw_fd(),
                request as libc::Ioctl,
                libc::c_ulong::from(arg),
            )
        } {
            -1 => Err(Errno::last()),
            value => Ok(value),
        }
    };
    if request(KVM_GET_API_VERSION, 0)? != VERSION {
        return Ok(Some("its interface is not version 12"));
    }
    if request(KVM_CHECK_EXTENSION, KVM_CAP_USER_MEMORY)? == 0
        || request(KVM_CHECK_EXTENSION, KVM_CAP_NR_MEMSLOTS)? < 64
    {
        return Ok(Some("it takes too few pieces of memory"));
    }
    if request(KVM_CHECK_EXTENSION, KVM_CAP_SYNC_REGS)? as u32 & KVM_SYNC_X86_REGS == 0 {
        return Ok(Some("it doesn't share registers"));
    }
    if request(KVM_GET_VCPU_MMAP_SIZE, 0)? as u64 > RUN_BYTES {
        return Ok(Some("what it shares is larger than is known"));
    }
    Ok(None)
}

/// A request; a negative error number if it fails. Job control interrupts requests that create objects.
pub(super) fn request(fd: i32, request: u64, arg: u64) -> i64 {
    loop {
        match own(libc::SYS_ioctl, [fd as u64, request, arg, 0, 0, 0]) {
            INTERRUPTED => {}
            result => return result,
        }
    }
}

pub(super) fn errno(result: i64) -> Result<i64, Errno> {
    match result {
        0.. => Ok(result),
        error => Err(Errno(-error as i32)),
    }
}

/// Creates the machine, without memory and threads.
pub(super) fn create(state: &State) -> Result<(), Errno> {
    const TASK_STATE: u64 = 0x10_0000;
    const IDENTITY_MAP: u64 = 0x20_0000;
    let kvm = state.kvm_fd.load(Ordering::Relaxed);
    let vm = descriptors::put_machine(state, || errno(request(kvm, KVM_CREATE_VM, 0)))?;
    state.vm_fd.store(vm, Ordering::Relaxed);
    // Only some processors accept these.
    let map = IDENTITY_MAP;
    request(vm, KVM_SET_TSS_ADDR, TASK_STATE);
    request(vm, KVM_SET_IDENTITY_MAP_ADDR, (&raw const map) as u64);
    Ok(())
}

/// Adds memory to the machine.
pub(super) fn set_memory(state: &State, slot: u32, at: u64, len_bytes: u64, address: u64) -> bool {
    let region = kvm_userspace_memory_region {
        slot,
        flags: 0,
        guest_phys_addr: at,
        memory_size: len_bytes,
        userspace_addr: address,
    };
    let vm = state.vm_fd.load(Ordering::Relaxed);
    request(
        vm,
        KVM_SET_USER_MEMORY_REGION,
        ptr::from_ref(&region) as u64,
    ) >= 0
}

/// Reads the features that a machine can have.
pub(super) fn read_cpuid(state: &State) -> Result<(), Errno> {
    /// The number of entries that fit.
    const ENTRIES: u32 = 256;
    let place = state.cpuid.as_ptr();
    state.cpuid[0].store(ENTRIES, Ordering::Relaxed);
    let kvm = state.kvm_fd.load(Ordering::Relaxed);
    errno(request(kvm, KVM_GET_SUPPORTED_CPUID, place as u64)).map(|_| ())
}

/// Creates a thread of the machine, or sets up a thread after a failure; returns its descriptor.
pub(super) fn create_vcpu(state: &State, index: usize) -> Result<i32, Errno> {
    let vm = state.vm_fd.load(Ordering::Relaxed);
    let make = || errno(request(vm, KVM_CREATE_VCPU, index as u64));
    let fd = match state.vcpu_fds[index].load(Ordering::Acquire) {
        0 => descriptors::put_thread(state, index, make)?,
        made => -made,
    };
    prepare_vcpu(state, index, fd)?;
    state.vcpu_fds[index].store(fd, Ordering::Release);
    Ok(fd)
}

/// Sets up a new thread of the machine.
fn prepare_vcpu(state: &State, index: usize, fd: i32) -> Result<(), Errno> {
    let run_bytes = state.run_bytes.load(Ordering::Relaxed);
    let args = [
        state.run(index),
        run_bytes,
        SHARED_ACCESS,
        SHARED_FLAGS,
        fd as u64,
        0,
    ];
    errno(own(libc::SYS_mmap, args))?;
    errno(request(fd, KVM_SET_CPUID2, state.cpuid.as_ptr() as u64))?;
    let xcr0 = state.xcr0.load(Ordering::Relaxed);
    let mut xcrs = kvm_xcrs {
        nr_xcrs: 1,
        ..Default::default()
    };
    xcrs.xcrs[0].value = xcr0;
    errno(request(fd, KVM_SET_XCRS, ptr::from_ref(&xcrs) as u64))?;
    set_entries(state, fd)?;
    shim::write_task(state, index);
    Ok(())
}

/// Destroys the machine.
pub(super) fn destroy(state: &State) {
    let run_bytes = state.run_bytes.load(Ordering::Relaxed);
    for (index, fd) in state.vcpu_fds.iter().enumerate() {
        let fd = fd.swap(0, Ordering::Relaxed);
        if fd != 0 {
            own(libc::SYS_munmap, [state.run(index), run_bytes, 0, 0, 0, 0]);
            descriptors::close(i64::from(fd).abs());
        }
    }
    let vm = state.vm_fd.load(Ordering::Relaxed);
    descriptors::close(vm.into());
}

/// Sets the address at which calls enter the shim, and the flags that they clear.
fn set_entries(state: &State, fd: i32) -> Result<(), Errno> {
    const STAR: u32 = 0xc000_0081;
    const LSTAR: u32 = 0xc000_0082;
    const MASK: u32 = 0xc000_0084;
    const SELECTORS: u64 = 0x1b << 48 | 0x08 << 32;
    const CLEARED: u64 = 0x4_7700;
    /// `struct kvm_msrs` with as many entries.
    #[repr(C)]
    struct Registers {
        count: u32,
        padding: u32,
        entries: [Register; 3],
    }
    #[repr(C)]
    struct Register {
        index: u32,
        reserved: u32,
        value: u64,
    }
    let entry = |index, value| Register {
        index,
        reserved: 0,
        value,
    };
    let registers = Registers {
        count: 3,
        padding: 0,
        entries: [
            entry(STAR, SELECTORS),
            entry(LSTAR, state.shim()),
            entry(MASK, CLEARED),
        ],
    };
    match errno(request(fd, KVM_SET_MSRS, ptr::from_ref(&registers) as u64))? {
        3 => Ok(()),
        _ => Err(Errno(libc::EINVAL)),
    }
}

/// The system registers of a thread that has not run.
pub(super) fn set_system(
    state: &State,
    fd: i32,
    index: usize,
    fs_base: u64,
    gs_base: u64,
) -> Result<(), Errno> {
    const CR0: u64 = 0x8005_0033;
    const CR4: u64 = 1 << 5 | 1 << 9 | 1 << 10 | 1 << 16 | 1 << 18;
    const EFER: u64 = 0xd01;
    let mut system = get_system(fd)?;
    let code = kvm_segment {
        base: 0,
        limit: u32::MAX,
        selector: shim::CODE_SELECTOR,
        type_: 11,
        present: 1,
        dpl: 3,
        db: 0,
        s: 1,
        l: 1,
        g: 1,
        ..Default::default()
    };
    let data = kvm_segment {
        selector: shim::STACK_SELECTOR,
        type_: 3,
        db: 1,
        l: 0,
        ..code
    };
    system.cs = code;
    system.ss = data;
    system.ds = data;
    system.es = data;
    system.fs = kvm_segment {
        base: fs_base,
        ..data
    };
    system.gs = kvm_segment {
        base: gs_base,
        ..data
    };
    system.tr = kvm_segment {
        base: shim::task_state(state, index),
        limit: shim::TASK_BYTES as u32 - 1,
        selector: shim::TASK_SELECTOR,
        type_: 11,
        present: 1,
        ..Default::default()
    };
    system.ldt = kvm_segment {
        unusable: 1,
        ..Default::default()
    };
    system.gdt.base = state.vcpu_pages(index);
    system.gdt.limit = shim::GDT_BYTES as u16 - 1;
    system.idt.base = state.idt();
    system.idt.limit = shim::IDT_BYTES as u16 - 1;
    system.cr0 = CR0;
    system.cr3 = tables::root(state).ok_or(Errno(libc::ENOMEM))?;
    system.cr4 = CR4;
    system.efer = EFER;
    set_sregs(fd, &system)
}

pub(super) fn get_system(fd: i32) -> Result<kvm_sregs, Errno> {
    let mut system = kvm_sregs::default();
    errno(request(
        fd,
        KVM_GET_SREGS,
        ptr::from_mut(&mut system) as u64,
    ))
    .map(|_| system)
}

pub(super) fn set_sregs(fd: i32, system: &kvm_sregs) -> Result<(), Errno> {
    errno(request(fd, KVM_SET_SREGS, ptr::from_ref(system) as u64)).map(|_| ())
}

pub(super) fn set_registers(fd: i32, registers: &kvm_regs) -> Result<(), Errno> {
    errno(request(fd, KVM_SET_REGS, ptr::from_ref(registers) as u64)).map(|_| ())
}

/// The bytes of the state of vector registers in KVM's form.
pub(super) const VECTORS_BYTES: usize = 4096;

/// The vector registers in the standard form of `xsave`.
pub(super) fn get_vectors(fd: i32, vectors: &mut [u8; VECTORS_BYTES]) -> Result<(), Errno> {
    errno(request(fd, KVM_GET_XSAVE, vectors.as_mut_ptr() as u64)).map(|_| ())
}

pub(super) fn set_vectors(fd: i32, vectors: &[u8; VECTORS_BYTES]) -> Result<(), Errno> {
    errno(request(fd, KVM_SET_XSAVE, vectors.as_ptr() as u64)).map(|_| ())
}

/// The bytes that KVM shares for each thread.
pub(super) fn shared_bytes(state: &State) -> Result<u64, Errno> {
    let kvm = state.kvm_fd.load(Ordering::Relaxed);
    errno(request(kvm, KVM_GET_VCPU_MMAP_SIZE, 0)).map(|size| size as u64)
}
