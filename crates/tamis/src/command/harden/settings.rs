//! What of a service's settings becomes the filter, what stays, and what is in the way.
//!
//! Some settings are nothing but filters; they are reset, and the one filter stands for them. Others do more - they make
//! namespaces, take capabilities away - and have filters besides: they stay, with their filters, of which the one filter has
//! the meaning too. Of three of these the other effects can be said by settings of their own, if the user wants it.

use std::path::Path;

use tamis_policy::systemd::{self, Assignment};
use tamis_session::path_text::PathText;

use super::words;

/// Settings that are only filters, and the value that resets each.
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
/// Settings with filters and other effects.
const MIXED: [&str; 7] = [
    "DynamicUser",
    "PrivateDevices",
    "ProtectClock",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
];
/// The other effects of three of them, as systemd 252 has them.
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
/// Settings under which the program that installs the filter, or the filter, would not be found, or would get the label
/// of the service's own program.
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
/// Settings that hide parts of the file system, and which part of a word between colons names what is hidden; without that
/// part, the first.
const HIDING: [(&str, usize); 5] = [
    ("InaccessiblePaths", 0),
    ("TemporaryFileSystem", 0),
    ("BindPaths", 1),
    ("BindReadOnlyPaths", 1),
    ("MountImages", 1),
];

/// The settings of a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings<'a>(pub(super) &'a [Assignment]);

/// What changes.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// The lines of the drop-in, without those of commands.
    pub(super) lines: Vec<String>,
    /// The settings that become part of the filter.
    pub(super) carried: Vec<&'static str>,
    /// The settings that stay, with their filters.
    pub(super) kept: Vec<&'static str>,
}

impl Change {
    /// The lines as a text.
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Whether lines of [`Change`] may begin with this key.
pub(super) fn is_own_key(key: &str) -> bool {
    let of_others = REWRITTEN.iter().flat_map(|(_, lines)| *lines);
    let mut of_others = of_others.filter_map(|line| line.split('=').next());
    let is_filter = FILTERS.iter().any(|(own, _)| *own == key);
    let is_rewritten = REWRITTEN.iter().any(|(own, _)| *own == key);
    let is_added = key == "ExecPaths";
    is_filter || is_rewritten || is_added || of_others.any(|own| own == key)
}

impl<'a> Settings<'a> {
    /// The assignments of a setting.
    fn all(self, key: &str) -> impl DoubleEndedIterator<Item = &'a str> {
        let own = self.0.iter();
        let own = own.filter(move |own| own.section == "Service" && own.key == key);
        own.map(|own| own.value.as_str())
    }

    /// The values of a setting since it was last reset.
    fn values(self, key: &str) -> Vec<&'a str> {
        let mut values = Vec::new();
        for value in self.all(key) {
            match value {
                "" => values.clear(),
                value => values.push(value),
            }
        }
        values
    }

    /// The last value of a setting of which the last counts.
    pub(super) fn last(self, key: &str) -> Option<&'a str> {
        self.all(key).next_back()
    }

    /// The value of a switch: the last one that systemd takes for one.
    pub(super) fn switch(self, key: &str) -> bool {
        let value = |text: &str| match text.to_ascii_lowercase().as_str() {
            "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
            "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
            _ => None,
        };
        self.all(key).rev().find_map(value).unwrap_or(false)
    }

    /// Whether a setting is made and, if it is a switch, on.
    fn is_on(self, key: &str) -> bool {
        let last = self
            .values(key)
            .last()
            .map(|value| value.to_ascii_lowercase());
        let off = ["0", "no", "n", "false", "f", "off"];
        last.is_some_and(|value| !off.contains(&value.as_str()))
    }

    /// The lines that make the one filter stand for the others.
    pub(super) fn change(self, installer: &Path, rewrites: bool) -> Change {
        let mut change = Change::default();
        for (key, reset) in FILTERS {
            if self.is_on(key) {
                change.carried.push(key);
                change.lines.push(format!("{key}={reset}"));
            }
        }
        for key in MIXED.into_iter().filter(|key| self.is_on(key)) {
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

    /// Whether the service may execute only what is listed.
    fn hides_programs(self) -> bool {
        !self.values("NoExecPaths").is_empty()
    }

    /// Why a service can't be hardened; nothing if it can.
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

    /// Whether images add files to what the service sees.
    pub(super) fn has_extensions(self) -> bool {
        let mut keys = ["ExtensionImages", "ExtensionDirectories"].into_iter();
        keys.any(|key| !self.values(key).is_empty())
    }

    /// What hides one of these files from the service.
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
                // What is bound to its own place hides nothing.
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

    /// What else differs, stricter than before.
    pub(super) fn notes(self) -> Vec<String> {
        let mut notes = Vec::new();
        let users = self.values("User");
        let is_root = users.last().is_none_or(|user| ["root", "0"].contains(user));
        let has_own = self.is_on("NoNewPrivileges") || self.is_on("DynamicUser");
        if is_root && !has_own && self.0.iter().any(|own| own.key == "CapabilityBoundingSet") {
            notes.push(
                "without CAP_SYS_ADMIN in CapabilityBoundingSet= the filter is installed with no_new_privs, which the \
                 unit doesn't ask for"
                    .to_owned(),
            );
        }
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
        let change = Settings(&all).change(Path::new("/e"), false);
        assert_eq!(
            change.lines,
            ["SystemCallFilter=", "RestrictRealtime=no", "ExecPaths=/e"]
        );
        assert_eq!(change.kept, ["PrivateDevices", "ProtectClock"]);
        let change = Settings(&all).change(Path::new("/e"), true);
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
