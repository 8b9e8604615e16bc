//! One system call in assembly, from a known address: by either entry of an x86-64 kernel, or that of AArch64.
//!
//! Like all code in a child of several threads, nothing here may allocate, lock or panic.

use std::sync::atomic::AtomicU64;

use tamis_abi::{Arch, SeccompData};

/// A system call in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawCall {
    /// By `int 0x80`, as 32-bit programs do, instead of `syscall`.
    pub(crate) is_compat: bool,
    pub(crate) nr: u32,
    pub(crate) args: [u64; 6],
}

impl RawCall {
    /// The call as made by a process of this machine.
    pub(crate) fn from_data(call: &SeccompData) -> RawCall {
        RawCall {
            is_compat: cfg!(target_arch = "x86_64") && call.arch == Arch::X86.audit(),
            nr: call.nr,
            args: call.args,
        }
    }
}

/// Makes a system call after storing its address in `ip`; returns the kernel's result.
#[cfg(target_arch = "x86_64")]
pub(crate) fn call(raw: &RawCall, ip: &AtomicU64) -> i64 {
    let result: i64;
    // SAFETY: the callers ensure that the call is harmless. The kernel changes only the registers named here; rbx
    // and rbp are restored. `ip` and the arguments are valid to write and read.
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
            // The result for 32-bit code.
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

/// Makes a system call after storing its address in `ip`; returns the kernel's result.
#[cfg(target_arch = "aarch64")]
pub(crate) fn call(raw: &RawCall, ip: &AtomicU64) -> i64 {
    let result: i64;
    // SAFETY: the callers ensure that the call is harmless. The kernel changes only the register of the result. `ip` is
    // valid to write.
    unsafe {
        std::arch::asm!(
            "adr {place}, 2f",
            "str {place}, [{ip}]",
            "svc #0",
            "2:",
            place = out(reg) _,
            ip = in(reg) ip.as_ptr(),
            in("x8") u64::from(raw.nr),
            inlateout("x0") raw.args[0] => result,
            in("x1") raw.args[1],
            in("x2") raw.args[2],
            in("x3") raw.args[3],
            in("x4") raw.args[4],
            in("x5") raw.args[5],
            options(nostack),
        );
    }
    result
}

/// Makes no call: other machines are not supported.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn call(_: &RawCall, _: &AtomicU64) -> i64 {
    i64::from(-libc::ENOSYS)
}
