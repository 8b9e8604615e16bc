//! The kernel's own errors of calls that a signal has interrupted.
//!
//! No program sees them: on its way back to the program the kernel makes the call again, or has it fail with `EINTR`. Tracers see
//! them, and so do programs in the kernel. The source is `include/linux/errno.h`.

use std::ops::RangeInclusive;

/// `ERESTARTSYS`: restarted unless a handler without `SA_RESTART` runs.
pub const SYS: i64 = -512;
/// `ERESTARTNOINTR`: made again whatever happens.
pub const NO_INTR: i64 = -513;
/// `ERESTARTNOHAND`: made again if no handler runs.
pub const NO_HAND: i64 = -514;
/// `ERESTART_RESTARTBLOCK`: gone on with by `restart_syscall` if no handler runs.
pub const BLOCK: i64 = -516;

/// All of them.
///
/// ```
/// use tamis_abi::restart;
/// assert!(restart::CODES.contains(&restart::NO_HAND));
/// assert!(!restart::CODES.contains(&-4));
/// ```
pub const CODES: RangeInclusive<i64> = BLOCK..=SYS;
