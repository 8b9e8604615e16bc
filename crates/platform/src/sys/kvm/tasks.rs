//! New threads and processes of a guest.
//!
//! A task that shares memory gets a thread of the same machine, which is created before the task, so that all processes
//! with this memory have its descriptor. A process with a copy of the memory creates its own machine.

use std::sync::atomic::{AtomicU32, Ordering};

use tamis_kernel::Errno;

use super::area::{MAX_VCPUS, State};
use super::call;
use super::descriptors;
use super::machine;
use super::signals;
use super::tables;
use super::vcpu::{Entry, Vcpu};

/// The states of a place: free, used by a thread, or by one that is about to end.
const FREE: u32 = 0;
const USED: u32 = 1;
const LEAVING: u32 = 2;

const EAGAIN: i64 = -(libc::EAGAIN as i64);
const ENOMEM: i64 = -(libc::ENOMEM as i64);
const ENOSYS: i64 = -(libc::ENOSYS as i64);

/// `clone`, `fork` or `vfork`.
pub(super) fn create(vcpu: &mut Vcpu, nr: u64, args: &[u64; 6]) -> i64 {
    let flags = match nr as i64 {
        libc::SYS_clone => args[0],
        libc::SYS_vfork => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
        _ => 0,
    };
    let has = |flag: i32| flags & flag as u64 != 0;
    if vcpu.pending.load(Ordering::Acquire) != 0 {
        return call::RESTART;
    }
    if vcpu.is_borrower && has(libc::CLONE_VM) || has(libc::CLONE_FILES) != has(libc::CLONE_THREAD)
    {
        return call::ask(nr, args, &vcpu.pending).unwrap_or(ENOSYS);
    }
    match has(libc::CLONE_VM) {
        true if has(libc::CLONE_THREAD) || has(libc::CLONE_VFORK) => share(vcpu, nr, args, flags),
        true => call::ask(nr, args, &vcpu.pending).unwrap_or(ENOSYS),
        false => copy(vcpu, nr, args, flags),
    }
}

/// Creates a task with the same memory.
fn share(vcpu: &mut Vcpu, nr: u64, args: &[u64; 6], flags: u64) -> i64 {
    let state = vcpu.state();
    let is_thread = flags & libc::CLONE_THREAD as u64 != 0;
    let Some((index, fd, handlers)) = reserve(vcpu, is_thread) else {
        return call::ask(nr, args, &vcpu.pending).unwrap_or(EAGAIN);
    };
    let new = Vcpu::at(state.stack_of(index));
    prepare(vcpu, new, args, flags);
    (new.state, new.index, new.fd) = (vcpu.state, index, fd);
    (new.handlers, new.is_borrower) = (handlers, !is_thread);
    new.lent = descriptors::known(state);
    if !is_thread {
        new.limit = descriptors::limit(state);
    }
    if is_thread {
        new.signal_stack = [0, 0, u64::from(libc::SS_DISABLE as u32)];
    }
    let mut made = *args;
    if nr as i64 == libc::SYS_clone {
        made[1] = new.stack_end();
    }
    new.mask = signals::block_but_traps();
    let mask = new.mask;
    vcpu.making = index + 1;
    let result = call::clone(nr, &made, new.stack_end());
    vcpu.making = 0;
    let is_trapped = signals::unblock(vcpu, mask);
    if result < 0 || is_trapped || !is_thread {
        abandon(state, index);
    }
    result
}

/// Releases the place of a task that hasn't been created or has ended. A process that has borrowed the memory has
/// returned it, even if it was killed.
fn abandon(state: &State, index: usize) {
    let new = Vcpu::at(state.stack_of(index));
    if new.is_borrower {
        state.unlock_of(index);
        signals::free_handlers(state, new.handlers);
    }
    state.in_use[index].store(FREE, Ordering::Release);
}

/// Sets the initial state of a new task.
fn prepare(vcpu: &mut Vcpu, new: &mut Vcpu, args: &[u64; 6], flags: u64) {
    let has = |flag: i32| flags & flag as u64 != 0;
    let [_, stack, _, _, tls, _] = *args;
    new.registers = vcpu.registers;
    new.registers.rax = 0;
    if stack != 0 && flags != (libc::CLONE_VM | libc::CLONE_VFORK) as u64 {
        new.registers.rsp = stack;
    }
    // `syscall` has left these to the task's next instruction.
    new.entry = Entry::New;
    new.signal_stack = vcpu.signal_stack;
    if let Ok(system) = machine::get_system(vcpu.fd) {
        new.fs_base = system.fs.base;
        new.gs_base = system.gs.base;
    }
    if has(libc::CLONE_SETTLS) {
        new.fs_base = tls;
    }
    // Without them the task would begin with arbitrary registers.
    if let Err(errno) = machine::get_vectors(vcpu.fd, &mut new.vectors) {
        vcpu.state().fail(errno);
    }
    new.pending.store(0, Ordering::Release);
    new.making = 0;
    new.failures = 0;
}

