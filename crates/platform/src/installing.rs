//! Calls that may install a filter, in all interfaces of a machine.

use tamis_abi::{Arch, Nr, SeccompData, syscall};
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
    is_seccomp(call) || is_one(call, "prctl") && sets_filter
}

/// Whether a call is `seccomp`.
pub(crate) fn is_seccomp(call: &SeccompData) -> bool {
    is_one(call, "seccomp")
}

/// Whether a call has this name, in any interface.
fn is_one(call: &SeccompData, name: &str) -> bool {
    let nr = match call.arch == Arch::X86_64.audit() {
        true => call.nr & !X32,
        false => call.nr,
    };
    let arch = Arch::of_call(call.arch, nr);
    arch.is_some_and(|arch| syscall::name(arch, Nr(nr)) == Some(name))
}
