//! A thread of the guest: a thread of this process that runs its part of the machine and handles its exits.

use std::sync::atomic::{AtomicU32, Ordering};

use kvm_bindings::{
    KVM_EXIT_HLT, KVM_EXIT_INTR, KVM_EXIT_IO, KVM_EXIT_MMIO, KVM_SYNC_X86_REGS, kvm_regs, kvm_run,
};
use tamis_kernel::Errno;

use super::area::{PAGE, STACK_BYTES, State, pointer};
use super::call;
use super::descriptors::{self, Limit, ThreadSet};
use super::machine::{self, VECTORS_BYTES};
use super::tables::{self, Fault};
use super::{calls, shim, signals};

/// A thread. It is at the lowest address of its stack, where signal handlers find it.
#[repr(C)]
pub(super) struct Vcpu {
    pub(super) state: *const State,
    pub(super) index: usize,
    pub(super) fd: i32,
    /// The pending signal for the guest, or 0.
    pub(super) pending: AtomicU32,
    /// The kernel's information about it.
    pub(super) info: [u8; 128],
    /// The mask when the signal came.
    pub(super) mask: u64,
    /// The index of its signal handlers.
    pub(super) handlers: usize,
    /// Its signal stack: address, size, flags.
    pub(super) signal_stack: [u64; 3],
    /// Whether it is a process that has borrowed its parent's memory.
    pub(super) is_borrower: bool,
    /// If it is such a process, the threads whose descriptors it has.
    pub(super) lent: ThreadSet,
    /// The limit of descriptors that such a process begins with.
    pub(super) limit: Limit,
    /// The registers of the guest, when it is not running.
    pub(super) registers: kvm_regs,
    /// The state that decides how the registers are set in the machine.
    pub(super) entry: Entry,
    pub(super) fs_base: u64,
    pub(super) gs_base: u64,
    /// The place of a task that it is about to create, plus 1, or 0.
    pub(super) making: usize,
    /// The number of failures of the machine in a row for lack of memory.
    pub(super) failures: u32,
    pub(super) vectors: [u8; VECTORS_BYTES],
}

const _: () = assert!(size_of::<Vcpu>() < STACK_BYTES as usize / 4);

/// The state of the machine, which determines how its registers are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Entry {
    /// It has not run: all registers are to be set.
    New = 0,
    /// In the guest's code.
    InGuest,
    /// In the shim, for a call.
    InCall,
    /// In a stub, for an exception.
    InException,
}

/// The flags that a guest may have.
const FLAGS: u64 = 0x25_4dd5;
const ALWAYS: u64 = 0x202;
/// The machine has stopped for a reason that no guest causes.
const NO_EXIT: Errno = Errno(libc::EPROTO);
/// The flags in the shim.
const IN_SHIM: u64 = 2;

/// The first function on a stack.
pub(super) extern "sysv64" fn thread_entry(on_stack: u64) -> ! {
    let vcpu = Vcpu::at(on_stack);
    if vcpu.is_borrower {
        descriptors::after_fork(vcpu.state(), vcpu.limit);
    }
    if let Err(errno) = vcpu.begin() {
        vcpu.state().fail(errno);
    }
    loop {
        vcpu.step();
    }
}

impl Vcpu {
    /// The address of the thread whose stack contains this address.
    pub(super) const fn place(on_stack: u64) -> *mut Vcpu {
        pointer(on_stack & !(STACK_BYTES - 1))
    }

    /// The thread whose stack contains this address.
    pub(super) fn at<'a>(on_stack: u64) -> &'a mut Vcpu {
        // SAFETY: stacks begin at multiples of their size, with a thread that only its own task and its creator use.
        // Zeros are a value.
        unsafe { &mut *Vcpu::place(on_stack) }
    }

    pub(super) fn state<'a>(&self) -> &'a State {
        // SAFETY: mapped as long as the process lives, and all of it atomic.
        unsafe { &*self.state }
    }

    fn run(&self) -> *mut kvm_run {
        pointer(self.state().run(self.index))
    }

    /// The end of its stack.
    pub(super) fn stack_end(&self) -> u64 {
        self.state().stack_of(self.index) + STACK_BYTES
    }

