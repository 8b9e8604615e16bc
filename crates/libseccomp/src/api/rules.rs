//! Rules.
//!
//! `seccomp_rule_add` and `seccomp_rule_add_exact` are variadic in C: the count of conditions is followed by as many
//! structures, by value. Rust can't define variadic functions, so these have six structures as parameters and read as
//! many as the count states. The calling conventions of Linux pass structures of 24 bytes at the same places in both
//! cases: on the stack in order (x86-64, s390x by reference), or by reference in registers and on the stack (AArch64,
//! RISC-V).

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
#[derive(Clone, Copy, Debug)]
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

/// Defines a variadic function, which reads only the passed conditions, and its counterpart with an array.
macro_rules! functions {
    ($variadic:ident, $array:ident, $exactness:expr) => {
        // SAFETY: the name and the caller's duties are those of `seccomp.h`.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $variadic(
            handle: Handle,
            action: u32,
            call: c_int,
            count: c_uint,
            a: ArgCmp,
            b: ArgCmp,
            c: ArgCmp,
            d: ArgCmp,
            e: ArgCmp,
            f: ArgCmp,
        ) -> c_int {
            let passed = match count {
                0 => &[][..],
                1 => &[a],
                2 => &[a, b],
                3 => &[a, b, c],
                4 => &[a, b, c, d],
                5 => &[a, b, c, d, e],
                6 => &[a, b, c, d, e, f],
                _ => return Status::Invalid.code(),
            };
            // SAFETY: the pointer is to `count` conditions.
            unsafe { $array(handle, action, call, count, passed.as_ptr()) }
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
            let rule = (action, call);
            // SAFETY: as the caller guarantees.
            code(|| unsafe { add($exactness, handle, rule, (count, conditions)) })
        }
    };
}

functions!(
    seccomp_rule_add,
    seccomp_rule_add_array,
    Exactness::Adjusted
);
functions!(
    seccomp_rule_add_exact,
    seccomp_rule_add_exact_array,
    Exactness::Exact
);
