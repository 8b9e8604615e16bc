//! One system call, made by hand: by either entrance of an x86-64 kernel, from a place that is known.
//!
//! Like all that runs in a child of several threads, nothing here may allocate, lock or panic.

use std::sync::atomic::AtomicU64;

use tamis_abi::{Arch, SeccompData};

/// A system call as it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawCall {
    /// By `int 0x80`, as 32-bit programs do, instead of `syscall`.
    pub(crate) is_compat: bool,
    pub(crate) nr: u32,
    pub(crate) args: [u64; 6],
}

impl RawCall {
    /// As a process of this machine makes it.
    pub(crate) fn of(call: &SeccompData) -> RawCall {
        RawCall {
            is_compat: cfg!(target_arch = "x86_64") && call.arch == Arch::X86.audit(),
            nr: call.nr,
            args: call.args,
        }
    }
}

/// Makes a system call from a place that is noted first; the result as the kernel gives it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call(raw: &RawCall, ip: &AtomicU64) -> i64 {
    let result: i64;
    // SAFETY: the callers see to it that the call does no harm. The kernel changes only the registers that
    // are named here; rbx and rbp are put back. `ip` and the arguments are valid to write and read.
    unsafe {
        if raw.is_compat {
            std::arch::asm!(
                "lea rcx, [rip + 2f]",
                "mov [r13], rcx",
                "push rbx",
                "push rbp",
                "mov rbx, [r12]",
                "mov rcx, [r12 + 8]",
                "mov rdx, [r12 + 16]",
                "mov rsi, [r12 + 24]",
                "mov rdi, [r12 + 32]",
                "mov rbp, [r12 + 40]",
                "int 0x80",
                "2:",
                "pop rbp",
                "pop rbx",
                in("r12") raw.args.as_ptr(),
                in("r13") ip.as_ptr(),
                inlateout("rax") i64::from(raw.nr) => result,
                out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            );
            // What 32-bit code would see.
            return i64::from(result as i32);
        }
        std::arch::asm!(
            "lea rcx, [rip + 2f]",
            "mov [{ip}], rcx",
            "syscall",
            "2:",
            ip = in(reg) ip.as_ptr(),
            inlateout("rax") i64::from(raw.nr) => result,
            in("rdi") raw.args[0],
            in("rsi") raw.args[1],
            in("rdx") raw.args[2],
            in("r10") raw.args[3],
            in("r8") raw.args[4],
            in("r9") raw.args[5],
            out("rcx") _,
            out("r11") _,
        );
    }
    result
}

/// No call is made: only x86-64 is asked.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn call(_: &RawCall, _: &AtomicU64) -> i64 {
    i64::from(-libc::ENOSYS)
}