    /// Sets all registers of the machine's thread.
    fn begin(&mut self) -> Result<(), Errno> {
        machine::set_system(
            self.state(),
            self.fd,
            self.index,
            self.fs_base,
            self.gs_base,
        )?;
        if self.vectors.iter().any(|byte| *byte != 0) {
            machine::set_vectors(self.fd, &self.vectors)?;
        }
        machine::set_registers(self.fd, &self.registers)?;
        self.entry = Entry::InGuest;
        // SAFETY: the mapping of this thread, which KVM reads while it runs only.
        unsafe {
            (*self.run()).kvm_valid_regs = u64::from(KVM_SYNC_X86_REGS);
            (*self.run()).kvm_dirty_regs = 0;
            // Read by a signal that comes before the first run.
            (*self.run()).s.regs.regs = self.registers;
        }
        // A pending signal has blocked all signals, and is delivered first.
        if self.pending.load(Ordering::Acquire) == 0 {
            signals::restore_mask(self.mask);
        }
        Ok(())
    }

    /// Runs the guest until it exits, and handles the exit.
    fn step(&mut self) {
        const SIGNALLED: i32 = -call::RESTART as i32;
        let result = call::run(self.fd, &self.pending);
        // SAFETY: as above; the machine doesn't run.
        let run = unsafe { &mut *self.run() };
        match -result as i32 {
            0 => {}
            libc::EFAULT => return self.on_lost_memory(),
            libc::EINTR | SIGNALLED | libc::EAGAIN => return self.on_interrupt(),
            errno => self.state().fail(Errno(errno)),
        }
        self.failures = 0;
        match run.exit_reason {
            KVM_EXIT_IO => {
                // SAFETY: of this exit.
                match unsafe { run.__bindgen_anon_1.io.port } {
                    shim::CALL_PORT => self.on_call(),
                    shim::EXCEPTION_PORT => self.on_exception(),
                    _ => self.state().fail(NO_EXIT),
                }
            }
            KVM_EXIT_HLT | KVM_EXIT_MMIO => self.on_call(),
            KVM_EXIT_INTR => self.on_interrupt(),
            _ => self.state().fail(NO_EXIT),
        }
    }

    /// The registers in the machine.
    fn shared(&self) -> kvm_regs {
        // SAFETY: the mapping of this thread, which doesn't run; KVM has filled in the registers.
        unsafe { (*self.run()).s.regs.regs }
    }

    /// The address of the return frame of calls.
    fn frame(&self) -> u64 {
        let state = self.state();
        let page = state.vcpu_pages(self.index);
        match self.ring() {
            0 => page + shim::FRAME,
            _ => page + PAGE + shim::FRAME,
        }
    }

    /// The privilege level of calls in the shim.
    fn ring(&self) -> u32 {
        let known = &self.state().shim_ring;
        match known.load(Ordering::Relaxed) {
            0 => {
                let selector = machine::get_system(self.fd).map_or(3, |system| system.cs.selector);
                let ring = u32::from(selector & 3);
                known.store(ring + 1, Ordering::Relaxed);
                ring
            }
            ring => ring - 1,
        }
    }

    fn on_call(&mut self) {
        self.entry = Entry::InCall;
        self.registers = self.shared();
        let registers = &mut self.registers;
        registers.rip = registers.rcx;
        registers.rflags = registers.r11;
        calls::make(self);
        self.resume();
    }

    /// Returns the guest's registers to the machine.
    pub(super) fn resume(&mut self) {
        if self.pending.load(Ordering::Acquire) != 0 {
            signals::deliver(self);
        }
        let mut registers = self.registers;
        registers.rflags = registers.rflags & FLAGS | ALWAYS;
        let frame = match self.entry {
            Entry::InCall => self.frame(),
            Entry::InException => shim::exception_stack(self.state(), self.index) - 5 * 8,
            Entry::New | Entry::InGuest => {
                self.set(registers);
                return;
            }
        };
        let words = [
            registers.rip,
            u64::from(shim::CODE_SELECTOR),
            registers.rflags,
            registers.rsp,
            u64::from(shim::STACK_SELECTOR),
        ];
        // SAFETY: inside a page of this thread.
        unsafe { pointer::<[u64; 5]>(frame).write(words) };
        registers.rip = shim::return_at(self.state());
        registers.rsp = frame;
        // The shim's own flags: no single steps.
        registers.rflags = IN_SHIM;
        self.set(registers);
    }

