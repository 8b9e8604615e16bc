//! The system's libseccomp, through its resolver functions.

use std::ffi::{CString, c_char, c_int};

use libloading::{Library, Symbol};
use tamis_abi::{Arch, Nr, syscall};
use tamis_testkit::skip::{self, Need};

/// `seccomp_syscall_resolve_name_arch`: negative results mean unknown calls.
// SAFETY: callers pass a C string; there is no other precondition.
type ResolveName = unsafe extern "C" fn(u32, *const c_char) -> c_int;

/// The architecture token: the audit value, except for x32, which has a token of its own.
fn token(arch: Arch) -> u32 {
    match arch {
        Arch::X32 => 0x4000_003e,
        _ => arch.audit(),
    }
}

#[test]
fn numbers_are_those_of_libseccomp() {
    // SAFETY: libseccomp's initialisers have no preconditions.
    let library = unsafe { Library::new("libseccomp.so.2") }
        .unwrap_or_else(|error| skip::because(Need::Peers, error));
    // SAFETY: the type is that of the function's prototype in seccomp.h.
    let resolve: Symbol<'_, ResolveName> =
        unsafe { library.get(b"seccomp_syscall_resolve_name_arch\0") }.unwrap();
    for arch in Arch::all() {
        let mut compared = 0;
        for name in syscall::names() {
            let c_name = CString::new(name).unwrap();
            // SAFETY: the name is a live C string; the function keeps no pointer to it.
            let Ok(nr) = u32::try_from(unsafe { resolve(token(arch), c_name.as_ptr()) }) else {
                continue;
            };
            if let Some(known) = syscall::number(arch, name) {
                assert_eq!(known, Nr(nr), "{arch} {name}");
                compared += 1;
            }
        }
        println!("{arch}: {compared} compared");
    }
}
