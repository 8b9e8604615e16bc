//! The guest's calls. The kernel makes them unchanged, under the guest's filter; some of them require changes of the
//! machine, before or after.

use std::sync::atomic::Ordering;

use tamis_kernel::Errno;

use super::area::PAGE;
use super::call::{self, RESTART};
use super::vcpu::Vcpu;
use super::{descriptors, machine, signals, tables, tasks};

const EPERM: i64 = -(libc::EPERM as i64);
const EBADF: i64 = -(libc::EBADF as i64);
const EMFILE: i64 = -(libc::EMFILE as i64);
const ENOSYS: i64 = -(libc::ENOSYS as i64);
const ENOMEM: i64 = -(libc::ENOMEM as i64);
const EINVAL: i64 = -(libc::EINVAL as i64);

/// Calls whose effect requires code that the processor runs outside of a machine.
pub(crate) const REFUSED: [i64; 7] = [
    435, // clone3, which the C library's headers may lack
    libc::SYS_rseq,
    libc::SYS_seccomp,
    libc::SYS_modify_ldt,
    libc::SYS_unshare,
    libc::SYS_shmat,
    libc::SYS_userfaultfd,
];

/// Operations of `prctl` that set filters and dispatch.
pub(crate) const REFUSED_OPERATIONS: [u32; 2] = [22, 59];

/// Makes the call in the registers, and sets its result in them.
pub(super) fn make(vcpu: &mut Vcpu) {
    let registers = &vcpu.registers;
    // The kernel reads 32 bits of the number.
    let nr = u64::from(registers.rax as u32);
    let args = [
        registers.rdi,
        registers.rsi,
        registers.rdx,
        registers.r10,
        registers.r8,
        registers.r9,
    ];
    let result = match nr as i64 {
        nr_known if is_refused(nr_known, &args) => unmade(vcpu, nr, &args, ENOSYS),
        libc::SYS_rt_sigreturn => match call::ask(nr, &args, &vcpu.pending) {
            Some(denied) => denied,
            None => return signals::sigreturn(vcpu),
        },
        libc::SYS_rt_sigaction => signals::set_action(vcpu, &args),
        libc::SYS_sigaltstack => signals::set_stack(vcpu, &args),
        libc::SYS_rt_sigprocmask => signals::set_mask(vcpu, nr, &args),
        libc::SYS_clone | libc::SYS_fork | libc::SYS_vfork => tasks::create(vcpu, nr, &args),
        libc::SYS_exit => tasks::exit(vcpu, &args),
        libc::SYS_arch_prctl => set_base(vcpu, nr, &args),
        libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_pkey_mprotect
        | libc::SYS_mremap
        | libc::SYS_madvise
        | libc::SYS_shmdt
        | libc::SYS_brk => memory(vcpu, nr, &args),
        libc::SYS_close_range => close_range(vcpu, nr, args),
        libc::SYS_execve | libc::SYS_execveat => execute(vcpu, nr, &args),
        nr_known if names_own(vcpu, nr_known, &args) => unmade(vcpu, nr, &args, EBADF),
        _ => call::guest(nr, &args, &vcpu.pending),
    };
    finish(vcpu, result);
}

fn is_refused(nr: i64, args: &[u64; 6]) -> bool {
    REFUSED.contains(&nr) || nr == libc::SYS_prctl && REFUSED_OPERATIONS.contains(&(args[0] as u32))
}

/// Sets the result, or restarts the call.
fn finish(vcpu: &mut Vcpu, result: i64) {
    /// The bytes of `syscall`.
    const LEN_BYTES: u64 = 2;
    match result {
        RESTART => vcpu.registers.rip = vcpu.registers.rip.wrapping_sub(LEN_BYTES),
        result => vcpu.registers.rax = result as u64,
    }
}

/// Whether an argument of a call is a descriptor of the monitor.
fn names_own(vcpu: &Vcpu, nr: i64, args: &[u64; 6]) -> bool {
    let [first, second, ..] = *args;
    let is_own = |fd| descriptors::is_own(vcpu, fd);
    match nr {
        libc::SYS_close | libc::SYS_ioctl | libc::SYS_fcntl | libc::SYS_dup => is_own(first),
        libc::SYS_dup2 | libc::SYS_dup3 => is_own(first) || is_own(second),
        _ => false,
    }
}

/// Executes a program. Afterwards any failure ends the process, so its monitor needs room for its descriptors.
fn execute(vcpu: &Vcpu, nr: u64, args: &[u64; 6]) -> i64 {
    match descriptors::is_room_for_program(vcpu.state()) {
        true => call::guest(nr, args, &vcpu.pending),
        false => unmade(vcpu, nr, args, EMFILE),
    }
}

/// Closes descriptors, except the monitor's. Threads can't leave their common table: each needs the descriptors that
/// others create.
fn close_range(vcpu: &Vcpu, nr: u64, args: [u64; 6]) -> i64 {
    const UNSHARE: u64 = 1 << 1;
    let [first, last, flags, ..] = args.map(|arg| arg & 0xffff_ffff);
    if flags & UNSHARE != 0 && !vcpu.is_borrower && tasks::are_several(vcpu.state()) {
        return unmade(vcpu, nr, &args, EINVAL);
    }
    // The kernel rejects a range that ends before it begins.
    if first > last || descriptors::own_from(vcpu, first).start > last {
        return call::guest(nr, &args, &vcpu.pending);
    }
    let (mut from, mut is_made) = (first, false);
    while from <= last {
        let own = descriptors::own_from(vcpu, from);
        if from < own.start {
            let end = last.min(own.start - 1);
            let args = [from, end, args[2], args[3], args[4], args[5]];
            match call::guest(nr, &args, &vcpu.pending) {
                0 => is_made = true,
                error => return error,
            }
        }
        from = own.end;
    }
    match is_made {
        true => 0,
        false => unmade(vcpu, nr, &args, 0),
    }
}

