//! What the kernel's frames of signals on x86-64 say about vector registers: `struct _fpx_sw_bytes` of `asm/sigcontext.h`, in bytes of the oldest form that the processor leaves to programs.

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
