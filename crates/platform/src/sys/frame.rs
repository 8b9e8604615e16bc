//! The kernel's frames of signals on x86-64: what they say about vector registers, and the stack that they take.
//!
//! The first is `struct _fpx_sw_bytes` of `asm/sigcontext.h`, in bytes of the oldest form that the processor leaves to programs.

use std::arch::x86_64::__cpuid_count;

use super::guest;

/// Where there is [`MAGIC_1`], if the frame has more than the oldest form.
pub(crate) const MAGIC_1_AT: usize = 464;
/// The size of everything, with [`MAGIC_2`].
pub(crate) const EXTENDED_SIZE_AT: usize = 468;
/// The components that are there: not those that the process has no permission for.
pub(crate) const XFEATURES_AT: usize = 472;
/// The size of the components, behind which there is [`MAGIC_2`].
pub(crate) const XSTATE_SIZE_AT: usize = 480;
/// `FP_XSTATE_MAGIC1`.
pub(crate) const MAGIC_1: u32 = 0x4650_5853;
/// `FP_XSTATE_MAGIC2`.
pub(crate) const MAGIC_2: u32 = 0x4650_5845;

/// What the handler needs of a stack besides the kernel's frame: 2.6 KiB were measured without optimisation.
const HANDLER_BYTES: u64 = 4096;

/// The least size of a stack for signals of a guest whose calls are caught by one, for `AT_MINSIGSTKSZ`: it has a frame for a signal
/// of the guest's, and one for a call in its handler.
pub(crate) fn min_stack_bytes() -> u64 {
    2 * frame_bytes() + HANDLER_BYTES
}

/// The largest frame of the kernel's.
fn frame_bytes() -> u64 {
    /// The general registers, the information about a signal, and room for alignment.
    const OTHERS_BYTES: u64 = 1024;
    const EXTENDED_STATE: u32 = 0xd;
    // SAFETY: reads a number of this process.
    match unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } {
        // Before 5.14.
        0 => u64::from(__cpuid_count(EXTENDED_STATE, 0).ebx) + OTHERS_BYTES,
        bytes => bytes,
    }
}

/// Whether the handler has room on this stack for signals, and can write to it.
pub(crate) fn has_room(first: u64, len_bytes: u64) -> bool {
    const PAGE: u64 = 4096;
    let needed = min_stack_bytes();
    let Some(end) = first.checked_add(len_bytes) else {
        return false;
    };
    // The byte that is there stays.
    let is_writable = |address: u64| {
        let mut byte = [0];
        guest::read(address, &mut byte) == Ok(1) && guest::write(address, &byte) == Ok(1)
    };
    let pages = (end.wrapping_sub(needed)..end).step_by(PAGE as usize);
    len_bytes >= needed && pages.chain([end - 1]).all(is_writable)
}
