//! `ProtectHostname=`: a boolean and, since systemd 258, `private`, optionally followed by a colon and a name.

use super::settings::boolean;
use super::version::SystemdVersion;

/// The longest name of a host (`LINUX_HOST_NAME_MAX`).
const MAX_NAME_BYTES: usize = 64;

/// The permission of a unit's programs to change the hostname.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hostname {
    /// They may change it.
    Shared,
    /// They may change that of a separate namespace; there is no filter.
    Private,
    /// They may not change it: `yes`.
    Fixed,
}

impl Hostname {
    /// The value that a release of systemd reads; `None` if it ignores the text.
    ///
    /// ```
    /// use tamis_policy::systemd::{Hostname, SystemdVersion};
    /// let of = |text, major| Hostname::parse(text, SystemdVersion::branch(major));
    /// assert_eq!(of("private:box", 258), Some(Hostname::Private));
    /// assert_eq!(of("private:box", 257), None);
    /// assert_eq!(of("on", 257), Some(Hostname::Fixed));
    /// assert_eq!(of("", 258), Some(Hostname::Shared));
    /// ```
    pub fn parse(text: &str, version: SystemdVersion) -> Option<Hostname> {
        let of_boolean = |text: &str| {
            boolean(text).map(|is_on| match is_on {
                true => Hostname::Fixed,
                false => Hostname::Shared,
            })
        };
        if !version.has_private_hostname() {
            return of_boolean(text);
        }
        if text.is_empty() {
            return Some(Hostname::Shared);
        }
        let (kind, name) = match text.split_once(':') {
            Some((kind, name)) => (kind, Some(name)),
            None => (text, None),
        };
        if name.is_some_and(|name| !is_name(name)) {
            return None;
        }
        let found = match kind {
            "private" => Hostname::Private,
            kind => of_boolean(kind)?,
        };
        (found != Hostname::Shared || name.is_none()).then_some(found)
    }
}

/// Whether a text may be a hostname. One with specifiers of systemd may.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty()
            && label.chars().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.contains('%') || text.len() <= MAX_NAME_BYTES && text.split('.').all(is_label)
}

/// The values of the setting, for a message.
pub(super) fn values(version: SystemdVersion) -> &'static str {
    match version.has_private_hostname() {
        true => "a boolean or `private`, and a name of a host behind a colon",
        false => "a boolean",
    }
}
