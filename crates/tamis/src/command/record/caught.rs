//! Recording on a platform that intercepts every call of a command.

use std::ffi::OsString;

use tamis_kernel::Ended;
use tamis_platform::Platform;
use tamis_recorder::caught::Counting;

use super::watch::RecordingView;
use crate::cli::Failure;
use crate::cli::platform::{self, GuestEvents};

/// Runs a command on a platform until it ends.
pub(super) fn record_command(
    watch: &RecordingView<'_>,
    on: &dyn Platform,
    counting: &Counting,
    command: &[OsString],
) -> Result<Ended, Failure> {
    let caps = on.caps();
    let events = match (caps.patches_sites, caps.sees_results) {
        (true, _) => GuestEvents::Uncounted(counting.tally()),
        (false, true) => GuestEvents::Results,
        (false, false) => GuestEvents::Calls,
    };
    let filter = Counting::filter();
    watch.during(|| platform::run_guest(on, command, &filter, counting, events))
}
