//! Calls that may install a filter, in the interfaces of x86-64.

use tamis_abi::{Arch, SeccompData};
use tamis_kernel::Flag;

/// The bit of numbers of x32.
pub(crate) const X32: u32 = 0x4000_0000;

/// Whether a call that may install a filter may do so in all threads.
pub(crate) fn concerns_all(call: &SeccompData) -> bool {
    /// `PR_SET_SECCOMP` has no flags.
    const FLAGS: usize = 1;
    call.args[FLAGS] & u64::from(Flag::Tsync.bit()) != 0
}

/// Whether a call may install a filter.
pub(crate) fn may_install(call: &SeccompData) -> bool {
    let sets_filter = call.args[0] as i32 == libc::PR_SET_SECCOMP;
    is_seccomp(call) || is_one(call, PRCTL) && sets_filter
}

/// Whether a call is `seccomp`.
pub(crate) fn is_seccomp(call: &SeccompData) -> bool {
    is_one(call, SECCOMP)
}

/// The numbers of a call in both interfaces; that of x86-64 stands for x32, too.
pub(crate) type Numbers = (&'static [u32; 1], &'static [u32; 1]);
pub(crate) const SECCOMP: Numbers = (&[317], &[354]);
pub(crate) const PRCTL: Numbers = (&[157], &[172]);

fn is_one(call: &SeccompData, ([x86_64], [x86]): Numbers) -> bool {
    call.arch == Arch::X86_64.audit() && call.nr & !X32 == *x86_64
        || call.arch == Arch::X86.audit() && call.nr == *x86
}