/// Reserves a free place with its thread of the machine, and the handlers that a task will have there.
fn reserve(vcpu: &Vcpu, is_thread: bool) -> Option<(usize, i32, usize)> {
    let state = vcpu.state();
    let index = take(state)?;
    let fd = match state.vcpu_fds[index].load(Ordering::Acquire) {
        fd @ 1.. => Some(fd),
        _ => state.locked(|| machine::create_vcpu(state, index)).ok(),
    };
    let handlers = || match is_thread {
        true => Some(vcpu.handlers),
        false => signals::copy_handlers(state, vcpu.handlers),
    };
    let reserved = fd.and_then(|fd| Some((index, fd, handlers()?)));
    if reserved.is_none() {
        state.in_use[index].store(FREE, Ordering::Release);
    }
    reserved
}

fn take(state: &State) -> Option<usize> {
    let free = |index: &usize| {
        let flag = &state.in_use[*index];
        let taken = flag.compare_exchange(FREE, USED, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    };
    (0..MAX_VCPUS).find(free)
}

/// Whether a machine has more than one task.
pub(super) fn are_several(state: &State) -> bool {
    let is_used = |flag: &&AtomicU32| flag.load(Ordering::Acquire) == USED;
    state.in_use.iter().filter(is_used).count() > 1
}

/// Creates a process with a copy of the memory.
fn copy(vcpu: &mut Vcpu, nr: u64, args: &[u64; 6], flags: u64) -> i64 {
    const STACK: usize = 1;
    let state = vcpu.state();
    let mut vectors = [0; machine::VECTORS_BYTES];
    let (Ok(system), Ok(())) = (
        machine::get_system(vcpu.fd),
        machine::get_vectors(vcpu.fd, &mut vectors),
    ) else {
        return call::ask(nr, args, &vcpu.pending).unwrap_or(ENOMEM);
    };
    let Some(limit) = descriptors::before_fork(state) else {
        return call::ask(nr, args, &vcpu.pending).unwrap_or(EAGAIN);
    };
    let mut made = *args;
    if nr as i64 == libc::SYS_clone {
        made[STACK] = 0;
    }
    let mask = signals::block_but_traps();
    let result = call::guest(nr, &made, &vcpu.pending);
    if result != 0 {
        signals::unblock(vcpu, mask);
        return result;
    }
    if nr as i64 == libc::SYS_clone && args[STACK] != 0 {
        vcpu.registers.rsp = args[STACK];
    }
    (vcpu.fs_base, vcpu.gs_base) = (system.fs.base, system.gs.base);
    if flags & libc::CLONE_SETTLS as u64 != 0 && nr as i64 == libc::SYS_clone {
        vcpu.fs_base = args[4];
    }
    vcpu.vectors = vectors;
    vcpu.registers.rax = 0;
    vcpu.mask = mask;
    descriptors::after_fork(state, limit);
    become_first(vcpu)
}

/// In the new process: creates its own machine, with this thread as the only one.
fn become_first(vcpu: &mut Vcpu) -> ! {
    let state = vcpu.state();
    state.lock.store(0, Ordering::Release);
    descriptors::leave_machine(vcpu);
    vcpu.is_borrower = false;
    for (index, in_use) in state.in_use.iter().enumerate() {
        let flag = if index == vcpu.index { USED } else { FREE };
        in_use.store(flag, Ordering::Relaxed);
    }
    let made = machine::create(state).and_then(|()| match tables::add_all(state) {
        true => machine::create_vcpu(state, vcpu.index),
        false => Err(Errno(libc::ENOMEM)),
    });
    let made = made.and_then(|fd| descriptors::occupy(state).map(|()| fd));
    match made {
        Ok(fd) => vcpu.fd = fd,
        Err(errno) => state.fail(errno),
    }
    call::start(vcpu.stack_end())
}

/// Ends a thread. The filter is tested first: afterwards the end is certain.
pub(super) fn exit(vcpu: &mut Vcpu, args: &[u64; 6]) -> i64 {
    const NR: u64 = libc::SYS_exit as u64;
    if vcpu.is_borrower {
        return call::guest(NR, args, &vcpu.pending);
    }
    if let Some(denied) = call::ask(NR, args, &vcpu.pending) {
        return denied;
    }
    signals::block_all();
    if vcpu.pending.load(Ordering::Acquire) != 0 {
        return call::RESTART;
    }
    let state = vcpu.state();
    if leave(vcpu) {
        // KVM has a thread of its own in this process, which would keep the process alive.
        machine::destroy(state);
    }
    call::exit(args[0], &state.in_use[vcpu.index])
}

/// Marks a thread that is about to end; returns whether it is the last. Its place is free when its stack is no longer
/// used.
fn leave(vcpu: &Vcpu) -> bool {
    let state = vcpu.state();
    state.locked(|| {
        state.in_use[vcpu.index].store(LEAVING, Ordering::Relaxed);
        let mut flags = state.in_use.iter();
        flags.all(|flag| flag.load(Ordering::Relaxed) != USED)
    })
}

/// The end of a thread that the filter kills. Its kernel thread still runs to release the place.
pub(super) extern "sysv64" fn killed(on_stack: u64) -> ! {
    const BY_SIGNAL: u64 = libc::SIGSYS as u64;
    let vcpu = Vcpu::at(on_stack);
    let state = vcpu.state();
    if vcpu.making != 0 {
        abandon(state, vcpu.making - 1);
    }
    if vcpu.is_borrower || leave(vcpu) {
        signals::die(libc::SIGSYS);
    }
    call::exit(BY_SIGNAL, &state.in_use[vcpu.index])
}
