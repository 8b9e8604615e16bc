//! Which release of systemd is installed: on this machine, or in an image.
//!
//! Nothing is executed. The manager's library, `libsystemd-core-252.so`, has the main release in its name and the release of
//! the distribution in a text, `Manager: systemd 252 (252.39-1~deb12u2)`. Where the text isn't found, any release of the
//! branch may be meant. Where several are installed, none is known.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use tamis_policy::systemd::{PointRelease, SystemdVersion};

use super::root::Root;

/// The folders of libraries, each of which has systemd's below it, or those of architectures.
const FOLDERS: [&str; 3] = ["usr/lib", "usr/lib64", "lib"];
/// What the name of the manager's library begins with.
const MANAGER: &str = "libsystemd-core-";
/// What the names of systemd's libraries begin with.
const LIBRARIES: [&str; 2] = [MANAGER, "libsystemd-shared-"];
/// Before the release in a file of the manager.
const MARK: &[u8] = b"Manager: systemd ";
/// What is read of the text behind it.
const MAX_TEXT_BYTES: usize = 200;

/// The release that is installed on this machine, if there is one.
pub fn of_machine() -> Option<SystemdVersion> {
    static FOUND: OnceLock<Option<SystemdVersion>> = OnceLock::new();
    *FOUND.get_or_init(|| only(&versions(&Root::new(Path::new("/")).ok()?)))
}

/// The only one of several releases. Of a branch of which one file says more than others that counts.
pub fn only(found: &BTreeSet<SystemdVersion>) -> Option<SystemdVersion> {
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
pub fn versions(root: &Root) -> BTreeSet<SystemdVersion> {
    let mut versions = BTreeSet::new();
    for folder in FOLDERS.map(Path::new) {
        let of_arches = root.names(folder).into_iter();
        let of_arches = of_arches.map(|name| folder.join(name).join("systemd"));
        for place in [folder.join("systemd")].into_iter().chain(of_arches) {
            for name in root.names(&place) {
                let Some(major) = of_name(&name) else {
                    continue;
                };
                let is_manager = name.starts_with(MANAGER);
                let text = is_manager.then(|| root.read(&place.join(&name)).ok());
                let exact = text.flatten().and_then(|text| of_content(&text));
                let exact = exact.filter(|own| own.major == major);
                versions.insert(exact.unwrap_or(SystemdVersion::unknown_of(major)));
            }
        }
    }
    versions
}

/// The main release in the name of a library: 255 of `libsystemd-shared-255.4-1.so`.
fn of_name(name: &str) -> Option<u16> {
    let mut starts = LIBRARIES.into_iter();
    let version = starts.find_map(|start| name.strip_prefix(start))?;
    let version = version.strip_suffix(".so")?;
    let digits = version.find(|c: char| !c.is_ascii_digit());
    version[..digits.unwrap_or(version.len())].parse().ok()
}

/// The release that a file of the manager says: that between the brackets.
fn of_content(bytes: &[u8]) -> Option<SystemdVersion> {
    let places = bytes.windows(MARK.len());
    let place = places.into_iter().position(|window| window == MARK)?;
    let rest = &bytes[place + MARK.len()..];
    let text = String::from_utf8_lossy(&rest[..rest.len().min(MAX_TEXT_BYTES)]);
    let inside = text.split_once('(')?.1.split_once(')')?.0;
    let version: SystemdVersion = inside.parse().ok()?;
    Some(match version.point {
        // A distribution may have changed it without a number.
        PointRelease::Newest => SystemdVersion::unknown_of(version.major),
        _ => version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_number_that_a_name_begins_with() {
        assert_eq!(of_name("libsystemd-shared-252.so"), Some(252));
        assert_eq!(of_name("libsystemd-core-255.4-1.fc40.so"), Some(255));
        assert_eq!(of_name("libsystemd-shared.so"), None);
        assert_eq!(of_name("libudev-252.so"), None);
    }

    #[test]
    fn a_release_is_read_in_the_text_of_the_manager() {
        let of = |text: &str| of_content(&[b"\x7fELF\0", text.as_bytes(), b"\0rest"].concat());
        let release = |text: &str| text.parse().ok();
        let text = "%sManager: systemd 257.13 (257.13-1~deb13u1)\n";
        assert_eq!(of(text), release("257.13"));
        let unknown = Some(SystemdVersion::unknown_of(252));
        assert_eq!(of("Manager: systemd 252 (252-32.el9_4.7)"), unknown);
        assert_eq!(of("Manager: systemd 252 (252)"), unknown);
        assert_eq!(of("systemd 252 (252.1)"), None);
        assert_eq!(of("Manager: systemd 252 (252.1"), None);
    }

    #[test]
    fn of_several_releases_none_is_known() {
        let of = |texts: &[&str]| {
            let all = texts.iter().map(|text| text.parse().expect("a version"));
            only(&all.collect())
        };
        assert_eq!(of(&["252.38", "252-1"]), "252.38".parse().ok());
        assert_eq!(of(&["252-1"]), Some(SystemdVersion::unknown_of(252)));
        assert_eq!(of(&["252.38", "252.39"]), None);
        assert_eq!(of(&["252.38", "257.1"]), None);
        assert_eq!(of(&[]), None);
    }
}
