//! systemd below a root: its version, and the privileges of the running one.
//!
//! What systemd makes of filters depends on its version, and an image has no running one; the version is in the name of a
//! library, `libsystemd-shared-252.so`. An image without systemd is taken for one whose services the machine's runs. Where
//! no library is found, or several versions, the version is unknown.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::credentials::Credentials;
use super::root::Root;

/// The folders of libraries, each of which has systemd's below it, or those of architectures.
const FOLDERS: [&str; 3] = ["usr/lib", "usr/lib64", "lib"];
/// What the name of systemd's library is between.
const LIBRARY: (&str, &str) = ("libsystemd-shared-", ".so");

/// The version of systemd, if it can be found: below the root, or the machine's for an image without systemd.
pub(super) fn version(root: &Root) -> Option<u32> {
    let mut versions = versions(root);
    if versions.is_empty() {
        versions = Root::new(Path::new("/")).map_or(versions, |root| self::versions(&root));
    }
    let first = versions.first().copied();
    first.filter(|_| versions.len() == 1)
}

/// The versions of the libraries below a root.
fn versions(root: &Root) -> BTreeSet<u32> {
    let mut versions = BTreeSet::new();
    for folder in FOLDERS.map(Path::new) {
        let of_arches = root.names(folder).into_iter();
        let of_arches = of_arches.map(|name| folder.join(name).join("systemd"));
        for place in [folder.join("systemd")].into_iter().chain(of_arches) {
            let names = root.names(&place);
            versions.extend(names.iter().filter_map(|name| of_name(name)));
        }
    }
    versions
}

/// The credentials of the manager: those of the machine's first process, or all of them for an image.
pub(super) fn credentials(root: &Root) -> Credentials {
    let status = match root.is_own() {
        true => fs::read_to_string("/proc/1/status").unwrap_or_default(),
        false => String::new(),
    };
    Credentials::of_status(&status).unwrap_or(Credentials::MANAGER)
}

/// The version in the name of a library: 255 of `libsystemd-shared-255.4-1.so`.
fn of_name(name: &str) -> Option<u32> {
    let (start, end) = LIBRARY;
    let version = name.strip_prefix(start)?.strip_suffix(end)?;
    let digits = version.find(|c: char| !c.is_ascii_digit());
    version[..digits.unwrap_or(version.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_number_that_a_name_begins_with() {
        assert_eq!(of_name("libsystemd-shared-252.so"), Some(252));
        assert_eq!(of_name("libsystemd-shared-255.4-1.fc40.so"), Some(255));
        assert_eq!(of_name("libsystemd-shared.so"), None);
        assert_eq!(of_name("libsystemd-core-252.so"), None);
    }
}
