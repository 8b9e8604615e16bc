//! The settings of a service that the filter replaces, those that stay, and those that prevent hardening.
//!
//! Settings that are only filters are reset and replaced. Settings with other effects, such as namespaces or removed
//! capabilities, stay with their filters, and the merged filter includes these. For three of them the other effects can
//! be written as separate settings, on request.

use std::path::Path;

use tamis_policy::systemd::{self, Assignment, Hostname, SystemdVersion};
use tamis_session::path_text::PathText;

use super::credentials::Capabilities;
use super::words;

/// Settings that are only filters, with the value that resets each. [`Settings::change`] handles the other effects of
/// two of them.
const FILTERS: [(&str, &str); 9] = [
    ("SystemCallFilter", ""),
    ("SystemCallLog", ""),
    ("SystemCallArchitectures", ""),
    ("RestrictAddressFamilies", ""),
    ("RestrictNamespaces", ""),
    ("MemoryDenyWriteExecute", "no"),
    ("RestrictRealtime", "no"),
    ("RestrictSUIDSGID", "no"),
    ("LockPersonality", "no"),
];
/// The capabilities that settings remove from the bounding set (`unit_patch_contexts` in systemd's `unit.c`).
const UNBOUND: [(&str, &[&str]); 4] = [
    ("PrivateDevices", &["CAP_MKNOD", "CAP_SYS_RAWIO"]),
    ("ProtectClock", &["CAP_SYS_TIME", "CAP_WAKE_ALARM"]),
    ("ProtectKernelLogs", &["CAP_SYSLOG"]),
    ("ProtectKernelModules", &["CAP_SYS_MODULE"]),
];
/// The first version of systemd in which `MemoryDenyWriteExecute=` may use the kernel's `PR_SET_MDWE` instead of a
/// filter.
const MDWE_SINCE: u32 = 253;
/// The other effects of three settings, as in systemd 252.
const REWRITTEN: [(&str, &[&str]); 3] = [
    (
        "ProtectClock",
        &[
            "CapabilityBoundingSet=~CAP_SYS_TIME CAP_WAKE_ALARM",
            "DeviceAllow=char-rtc r",
        ],
    ),
    (
        "ProtectKernelLogs",
        &[
            "CapabilityBoundingSet=~CAP_SYSLOG",
            "InaccessiblePaths=-/proc/kmsg -/dev/kmsg",
        ],
    ),
    (
        "ProtectKernelModules",
        &[
            "CapabilityBoundingSet=~CAP_SYS_MODULE",
            "InaccessiblePaths=-/usr/lib/modules -/lib/modules",
        ],
    ),
];
/// Settings that hide the installer or the filter from the service, or give the installer the label for the service's
/// program.
const IN_THE_WAY: [(&str, &str); 5] = [
    (
        "RootDirectory",
        "the filter and what installs it are outside of it",
    ),
    (
        "RootImage",
        "the filter and what installs it are outside of it",
    ),
    (
        "AppArmorProfile",
        "it would be that of the program that installs the filter",
    ),
    (
        "SELinuxContext",
        "it would be that of the program that installs the filter",
    ),
    (
        "SmackProcessLabel",
        "it would be that of the program that installs the filter",
    ),
];
/// Settings that hide paths, with the index of the hidden path among the parts of a word between colons; without that
/// part the first one counts.
const HIDING: [(&str, usize); 5] = [
    ("InaccessiblePaths", 0),
    ("TemporaryFileSystem", 0),
    ("BindPaths", 1),
    ("BindReadOnlyPaths", 1),
    ("MountImages", 1),
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings<'a>(pub(super) &'a [Assignment]);

/// The changes to a service.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// The lines of the drop-in, without commands.
    pub(super) lines: Vec<String>,
    /// The settings that the filter replaces.
    pub(super) carried: Vec<&'static str>,
    /// The settings that stay with their filters.
    pub(super) kept: Vec<&'static str>,
}

impl Change {
    /// The lines as text.
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Whether a line of [`Change`] may have this key.
pub(super) fn is_own_key(key: &str) -> bool {
    let of_others = REWRITTEN.iter().flat_map(|(_, lines)| *lines);
    let mut of_others = of_others.filter_map(|line| line.split('=').next());
    let is_filter = FILTERS.iter().any(|(own, _)| *own == key);
    let is_rewritten = REWRITTEN.iter().any(|(own, _)| *own == key);
    let is_added = ["LimitRTPRIO", "ExecPaths"].contains(&key);
    is_filter || is_rewritten || is_added || of_others.any(|own| own == key)
}

impl<'a> Settings<'a> {
    fn all(self, key: &str) -> impl DoubleEndedIterator<Item = &'a str> {
        let own = self.0.iter();
        let own = own.filter(move |own| own.section == "Service" && own.key == key);
        own.map(|own| own.value.as_str())
    }

