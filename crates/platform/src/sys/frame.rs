//! The kernel's signal frames on x86-64: their description of vector registers, and their stack space.
//!
//! The first constants are offsets in `struct _fpx_sw_bytes` of `asm/sigcontext.h`, in bytes of the oldest form, in a
//! part that the processor leaves to software.

use std::arch::x86_64::__cpuid_count;

use super::guest;

/// The offset of [`MAGIC_1`], which is present if the frame has more than the oldest form.
pub(crate) const MAGIC_1_AT: usize = 464;
/// The offset of the total size, with [`MAGIC_2`].
pub(crate) const EXTENDED_SIZE_AT: usize = 468;
/// The offset of the components that are present: not those that the process has no permission for.
pub(crate) const XFEATURES_AT: usize = 472;
/// The offset of the size of the components, which [`MAGIC_2`] follows.
pub(crate) const XSTATE_SIZE_AT: usize = 480;
/// `FP_XSTATE_MAGIC1`.
pub(crate) const MAGIC_1: u32 = 0x4650_5853;
/// `FP_XSTATE_MAGIC2`.
pub(crate) const MAGIC_2: u32 = 0x4650_5845;

/// The handler's stack space besides the kernel's frame: 2.6 KiB were measured without optimisation.
const HANDLER_BYTES: u64 = 4096;

/// The least size of a signal stack for guests whose calls are caught by a signal, for `AT_MINSIGSTKSZ`: it holds a
/// frame for a signal of the guest, and one for a call in its handler.
pub(crate) fn min_stack_bytes() -> u64 {
    2 * frame_bytes() + HANDLER_BYTES
}

/// The largest frame of the kernel.
fn frame_bytes() -> u64 {
    /// The general registers, the information about a signal, and room for alignment.
    const OTHERS_BYTES: u64 = 1024;
    const EXTENDED_STATE: u32 = 0xd;
    // SAFETY: reads a number of this process.
    match unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } {
        // Kernels before 5.14 don't provide it.
        0 => u64::from(__cpuid_count(EXTENDED_STATE, 0).ebx) + OTHERS_BYTES,
        bytes => bytes,
    }
}

/// Whether the handler has room on this signal stack, and can write to it.
pub(crate) fn has_room(first: u64, len_bytes: u64) -> bool {
    const PAGE: u64 = 4096;
    let needed = min_stack_bytes();
    let Some(end) = first.checked_add(len_bytes) else {
        return false;
    };
    // The existing byte is preserved.
    let is_writable = |address: u64| {
        let mut byte = [0];
        guest::read(address, &mut byte) == Ok(1) && guest::write(address, &byte) == Ok(1)
    };
    let pages = (end.wrapping_sub(needed)..end).step_by(PAGE as usize);
    len_bytes >= needed && pages.chain([end - 1]).all(is_writable)
}
