//! Names, numbers and priorities of system calls.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use tamis_abi::Arch;
use tamis_scmp::number::{self, NotRewritable, SKIP};

use crate::api::{arch, code, filter, guarded};
use crate::contexts::Handle;

/// `__NR_SCMP_ERROR`: no such call.
const NONE: c_int = SKIP;

/// Returns the name in memory that the caller releases, or null.
// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_syscall_resolve_num_arch(token: u32, number: c_int) -> *mut c_char {
    guarded(ptr::null_mut(), || {
        let name = arch(token)
            .ok()
            .and_then(|arch| number::resolve_number(arch, number));
        name.map_or(ptr::null_mut(), copied)
    })
}

/// A copy in memory of the C library's allocator; null without memory.
fn copied(name: &str) -> *mut c_char {
    // SAFETY: `strndup` reads at most so many bytes, which the text has.
    unsafe { libc::strndup(name.as_ptr().cast(), name.len()) }
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_syscall_resolve_name(name: *const c_char) -> c_int {
    // SAFETY: as the caller guarantees.
    unsafe { seccomp_syscall_resolve_name_arch(0, name) }
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_syscall_resolve_name_arch(token: u32, name: *const c_char) -> c_int {
    // SAFETY: as the caller guarantees.
    let resolved = guarded(None, || unsafe { resolve(token, name) });
    resolved.map_or(NONE, |(_, number)| number)
}

/// The same, with the multiplexer's number for multiplexed calls.
// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_syscall_resolve_name_rewrite(
    token: u32,
    name: *const c_char,
) -> c_int {
    guarded(NONE, || {
        // SAFETY: as the caller guarantees.
        let Some((arch, number)) = (unsafe { resolve(token, name) }) else {
            return NONE;
        };
        match number::rewrite(arch, number) {
            Ok(rewritten) => rewritten,
            Err(NotRewritable::Absent) => number,
            Err(NotRewritable::Reserved) => NONE,
        }
    })
}

/// Resolves an architecture and the number of a call there.
///
/// # Safety
/// The name is null or a string.
unsafe fn resolve(token: u32, name: *const c_char) -> Option<(Arch, c_int)> {
    if name.is_null() {
        return None;
    }
    // SAFETY: it isn't null, so it is a string.
    let name = unsafe { CStr::from_ptr(name) }.to_str().ok()?;
    let arch = arch(token).ok()?;
    Some((arch, number::resolve_name(arch, name)?))
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_syscall_priority(handle: Handle, call: c_int, priority: u8) -> c_int {
    code(|| {
        // SAFETY: the caller uses the handle in one thread at a time.
        unsafe { filter(handle) }?.set_priority(call, priority)
    })
}