/// Sets or gets a segment base: the kernel does it for this thread, whose own code has none, and the machine's base is
/// set to the same value.
fn set_base(vcpu: &mut Vcpu, nr: u64, args: &[u64; 6]) -> i64 {
    const SET_GS: u64 = 0x1001;
    const SET_FS: u64 = 0x1002;
    const GET_FS: u64 = 0x1003;
    const GET_GS: u64 = 0x1004;
    const ENABLE_SHADOW_STACK: u64 = 0x5001;
    let [code, base, ..] = *args;
    if code == ENABLE_SHADOW_STACK {
        return EINVAL;
    }
    let result = call::guest(nr, args, &vcpu.pending);
    if result != 0 || !(SET_GS..=GET_GS).contains(&code) {
        return result;
    }
    let Ok(mut system) = machine::get_system(vcpu.fd) else {
        return EINVAL;
    };
    match code {
        SET_FS => system.fs.base = base,
        SET_GS => system.gs.base = base,
        // The guest may have set it by an instruction.
        GET_FS => return signals::put(vcpu.state(), base, &system.fs.base.to_ne_bytes()),
        _ => return signals::put(vcpu.state(), base, &system.gs.base.to_ne_bytes()),
    }
    match machine::set_sregs(vcpu.fd, &system) {
        Ok(()) => 0,
        Err(_) => EINVAL,
    }
}

/// The error of a call that would change memory of the host.
fn error_of_hosts(nr: i64, first: u64, len_bytes: u64) -> i64 {
    let end = first.checked_add(len_bytes);
    let is_beyond = end.is_none_or(|end| end > tables::USER_END);
    match nr {
        libc::SYS_madvise | libc::SYS_mprotect => ENOMEM,
        // As natively for addresses beyond user space.
        libc::SYS_mmap if is_beyond => ENOMEM,
        libc::SYS_munmap if is_beyond => EINVAL,
        _ => EPERM,
    }
}

/// A call that changes mappings.
fn memory(vcpu: &Vcpu, nr: u64, args: &[u64; 6]) -> i64 {
    let state = vcpu.state();
    let [first, second, third, fourth, fifth, _] = *args;
    let len_bytes = second.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
    let nr_known = nr as i64;
    let is_fixed = match nr_known {
        libc::SYS_mmap => fourth & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) as u64 != 0,
        libc::SYS_brk | libc::SYS_shmdt => false,
        _ => true,
    };
    if is_fixed && state.is_host(first, len_bytes) {
        let error = error_of_hosts(nr_known, first, len_bytes);
        return unmade(vcpu, nr, args, error);
    }
    match nr_known {
        libc::SYS_mmap if descriptors::is_own(vcpu, fifth) => return unmade(vcpu, nr, args, EBADF),
        libc::SYS_mremap
            if fourth & libc::MREMAP_FIXED as u64 != 0 && state.is_host(fifth, third) =>
        {
            return unmade(vcpu, nr, args, EPERM);
        }
        libc::SYS_brk => return heap(vcpu, nr, args),
        _ => {}
    }
    let is_code = |access: u64| access & libc::PROT_EXEC as u64 != 0;
    let new_code = match nr_known {
        libc::SYS_mmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect if is_code(third) => {
            len_bytes
        }
        libc::SYS_mremap if tables::is_executable(state, first) => third,
        _ => 0,
    };
    // The tables don't suffice for all memory to be executable.
    if !tables::has_room(state, new_code) {
        return unmade(vcpu, nr, args, ENOMEM);
    }
    let result = call::guest(nr, args, &vcpu.pending);
    if (-4095..0).contains(&result) {
        return result;
    }
    let is_done = match nr_known {
        libc::SYS_mmap => tables::remap(state, result as u64, len_bytes, is_code(third)),
        libc::SYS_munmap => tables::remap(state, first, len_bytes, false),
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => {
            tables::remap(state, first, len_bytes, is_code(third))
        }
        libc::SYS_mremap => {
            let was_code = tables::is_executable(state, first);
            let new_bytes = third.next_multiple_of(PAGE);
            tables::remap(state, first, len_bytes, false)
                && tables::remap(state, result as u64, new_bytes, was_code)
        }
        libc::SYS_shmdt => {
            tables::forget_all(state);
            true
        }
        _ => true,
    };
    match is_done {
        true => result,
        // Without room in its tables the guest would fault for ever.
        false => state.fail(Errno(libc::ENOMEM)),
    }
}

/// A call that can't be made: it has this result, unless the filter denies it.
fn unmade(vcpu: &Vcpu, nr: u64, args: &[u64; 6], result: i64) -> i64 {
    call::ask(nr, args, &vcpu.pending).unwrap_or(result)
}

/// `brk`, which may shrink the heap.
fn heap(vcpu: &Vcpu, nr: u64, args: &[u64; 6]) -> i64 {
    let state = vcpu.state();
    let end = call::guest(nr, args, &vcpu.pending);
    if end > 0 {
        let end = end as u64;
        let former = state.heap_end.swap(end, Ordering::AcqRel);
        if end < former {
            let page = end.next_multiple_of(PAGE);
            tables::remap(state, page, former.saturating_sub(page), false);
        }
    }
    end
}
