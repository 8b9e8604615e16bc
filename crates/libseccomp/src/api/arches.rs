//! Architectures.

use std::ffi::{CStr, c_char, c_int};

use tamis_scmp::number;

use crate::api::{any_filter, arch, code, guarded, native};
use crate::contexts::Handle;
use crate::status::Status;

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_arch_resolve_name(name: *const c_char) -> u32 {
    guarded(0, || {
        if name.is_null() {
            return 0;
        }
        // SAFETY: it isn't null, and the interface demands a string.
        let name = unsafe { CStr::from_ptr(name) };
        let arch = name.to_str().ok().and_then(number::arch_of_name);
        arch.and_then(number::token).unwrap_or(0)
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
extern "C" fn seccomp_arch_native() -> u32 {
    native().ok().and_then(number::token).unwrap_or(0)
}

/// 0 if the filter has the architecture, `-EEXIST` if not.
// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_arch_exist(handle: Handle, token: u32) -> c_int {
    code(|| {
        let arch = arch(token)?;
        // SAFETY: the caller uses the handle in one thread at a time.
        let filter = unsafe { any_filter(handle) }?;
        match filter.rules().filter(arch) {
            Some(_) => Ok(()),
            None => Err(Status::Exists),
        }
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_arch_add(handle: Handle, token: u32) -> c_int {
    code(|| {
        let arch = arch(token)?;
        // SAFETY: the caller uses the handle in one thread at a time.
        unsafe { any_filter(handle) }?.add_arch(arch)
    })
}

// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
unsafe extern "C" fn seccomp_arch_remove(handle: Handle, token: u32) -> c_int {
    code(|| {
        let arch = arch(token)?;
        // SAFETY: the caller uses the handle in one thread at a time.
        unsafe { any_filter(handle) }?.remove_arch(arch)
    })
}
