//! The installed release of systemd, on this machine or in an image.
//!
//! Nothing is executed. The manager's library, `libsystemd-core-252.so`, has the major release in its name, and
//! contains the distribution's release in a text: `Manager: systemd 252 (252.39-1~deb12u2)`. Without the text the point
//! release is unknown. With several installed releases the result is none.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use tamis_policy::systemd::{PointRelease, SystemdVersion};

use crate::root::Root;

/// The folders of libraries; systemd's are below each, or below a folder of an architecture.
const FOLDERS: [&str; 3] = ["usr/lib", "usr/lib64", "lib"];
/// The prefix of the manager's library.
const MANAGER: &str = "libsystemd-core-";
/// The prefixes of systemd's libraries.
const LIBRARIES: [&str; 2] = [MANAGER, "libsystemd-shared-"];
/// The text before the release in the manager's library.
const MARK: &[u8] = b"Manager: systemd ";
/// The most bytes that are read after it.
const MAX_TEXT_BYTES: usize = 200;

/// The release of this machine; `None` if there is none.
pub fn installed() -> Option<SystemdVersion> {
    static FOUND: OnceLock<Option<SystemdVersion>> = OnceLock::new();
    *FOUND.get_or_init(|| only(&versions(&Root::new(Path::new("/")).ok()?)))
}

/// The only release; `None` if there are several. If files of one branch differ in detail, the most precise counts.
pub(crate) fn only(found: &BTreeSet<SystemdVersion>) -> Option<SystemdVersion> {
    let is_exact = |own: &&SystemdVersion| own.point != PointRelease::Unknown;
    let exact: Vec<SystemdVersion> = found.iter().filter(is_exact).copied().collect();
    let majors: BTreeSet<u16> = found.iter().map(|own| own.major).collect();
    match (majors.len(), exact.as_slice()) {
        (1, [only]) => Some(*only),
        (1, []) => found.first().copied(),
        _ => None,
    }
}

/// The releases of the libraries below a root.
pub(crate) fn versions(root: &Root) -> BTreeSet<SystemdVersion> {
    let mut versions = BTreeSet::new();
    for folder in FOLDERS.map(Path::new) {
        let of_arches = root.names(folder).into_iter();
        let of_arches = of_arches.map(|name| folder.join(name).join("systemd"));
        for place in [folder.join("systemd")].into_iter().chain(of_arches) {
            for name in root.names(&place) {
                let Some(major) = major_in_name(&name) else {
                    continue;
                };
                let is_manager = name.starts_with(MANAGER);
                let text = is_manager.then(|| root.read(&place.join(&name)).ok());
                let exact = text.flatten().and_then(|text| release_in_content(&text));
                let exact = exact.filter(|own| own.major == major);
                versions.insert(exact.unwrap_or(SystemdVersion::unknown_of(major)));
            }
        }
    }
    versions
}

/// The major release in the name of a library: 255 of `libsystemd-shared-255.4-1.so`.
fn major_in_name(name: &str) -> Option<u16> {
    let mut starts = LIBRARIES.into_iter();
    let version = starts.find_map(|start| name.strip_prefix(start))?;
    let version = version.strip_suffix(".so")?;
    let digits = version.find(|c: char| !c.is_ascii_digit());
    version[..digits.unwrap_or(version.len())].parse().ok()
}

/// The release in the manager's library, between the parentheses.
fn release_in_content(bytes: &[u8]) -> Option<SystemdVersion> {
    let places = bytes.windows(MARK.len());
    let place = places.into_iter().position(|window| window == MARK)?;
    let rest = &bytes[place + MARK.len()..];
    let text = String::from_utf8_lossy(&rest[..rest.len().min(MAX_TEXT_BYTES)]);
    let inside = text.split_once('(')?.1.split_once(')')?.0;
    let version: SystemdVersion = inside.parse().ok()?;
    Some(match version.point {
        // A distribution may have patched it without a new number.
        PointRelease::Newest => SystemdVersion::unknown_of(version.major),
        _ => version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_number_that_a_name_begins_with() {
        assert_eq!(major_in_name("libsystemd-shared-252.so"), Some(252));
        assert_eq!(major_in_name("libsystemd-core-255.4-1.fc40.so"), Some(255));
        assert_eq!(major_in_name("libsystemd-shared.so"), None);
        assert_eq!(major_in_name("libudev-252.so"), None);
    }

    #[test]
    fn a_release_is_read_in_the_text_of_the_manager() {
        let read =
            |text: &str| release_in_content(&[b"\x7fELF\0", text.as_bytes(), b"\0rest"].concat());
        let release = |text: &str| text.parse().ok();
        let text = "%sManager: systemd 257.13 (257.13-1~deb13u1)\n";
        assert_eq!(read(text), release("257.13"));
        let unknown = Some(SystemdVersion::unknown_of(252));
        assert_eq!(read("Manager: systemd 252 (252-32.el9_4.7)"), unknown);
        assert_eq!(read("Manager: systemd 252 (252)"), unknown);
        assert_eq!(read("systemd 252 (252.1)"), None);
        assert_eq!(read("Manager: systemd 252 (252.1"), None);
    }

    #[test]
    fn of_several_releases_none_is_known() {
        let release = |texts: &[&str]| {
            let all = texts.iter().map(|text| text.parse().expect("a version"));
            only(&all.collect())
        };
        assert_eq!(release(&["252.38", "252-1"]), "252.38".parse().ok());
        assert_eq!(release(&["252-1"]), Some(SystemdVersion::unknown_of(252)));
        assert_eq!(release(&["252.38", "252.39"]), None);
        assert_eq!(release(&["252.38", "257.1"]), None);
        assert_eq!(release(&[]), None);
    }
}
