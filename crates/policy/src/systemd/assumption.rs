//! Which release of systemd is meant: the one that the caller asks for, else the machine's, else the newest that is known.
//!
//! Nothing is looked up here: what the machine has is an input, as the kernel's version is. A caller that says nothing gets the
//! newest release, on any machine.

use tamis_diag::{Diagnostic, Severity, code};

use super::version::SystemdVersion;

/// What a caller says of systemd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The release that was asked for.
    pub asked: Option<SystemdVersion>,
    /// The release that the machine has.
    pub installed: Option<SystemdVersion>,
}

/// Why a release is assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was asked for.
    Asked,
    /// The machine has it.
    Installed,
    /// It is the newest that is known.
    Newest,
}

/// A release, and why it is assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// The release, as it was named or found.
    pub named: SystemdVersion,
    /// The same or, if that isn't known, the nearest.
    pub version: SystemdVersion,
    /// Why.
    pub origin: Origin,
}

impl Settings {
    /// The release that is meant.
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
    /// What there is to say: of a release that nobody asked for which one it is, of one that isn't known which one stands
    /// for it. A note says what is done: `read as by`.
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
