//! Warnings about profiles that one container runtime accepts and another rejects or reads differently.
//!
//! The facts were determined with hundreds of profiles for runc 1.1.5 and 1.5.3, crun 1.8.1, and the parsers of Docker
//! 20.10 and 28.5, Podman 4.3 and containerd 2.4. A profile that all of them reject is an error of the parser.

use tamis_abi::ActionKind;
use tamis_diag::json::Reader;
use tamis_diag::{Diagnostic, Span};

use super::model::Profile;
use crate::code;

/// The conditions of an entry that crun reads.
const MAX_CONDITIONS_OF_CRUN: usize = 6;
/// The longest path of a socket, without the terminating zero.
const MAX_SOCKET_PATH_BYTES: usize = 107;
/// The flag that affects only supervisors.
const WAIT_KILLABLE_RECV: &str = "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV";
/// The flag that is incompatible with a listener.
const TSYNC: &str = "SECCOMP_FILTER_FLAG_TSYNC";

/// Reports problems of a whole profile, which begins at `start`.
pub(super) fn check(reader: &mut Reader, profile: &Profile, start: Span) {
    let notifies = |kind: ActionKind| kind == ActionKind::Notify;
    let mut entries = profile.entries.iter();
    let notifying = entries.find(|entry| notifies(entry.action.kind));
    let place = match (notifies(profile.default.kind), notifying) {
        (true, _) => Some(start),
        (false, entry) => entry.map(|entry| entry.span),
    };
    if let Some(place) = place {
        check_listener(reader, profile, place);
    } else {
        check_without_listener(reader, profile, start);
    }
    if notifies(profile.default.kind) {
        warn(
            reader,
            start,
            "runc refuses SCMP_ACT_NOTIFY as the default action",
            "crun runs it",
            "use another default, and list the calls to be notified of",
        );
    }
    for entry in &profile.entries {
        let mut names = entry.names.iter();
        if let Some(name) = names.find(|name| notifies(entry.action.kind) && name.text == "write") {
            warn(
                reader,
                name.span,
                "runc refuses SCMP_ACT_NOTIFY for `write`",
                "runc itself writes between the installation of the filter and the program",
                "leave `write` out of this entry",
            );
        }
        if entry.args.len() > MAX_CONDITIONS_OF_CRUN {
            warn(
                reader,
                entry.span,
                "crun ignores the conditions of an entry behind the sixth",
                "other runtimes take them all",
                "merge conditions on one argument",
            );
        }
    }
}

/// Checks a profile with a supervisor.
fn check_listener(reader: &mut Reader, profile: &Profile, place: Span) {
    match profile.listener_path.as_deref() {
        None => warn(
            reader,
            place,
            "SCMP_ACT_NOTIFY without `listenerPath`",
            "runc refuses it, crun runs it and the calls fail with ENOSYS",
            "set `listenerPath` to the socket of a supervisor",
        ),
        Some(path) if !path.starts_with('/') || path.len() > MAX_SOCKET_PATH_BYTES => {
            let message = "`listenerPath` is no absolute path of a socket";
            let diagnostic = Diagnostic::error(code::OCI_RANGE, message)
                .label(place, "no runtime starts a container with this")
                .help(format!(
                    "use an absolute path of at most {MAX_SOCKET_PATH_BYTES} bytes"
                ));
            reader.diagnostics.push(diagnostic);
        }
        Some(_) => {}
    }
    if profile.flags.iter().any(|flag| flag == TSYNC) {
        warn(
            reader,
            place,
            "SCMP_ACT_NOTIFY with SECCOMP_FILTER_FLAG_TSYNC",
            "the kernel refuses both together, so crun doesn't start the container",
            "leave the flag out",
        );
    }
}

/// Checks a profile without a supervisor.
fn check_without_listener(reader: &mut Reader, profile: &Profile, start: Span) {
    if profile.flags.iter().any(|flag| flag == WAIT_KILLABLE_RECV) {
        warn(
            reader,
            start,
            "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV without SCMP_ACT_NOTIFY",
            "runc refuses it, and crun then installs the filter without any of the flags",
            "leave the flag out",
        );
    }
    if profile.listener_path.is_some() {
        warn(
            reader,
            start,
            "`listenerPath` without SCMP_ACT_NOTIFY",
            "crun connects to it all the same, and refuses the profile if nobody listens",
            "leave it out",
        );
    }
}

/// Warns about a difference between runtimes.
pub(super) fn warn(reader: &mut Reader, place: Span, message: &str, label: &str, help: &str) {
    let diagnostic = Diagnostic::warning(code::OCI_RUNTIMES, message)
        .label(place, label)
        .help(help);
    reader.ignored(diagnostic);
}