    fn set(&self, registers: kvm_regs) {
        // SAFETY: the mapping of this thread, which doesn't run.
        unsafe {
            (*self.run()).s.regs.regs = registers;
            (*self.run()).kvm_dirty_regs = u64::from(KVM_SYNC_X86_REGS);
        }
    }

    /// Handles a signal. It is delivered if the guest is in its own code, otherwise after the exit that the guest is
    /// about to make.
    fn on_interrupt(&mut self) {
        if self.pending.load(Ordering::Acquire) == 0 {
            return;
        }
        let shared = self.shared();
        let state = self.state();
        let page = state.shim();
        if shared.rip == shim::return_at(state) {
            // SAFETY: frames are in pages of this thread; other addresses from the guest aren't read.
            let words = unsafe { pointer::<[u64; 5]>(self.known_frame(shared.rsp)).read() };
            self.entry = match shared.rsp == self.frame() {
                true => Entry::InCall,
                false => Entry::InException,
            };
            self.registers = kvm_regs {
                rip: words[0],
                rflags: words[2],
                rsp: words[3],
                ..shared
            };
        } else if (page..page + PAGE).contains(&shared.rip) {
            // The machine exits at once; the pending signal is handled then.
            let waiting = self.pending.swap(0, Ordering::AcqRel);
            let result = call::run(self.fd, &self.pending);
            self.pending.fetch_or(waiting, Ordering::AcqRel);
            // SAFETY: as in `step`.
            let reason = unsafe { (*self.run()).exit_reason };
            match (result, reason) {
                (0, KVM_EXIT_IO) => {
                    // SAFETY: of this exit.
                    match unsafe { (*self.run()).__bindgen_anon_1.io.port } {
                        shim::CALL_PORT => self.on_call(),
                        _ => self.on_exception(),
                    }
                }
                (0, KVM_EXIT_HLT | KVM_EXIT_MMIO) => self.on_call(),
                _ => {}
            }
            return;
        } else {
            self.entry = Entry::InGuest;
            self.registers = shared;
        }
        self.resume();
    }

    /// A frame of this thread.
    fn known_frame(&self, stack: u64) -> u64 {
        match stack == self.frame() {
            true => stack,
            false => shim::exception_stack(self.state(), self.index) - 5 * 8,
        }
    }

    /// Handles memory that the kernel has unmapped and the machine still maps.
    fn on_lost_memory(&mut self) {
        /// More than any guest loses at once.
        const MOST: u32 = 1000;
        self.failures += 1;
        if self.failures > MOST {
            self.state().fail(Errno(libc::EFAULT));
        }
        tables::forget_all(self.state());
        if self.pending.load(Ordering::Acquire) != 0 {
            self.on_interrupt();
        }
    }

    fn on_exception(&mut self) {
        let state = self.state();
        let shared = self.shared();
        let end = shim::exception_stack(state, self.index);
        // Vector, maybe an error code, and the frame, which ends where the stack begins.
        // SAFETY: the end of this thread's page.
        let words = unsafe { pointer::<[u64; 7]>(end - 7 * 8).read() };
        let by_guest = words[3] & 3 == 3;
        let vector = match shared.rsp {
            at if at == end - 7 * 8 => words[0],
            at if at == end - 6 * 8 => words[1],
            _ => signals::die(libc::SIGSEGV),
        };
        if !by_guest {
            signals::die(libc::SIGSEGV);
        }
        let error = if shim::has_error_code(vector) {
            words[1]
        } else {
            0
        };
        self.entry = Entry::InException;
        self.registers = kvm_regs {
            rip: words[2],
            rflags: words[4],
            rsp: words[5],
            ..shared
        };
        const PAGE_FAULT: u64 = 14;
        let fault = match vector {
            PAGE_FAULT => {
                let address = machine::get_system(self.fd).map_or(0, |system| system.cr2);
                match tables::resolve(state, address, error) {
                    Ok(()) => None,
                    Err(Fault::Signal(signal, code)) => Some((signal, code, address)),
                    Err(Fault::Exhausted) => state.fail(Errno(libc::ENOMEM)),
                }
            }
            _ => {
                let (signal, code) = signals::of_exception(vector);
                Some((signal, code, self.registers.rip))
            }
        };
        if let Some((signal, code, address)) = fault {
            signals::force(self, signal, code, address, vector, error);
        }
        self.resume();
    }
}
