//! The assumed release of systemd: the requested one, otherwise the machine's, otherwise the newest known one.
//!
//! This module doesn't inspect the machine: the installed release is an input, like the kernel's version. Without it,
//! the newest release is assumed on every machine.

use tamis_diag::{Diagnostic, Severity};

use super::version::SystemdVersion;
use crate::code;

/// The caller's settings for systemd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The requested release.
    pub asked: Option<SystemdVersion>,
    /// The installed release.
    pub installed: Option<SystemdVersion>,
}

/// The reason for an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The release was requested.
    Asked,
    /// The release is installed.
    Installed,
    /// The release is the newest known one.
    Newest,
}

/// An assumed release with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// The release as requested or found.
    pub named: SystemdVersion,
    /// The same or, if it is unknown, the nearest known one.
    pub version: SystemdVersion,
    /// The reason.
    pub origin: Origin,
}

impl Settings {
    /// The assumed release.
    pub fn assumed(&self) -> Assumed {
        let (named, origin) = match (self.asked, self.installed) {
            (Some(asked), _) => (asked, Origin::Asked),
            (None, Some(installed)) => (installed, Origin::Installed),
            (None, None) => (SystemdVersion::newest(), Origin::Newest),
        };
        Assumed {
            named,
            version: named.known(),
            origin,
        }
    }
}

impl Assumed {
    /// A note on a release that was not requested, or a warning about an unknown release that another one replaces.
    /// `done` is the consequence: `read as by`.
    pub fn diagnostic(&self, done: &str) -> Option<Diagnostic> {
        let Assumed {
            named,
            version,
            origin,
        } = *self;
        let help = "`-O systemd=VERSION` selects another release";
        if version.major != named.major {
            let newest = SystemdVersion::newest();
            let oldest = SystemdVersion::OLDEST;
            let why = match named.major > newest.major {
                true => format!("systemd {named} is newer than {newest}, the newest known"),
                false => format!("systemd {named} is older than {oldest}, the oldest known"),
            };
            let diagnostic = Diagnostic::warning(code::SYSTEMD_VERSION, why).note(format!(
                "the unit is {done} systemd {version}, which may differ"
            ));
            return Some(match origin {
                Origin::Asked => diagnostic,
                _ => diagnostic.help(help),
            });
        }
        let whose = match origin {
            Origin::Asked => return None,
            Origin::Installed => "this machine's",
            Origin::Newest => "the newest known",
        };
        let message = format!("{done} systemd {version} ({whose})");
        let note = Diagnostic::new(Severity::Note, code::SYSTEMD_VERSION, message);
        Some(note.help(help))
    }
}