    /// The values of a setting since its last reset.
    pub(super) fn values(self, key: &str) -> Vec<&'a str> {
        let mut values = Vec::new();
        for value in self.all(key) {
            match value {
                "" => values.clear(),
                value => values.push(value),
            }
        }
        values
    }

    /// The value of a setting whose last assignment counts.
    pub(super) fn last(self, key: &str) -> Option<&'a str> {
        self.all(key).next_back()
    }

    /// The value of a switch: the last assignment that systemd accepts.
    pub(super) fn switch(self, key: &str) -> bool {
        let mut values = self.all(key).rev();
        values.find_map(systemd::boolean).unwrap_or(false)
    }

    /// A set of capabilities, parsed as by `config_parse_capability_set` in systemd's `load-fragment.c`.
    pub(super) fn capabilities(self, key: &str, initial: Capabilities) -> Capabilities {
        let mut set = initial;
        for value in self.all(key) {
            let (list, is_inverted) = match value.strip_prefix('~') {
                Some(list) => (list, true),
                None => (value, false),
            };
            let words = systemd::words(list);
            let named = words.iter().filter_map(|word| Capabilities::named(word));
            let named = named.fold(Capabilities::NONE, |all, own| all | own);
            let replaces = named == Capabilities::NONE || set == initial;
            set = match (is_inverted, replaces) {
                (true, true) => !named,
                (false, true) => named,
                (true, false) => set & !named,
                (false, false) => set | named,
            };
        }
        set
    }

    /// The bounding set before other settings remove capabilities.
    pub(super) fn bounding_set(self) -> Capabilities {
        let mut set = self.capabilities("CapabilityBoundingSet", Capabilities::ALL);
        for (_, names) in UNBOUND.iter().filter(|(key, _)| self.is_on(key)) {
            for name in names.iter().filter_map(|name| Capabilities::named(name)) {
                set = set & !name;
            }
        }
        set
    }

    /// Whether systemd installs filters (`context_has_seccomp` in its `exec-invoke.c`).
    pub(super) fn has_filters(self) -> bool {
        let filters = FILTERS.iter().map(|(key, _)| *key);
        let implied = ["DynamicUser"];
        let mixed = systemd::MIXED_SETTINGS
            .into_iter()
            .filter(|key| !implied.contains(key));
        let is_dynamic = self.switch("DynamicUser");
        is_dynamic || filters.chain(mixed).any(|key| self.is_on(key))
    }

    /// Whether a setting is assigned and, if it is a switch, on.
    pub(super) fn is_on(self, key: &str) -> bool {
        // `private` is no filter; a release that doesn't support it keeps the earlier value.
        if key == "ProtectHostname" {
            let releases = [SystemdVersion::OLDEST, SystemdVersion::newest()];
            return releases.into_iter().any(|release| {
                let mut values = self.all(key).rev();
                let last = values.find_map(|value| Hostname::parse(value, release));
                last == Some(Hostname::Fixed)
            });
        }
        let last = self.values(key).pop();
        last.is_some_and(|value| systemd::boolean(value) != Some(false))
    }

    /// The changes that replace filters by the merged one, for a version of systemd.
    pub(super) fn change(self, installer: &Path, rewrites: bool, version: Option<u32>) -> Change {
        let mut change = Change::default();
        for (key, reset) in FILTERS.into_iter().filter(|(key, _)| self.is_on(key)) {
            if self.does_more(key, version) {
                change.kept.push(key);
                continue;
            }
            change.carried.push(key);
            change.lines.push(format!("{key}={reset}"));
            // systemd sets this limit in support of the filter, unless the unit sets one.
            if key == "RestrictRealtime" && !self.has_limit("LimitRTPRIO") {
                change.lines.push("LimitRTPRIO=0".to_owned());
            }
        }
        for key in systemd::MIXED_SETTINGS
            .into_iter()
            .filter(|key| self.is_on(key))
        {
            let lines = REWRITTEN.iter().find(|(own, _)| *own == key && rewrites);
            match lines {
                None => change.kept.push(key),
                Some((_, lines)) => {
                    change.carried.push(key);
                    change.lines.push(format!("{key}=no"));
                    change
                        .lines
                        .extend(lines.iter().map(|line| (*line).to_owned()));
                }
            }
        }
        if self.hides_programs() {
            let listed = words::listed(installer).into_iter();
            change
                .lines
                .extend(listed.map(|path| format!("ExecPaths={path}")));
        }
        change
    }

    /// Whether a setting has effects besides a filter in this version of systemd, or with the other settings.
    fn does_more(self, key: &str, version: Option<u32>) -> bool {
        match key {
            "MemoryDenyWriteExecute" => version.is_none_or(|version| version >= MDWE_SINCE),
            // Limits of PAM take precedence over the one that systemd would set.
            "RestrictRealtime" => !self.values("PAMName").is_empty(),
            _ => false,
        }
    }

    /// Whether a limit has a valid value.
    fn has_limit(self, key: &str) -> bool {
        let is_number = |part: &str| {
            part == "infinity" || !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit())
        };
        self.all(key)
            .any(|value| value.splitn(2, ':').all(is_number))
    }

    /// Whether the service may execute only listed programs.
    fn hides_programs(self) -> bool {
        !self.values("NoExecPaths").is_empty()
    }

    /// The reasons why a service can't be hardened.
    pub(super) fn obstacles(self, paths: &[&Path]) -> Vec<String> {
        let mut found = Vec::new();
        for (key, why) in IN_THE_WAY {
            if !self.values(key).is_empty() {
                found.push(format!("{key}=: {why}"));
            }
        }
        if let Some(installer) = paths.first().filter(|path| words::listed(path).is_none())
            && self.hides_programs()
        {
            let installer = installer.text();
            found.push(format!(
                "NoExecPaths=: {installer} can't be written in ExecPaths=; install it by a path without links to the parent, \
                 quotes, backslashes and control characters"
            ));
        }
        found.extend(self.hidden(paths));
        found
    }

    /// Whether images add files to the service's file system.
    pub(super) fn has_extensions(self) -> bool {
        let mut keys = ["ExtensionImages", "ExtensionDirectories"].into_iter();
        keys.any(|key| !self.values(key).is_empty())
    }

    /// The settings that hide one of these files from the service.
    pub(super) fn hidden(self, paths: &[&Path]) -> Vec<String> {
        let mut found = Vec::new();
        for (key, part) in HIDING {
            let values = self.values(key).into_iter();
            for word in values.flat_map(systemd::words) {
                let mut parts = word.trim_start_matches(['-', '+']).split(':');
                let source = parts.next().unwrap_or_default();
                let hidden = if part == 0 {
                    Some(source)
                } else {
                    parts.next()
                };
                // A path that is bound to itself hides nothing.
                let Some(hidden) = hidden.filter(|hidden| part == 0 || *hidden != source) else {
                    continue;
                };
                let hides = |path: &&&Path| !hidden.is_empty() && path.starts_with(hidden);
                if let Some(path) = paths.iter().find(hides) {
                    found.push(format!("{key}={word}: it hides {}", path.text()));
                }
            }
        }
        let home = ["/home", "/root", "/run/user"];
        let is_home = |path: &&&Path| home.iter().any(|home| path.starts_with(home));
        if let Some(path) = paths
            .iter()
            .find(is_home)
            .filter(|_| self.is_on("ProtectHome"))
        {
            found.push(format!("ProtectHome=: it hides {}", path.text()));
        }
        let is_temporary = |path: &&&Path| path.starts_with("/tmp") || path.starts_with("/var/tmp");
        if let Some(path) = paths
            .iter()
            .find(is_temporary)
            .filter(|_| self.is_on("PrivateTmp"))
        {
            found.push(format!("PrivateTmp=: it hides {}", path.text()));
        }
        found
    }

    /// Notes on other effects, which are stricter than before.
    pub(super) fn notes(self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.hides_programs() {
            notes.push(
                "the service may also execute what installs the filter (ExecPaths=)".to_owned(),
            );
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(lines: &[(&str, &str)]) -> Vec<Assignment> {
        let assignment = |(key, value): &(&str, &str)| Assignment {
            section: "Service".to_owned(),
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        lines.iter().map(assignment).collect()
    }

    #[test]
    fn only_filters_are_reset_and_what_does_more_stays() {
        let all = settings(&[
            ("SystemCallFilter", "@system-service"),
            ("RestrictRealtime", "yes"),
            ("LockPersonality", "yes"),
            ("LockPersonality", "off"),
            ("ProtectClock", "true"),
            ("PrivateDevices", "1"),
            ("NoExecPaths", "/"),
        ]);
        let change = Settings(&all).change(Path::new("/e"), false, Some(252));
        assert_eq!(
            change.lines,
            [
                "SystemCallFilter=",
                "RestrictRealtime=no",
                "LimitRTPRIO=0",
                "ExecPaths=/e"
            ]
        );
        assert_eq!(change.kept, ["PrivateDevices", "ProtectClock"]);
        let change = Settings(&all).change(Path::new("/e"), true, Some(252));
        assert_eq!(change.kept, ["PrivateDevices"]);
        assert!(change.lines.contains(&"DeviceAllow=char-rtc r".to_owned()));
    }

    #[test]
    fn what_would_hide_the_filter_is_named() {
        let paths = [Path::new("/usr/bin/e"), Path::new("/home/f")];
        let of =
            |key: &str, value: &str| Settings(&settings(&[(key, value)])).obstacles(&paths).len();
        assert_eq!(of("RootImage", "/x"), 1);
        assert_eq!(of("InaccessiblePaths", "-/usr /opt"), 1);
        assert_eq!(of("TemporaryFileSystem", "/usr/bin:ro"), 1);
        assert_eq!(of("ProtectHome", "yes"), 1);
        assert_eq!(of("ProtectHome", "no"), 0);
        assert_eq!(of("InaccessiblePaths", "/opt"), 0);
        assert_eq!(of("BindPaths", "/usr/bin /usr:/usr /x:/opt"), 0);
        assert_eq!(of("BindReadOnlyPaths", "-/x:/usr:rbind"), 1);
    }
}
