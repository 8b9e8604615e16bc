//! Calls of the library's functions as a program in C makes them: variadic, by the calling convention of the machine.

use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::ptr;

// Linked for its C functions.
use tamis_libseccomp as _;
use tamis_testkit::skip::{self, Need};

/// `struct scmp_arg_cmp`
#[repr(C)]
#[derive(Clone, Copy)]
struct ArgCmp {
    arg: c_uint,
    op: c_uint,
    datum_a: u64,
    datum_b: u64,
}

// SAFETY: the types of the functions, which are declared below.
type Add = unsafe extern "C" fn(*mut c_void, u32, c_int, c_uint, ...) -> c_int;
// SAFETY: as above.
type AddArray = unsafe extern "C" fn(*mut c_void, u32, c_int, c_uint, *const ArgCmp) -> c_int;

// SAFETY: the declarations of `seccomp.h`.
unsafe extern "C" {
    fn seccomp_init(action: u32) -> *mut c_void;
    fn seccomp_release(context: *mut c_void);
    fn seccomp_rule_add(
        context: *mut c_void,
        action: u32,
        call: c_int,
        count: c_uint,
        ...
    ) -> c_int;
    fn seccomp_rule_add_exact(
        context: *mut c_void,
        action: u32,
        call: c_int,
        count: c_uint,
        ...
    ) -> c_int;
    fn seccomp_rule_add_array(
        context: *mut c_void,
        action: u32,
        call: c_int,
        count: c_uint,
        list: *const ArgCmp,
    ) -> c_int;
    fn seccomp_rule_add_exact_array(
        context: *mut c_void,
        action: u32,
        call: c_int,
        count: c_uint,
        list: *const ArgCmp,
    ) -> c_int;
    fn seccomp_load(context: *mut c_void) -> c_int;
    fn seccomp_export_bpf_mem(
        context: *mut c_void,
        buffer: *mut c_void,
        length: *mut usize,
    ) -> c_int;
}

const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0001;
/// A call that every architecture of the library has.
const CALL: c_int = libc::SYS_prctl as c_int;

/// Conditions of which each differs in all its parts.
fn conditions() -> [ArgCmp; 6] {
    const EQ: c_uint = 4;
    const MASKED_EQ: c_uint = 7;
    let mut all = [0; 6].map(|_| ArgCmp {
        arg: 0,
        op: EQ,
        datum_a: 0,
        datum_b: 0,
    });
    for (index, one) in all.iter_mut().enumerate() {
        one.arg = index as c_uint;
        one.datum_a = 0x1111_1111_0000_0001 << index;
        if index % 2 == 1 {
            one.op = MASKED_EQ;
            one.datum_b = 1 << index;
        }
    }
    all
}

/// The filter of one rule, which `add` adds.
fn filter(add: impl FnOnce(*mut c_void) -> c_int) -> Vec<u8> {
    let mut bytes = vec![0_u8; 1 << 16];
    let mut length = bytes.len();
    // SAFETY: the context is used here only, and released; the buffer has the length.
    unsafe {
        let context = seccomp_init(ALLOW);
        assert_eq!(add(context), 0);
        assert_eq!(
            seccomp_export_bpf_mem(context, bytes.as_mut_ptr().cast(), &raw mut length),
            0
        );
        seccomp_release(context);
    }
    bytes.truncate(length);
    bytes
}

/// A call with `count` structures behind the named arguments. Each number is a call of its own in the compiled program.
///
/// # Safety
/// As of the function.
unsafe fn call(add: Add, context: *mut c_void, count: c_uint, list: &[ArgCmp; 6]) -> c_int {
    let [a, b, c, d, e, f] = *list;
    // SAFETY: as many structures follow as the count says.
    unsafe {
        match count {
            0 => add(context, EPERM, CALL, count),
            1 => add(context, EPERM, CALL, count, a),
            2 => add(context, EPERM, CALL, count, a, b),
            3 => add(context, EPERM, CALL, count, a, b, c),
            4 => add(context, EPERM, CALL, count, a, b, c, d),
            5 => add(context, EPERM, CALL, count, a, b, c, d, e),
            _ => add(context, EPERM, CALL, count, a, b, c, d, e, f),
        }
    }
}

#[test]
fn a_variadic_call_adds_the_rule_of_the_array() {
    let pairs: [(Add, AddArray); 2] = [
        (seccomp_rule_add, seccomp_rule_add_array),
        (seccomp_rule_add_exact, seccomp_rule_add_exact_array),
    ];
    let list = conditions();
    for (variadic, array) in pairs {
        let mut all = Vec::new();
        for count in 0..=6 {
            // SAFETY: the context is one of the library.
            let called = filter(|context| unsafe { call(variadic, context, count, &list) });
            // SAFETY: as before, and there are six structures.
            let listed =
                filter(|context| unsafe { array(context, EPERM, CALL, count, list.as_ptr()) });
            assert_eq!(called, listed, "{count} conditions");
            all.push(called);
        }
        all.dedup();
        assert_eq!(all.len(), 7, "each condition changes the filter");
    }
}

/// The child of a process installs the filter of a rule, and gets its answer. 4 means that there are no filters here.
#[test]
fn a_loaded_filter_answers() {
    // SAFETY: the child calls the library, which may be used after `fork`, and ends.
    let status = unsafe {
        let child = libc::fork();
        assert!(child >= 0, "a child");
        if child == 0 {
            let context = seccomp_init(ALLOW);
            let code = match seccomp_rule_add(context, EPERM, libc::SYS_getpriority as c_int, 0) {
                0 => seccomp_load(context),
                _ => libc::_exit(2),
            };
            if code != 0 {
                libc::_exit(4);
            }
            let result = libc::syscall(libc::SYS_getpriority, 0, 0);
            let is_denied =
                result == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
            libc::_exit(c_int::from(!is_denied));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    };
    assert!(libc::WIFEXITED(status), "{status}");
    match libc::WEXITSTATUS(status) {
        4 => skip::because(Need::Live, "no filter can be installed here"),
        code => assert_eq!(code, 0),
    }
}

#[test]
fn too_many_conditions_are_refused_before_any_is_read() {
    // SAFETY: no structure is read.
    unsafe {
        let context = seccomp_init(ALLOW);
        for count in [7, c_uint::MAX] {
            assert_eq!(seccomp_rule_add(context, EPERM, CALL, count), -libc::EINVAL);
            assert_eq!(
                seccomp_rule_add_array(context, EPERM, CALL, count, ptr::null()),
                -libc::EINVAL
            );
        }
        seccomp_release(context);
    }
}
