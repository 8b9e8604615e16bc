//! The replacement of libseccomp's main branch, with its additions after 2.6.1.
//!
//! It is a separate library because programs detect features: `dlsym` finds `seccomp_notify_addfd` here and not in the
//! library for 2.6.1, and `seccomp_version` differs. All other functions are re-exports of [`tamis_libseccomp`]; the
//! release is selected while the library is loaded, before a function can be called.

use std::ffi::{c_int, c_void};

/// Copies a descriptor into a task that waits for the response to a notification; returns its number there.
///
/// # Safety
/// The pointer is to a `struct seccomp_notif_addfd`, or null.
// SAFETY: the name and the caller's duties are those of `seccomp.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn seccomp_notify_addfd(fd: c_int, addfd: *mut c_void) -> c_int {
    tamis_libseccomp::next::notify_addfd(fd, addfd)
}

extern "C" fn choose() {
    tamis_libseccomp::next::choose();
}

/// A constructor, called by the dynamic linker after loading the library.
// SAFETY: the section is a list of such functions; this one only stores to an atomic variable.
#[unsafe(link_section = ".init_array")]
#[used]
static CHOOSE: extern "C" fn() = choose;
