//! Releases of systemd, and their differences in the filters of a unit.
//!
//! The facts are those of systemd's sources: `src/shared/seccomp-util.c`, `src/core/execute.c` (to 254),
//! `src/core/exec-invoke.c` (since 255), `load-fragment.c`. If the release of a change is uncertain, the reading that
//! is never looser than systemd applies.

use std::fmt;
use std::str::FromStr;

use tamis_abi::KernelVersion;

use super::tables;

/// A release of systemd: `252`, `257.13`.
///
/// ```
/// use tamis_policy::systemd::SystemdVersion;
/// let installed: SystemdVersion = "252.39-1~deb12u2".parse().unwrap();
/// assert_eq!(installed.to_string(), "252.39");
/// assert_eq!("258".parse(), Ok(SystemdVersion::branch(258)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SystemdVersion {
    /// The number of the main release.
    pub major: u16,
    /// The release of the stable branch.
    pub point: PointRelease,
}

/// A release of a stable branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PointRelease {
    /// The newest known release.
    Newest,
    /// The release with this number; 0 is the main release.
    Number(u16),
    /// An unknown release with possible changes of a distribution: features of some releases only are uncertain.
    Unknown,
}

/// The first kernel with `PR_SET_MDWE`.
const MDWE_KERNEL: KernelVersion = KernelVersion::new(6, 3);

impl SystemdVersion {
    /// The oldest known release.
    pub const OLDEST: SystemdVersion = SystemdVersion::branch(252);

    /// The newest release of a branch.
    pub const fn branch(major: u16) -> SystemdVersion {
        SystemdVersion {
            major,
            point: PointRelease::Newest,
        }
    }

    /// Some release of a branch.
    pub const fn unknown_of(major: u16) -> SystemdVersion {
        SystemdVersion {
            major,
            point: PointRelease::Unknown,
        }
    }

    /// The newest known release.
    pub fn newest() -> SystemdVersion {
        let trees = tables::trees().iter().copied();
        let newest = trees.max().unwrap_or(SystemdVersion::OLDEST);
        SystemdVersion::branch(newest.major)
    }

    /// This release, or the nearest known one.
    pub fn known(self) -> SystemdVersion {
        let (oldest, newest) = (SystemdVersion::OLDEST, SystemdVersion::newest());
        match self.major {
            major if major < oldest.major => oldest,
            major if major > newest.major => newest,
            _ => self,
        }
    }

    /// Whether calls outside of `@known` get `ENOSYS` with an allow list: `override_default_action`, of 255 or 256. The
    /// action for all others is the stricter one, so 255 is included.
    pub const fn answers_unknown_calls_with_enosys(self) -> bool {
        self.major >= 256
    }

    /// Whether `write` is allowed regardless of the list: since 257, and in late releases of 256, which are treated
    /// like early ones.
    pub const fn always_allows_write(self) -> bool {
        self.major >= 257
    }

    /// Whether `MemoryDenyWriteExecute=` is `PR_SET_MDWE` without a filter on every kernel since this one.
    pub fn has_mdwe(self, kernel: Option<KernelVersion>) -> bool {
        self.may_have_mdwe() && kernel.is_some_and(|kernel| kernel >= MDWE_KERNEL)
    }

    /// Whether this is the case on new kernels.
    pub const fn may_have_mdwe(self) -> bool {
        self.major >= 254
    }

    /// Whether `RestrictNamespaces=` includes time namespaces in all namespaces.
    pub const fn restricts_time(self) -> bool {
        self.major >= 258
    }

    /// Whether `ProtectHostname=` accepts `private` and names.
    pub(super) const fn has_private_hostname(self) -> bool {
        self.major >= 258
    }

    /// Whether an unknown family in `RestrictAddressFamilies=` ends the line, so that subsequent families have no
    /// effect. This began with 261 or 262; for 261 the stricter reading applies.
    pub(super) const fn unknown_family_ends_line(self, permits: bool) -> bool {
        self.major >= 262 || self.major == 261 && permits
    }
}

impl fmt::Display for SystemdVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.point {
            PointRelease::Newest | PointRelease::Unknown => write!(f, "{}", self.major),
            PointRelease::Number(point) => write!(f, "{}.{point}", self.major),
        }
    }
}

/// The error for a text that is not a version of systemd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSystemdVersionError {
    text: String,
}

impl fmt::Display for ParseSystemdVersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a version of systemd such as 258 or 252.39",
            self.text
        )
    }
}

impl std::error::Error for ParseSystemdVersionError {}

impl FromStr for SystemdVersion {
    type Err = ParseSystemdVersionError;

    /// Parses `MAJOR` or `MAJOR.POINT`; a distribution's suffix after `-`, `~` or `+` is ignored. `252-32.el9` lacks
    /// the number of a stable release, and may be any release with changes of the distribution. A release candidate,
    /// `258~rc1`, is some release of the previous branch with any part of the new features.
    fn from_str(text: &str) -> Result<SystemdVersion, ParseSystemdVersionError> {
        parse(text).ok_or_else(|| ParseSystemdVersionError {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<SystemdVersion> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (number, suffix) = match text.find(['-', '~', '+']) {
        Some(place) => (&text[..place], &text[place + 1..]),
        None => (text, ""),
    };
    let digits = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u16>().ok())?
    };
    let (major, point) = match number.split_once('.') {
        Some((major, point)) => (digits(major)?, PointRelease::Number(digits(point)?)),
        None if suffix.is_empty() => (digits(number)?, PointRelease::Newest),
        None => (digits(number)?, PointRelease::Unknown),
    };
    match suffix.starts_with("rc") {
        true => Some(SystemdVersion::unknown_of(major.checked_sub(1)?)),
        false => Some(SystemdVersion { major, point }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        for text in ["252", "257.13"] {
            let version: SystemdVersion = text.parse().expect("a version");
            assert_eq!(version.to_string(), text);
        }
    }

    #[test]
    fn suffixes_of_distributions_are_ignored() {
        for (text, version) in [
            ("252.39-1~deb12u2", (252, PointRelease::Number(39))),
            ("255.4-1ubuntu8", (255, PointRelease::Number(4))),
            ("252-32.el9_4.7", (252, PointRelease::Unknown)),
            ("v257.2", (257, PointRelease::Number(2))),
            ("258~rc2-1", (257, PointRelease::Unknown)),
        ] {
            let (major, point) = version;
            assert_eq!(text.parse(), Ok(SystemdVersion { major, point }), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", "x", "-1", "252.", ".5", "252.x", "+252", "99999", "252.1.2",
        ] {
            assert!(text.parse::<SystemdVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn releases_that_are_not_known_are_the_nearest() {
        assert_eq!(SystemdVersion::branch(247).known(), SystemdVersion::OLDEST);
        let newest = SystemdVersion::newest();
        assert!(newest.major >= 262);
        assert_eq!(SystemdVersion::branch(9999).known(), newest);
        assert_eq!(SystemdVersion::branch(255).known().major, 255);
    }
}
