//! Rules.
//!
//! `seccomp_rule_add` and `seccomp_rule_add_exact` are variadic in C: the count of conditions is followed by as many
//! structures of 24 bytes, by value. Rust can't define variadic functions, so each architecture has a definition that
//! is correct by its calling convention:
//!
//! - x86-64 has such structures on the stack, one behind the other: an array, whose address the function passes on.
//! - AArch64 (AAPCS64, B.4), RISC-V, LoongArch and s390x have the address of a copy of each, in the place of the structure:
//!   the functions have six pointers as parameters, and read as many as the count states.
//! - For others only the functions with an array are complete: these take no conditions.

use std::ffi::{c_int, c_uint};
use std::slice;

use tamis_abi::ArgIndex;
use tamis_scmp::{Comparison, Condition, Exactness};

use crate::api::{code, filter};
use crate::contexts::Handle;
use crate::memory;
use crate::status::Status;

/// `struct scmp_arg_cmp`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArgCmp {
    arg: c_uint,
    op: c_uint,
    datum_a: u64,
    datum_b: u64,
}

/// The most conditions of a rule.
const MAX_CONDITIONS: usize = ArgIndex::ALL.len();

impl ArgCmp {
    fn condition(self) -> Option<Condition> {
        let comparison = match self.op {
            1 => Comparison::Ne,
            2 => Comparison::Lt,
            3 => Comparison::Le,
            4 => Comparison::Eq,
            5 => Comparison::Ge,
            6 => Comparison::Gt,
            7 => Comparison::Masked { mask: self.datum_a },
            _ => return None,
        };
        Some(Condition {
            arg: *ArgIndex::ALL.get(self.arg as usize)?,
            comparison,
            value: match comparison {
                Comparison::Masked { .. } => self.datum_b,
                _ => self.datum_a,
            },
        })
    }
}

/// # Safety
/// The pointer is null or points to `count` conditions.
unsafe fn add(
    exactness: Exactness,
    handle: Handle,
    (action, call): (u32, c_int),
    (count, conditions): (c_uint, *const ArgCmp),
) -> Result<(), Status> {
    let count = count as usize;
    if count > MAX_CONDITIONS || count > 0 && conditions.is_null() {
        return Err(Status::Invalid);
    }
    let given = match count {
        0 => &[],
        // SAFETY: it isn't null, so it points to `count` conditions.
        _ => unsafe { slice::from_raw_parts(conditions, count) },
    };
    // SAFETY: the caller uses the handle in one thread at a time.
    let filter = unsafe { filter(handle) }?;
    let action = filter.check_rule(action, call)?;
    if exactness == Exactness::Exact && filter.rules().filters().len() > 1 {
        return Err(Status::NotSupported);
    }
    memory::require(0)?;
    let conditions: Option<Vec<Condition>> = given.iter().map(|given| given.condition()).collect();
    filter.add_rule(exactness, action, call, &conditions.ok_or(Status::Invalid)?)
}

/// Defines a variadic function, which reads only the passed conditions, its counterpart with an array, and what both
/// call, which no other library can take the place of.
macro_rules! functions {
    ($variadic:ident, $array:ident, $own:ident, $exactness:expr) => {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the name and the caller's duties are those of `seccomp.h`.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $variadic(handle: Handle, action: u32, call: c_int, count: c_uint) -> c_int {
            // Above the return address.
            std::arch::naked_asm!("lea r8, [rsp + 8]", "jmp {array}", array = sym $own)
        }

        #[cfg(any(
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "loongarch64",
            target_arch = "s390x"
        ))]
        // SAFETY: the name and the caller's duties are those of `seccomp.h`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $variadic(
            handle: Handle,
            action: u32,
            call: c_int,
            count: c_uint,
            a: *const ArgCmp,
            b: *const ArgCmp,
            c: *const ArgCmp,
            d: *const ArgCmp,
            e: *const ArgCmp,
            f: *const ArgCmp,
        ) -> c_int {
            let given = [a, b, c, d, e, f];
            if count as usize > given.len() {
                return Status::Invalid.code();
            }
            let mut passed = [ArgCmp::default(); MAX_CONDITIONS];
            for (to, from) in passed.iter_mut().zip(given).take(count as usize) {
                // SAFETY: the caller passed `count` structures, so that many pointers are to one each.
                *to = unsafe { *from };
            }
            // SAFETY: the pointer is to `count` conditions.
            unsafe { $own(handle, action, call, count, passed.as_ptr()) }
        }

        #[cfg(not(any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "loongarch64",
            target_arch = "s390x"
        )))]
        // SAFETY: the name and the caller's duties are those of `seccomp.h`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $variadic(handle: Handle, action: u32, call: c_int, count: c_uint) -> c_int {
            match count {
                // SAFETY: there are no conditions.
                0 => unsafe { $own(handle, action, call, 0, std::ptr::null()) },
                _ => Status::NotSupported.code(),
            }
        }

        // SAFETY: the name and the caller's duties are those of `seccomp.h`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $array(
            handle: Handle,
            action: u32,
            call: c_int,
            count: c_uint,
            conditions: *const ArgCmp,
        ) -> c_int {
            // SAFETY: as the caller guarantees.
            unsafe { $own(handle, action, call, count, conditions) }
        }

        /// # Safety
        /// The caller's duties are those of `seccomp.h`.
        unsafe extern "C" fn $own(
            handle: Handle,
            action: u32,
            call: c_int,
            count: c_uint,
            conditions: *const ArgCmp,
        ) -> c_int {
            let rule = (action, call);
            // SAFETY: as the caller guarantees.
            code(|| unsafe { add($exactness, handle, rule, (count, conditions)) })
        }
    };
}

functions!(
    seccomp_rule_add,
    seccomp_rule_add_array,
    add_adjusted,
    Exactness::Adjusted
);
functions!(
    seccomp_rule_add_exact,
    seccomp_rule_add_exact_array,
    add_exact,
    Exactness::Exact
);
