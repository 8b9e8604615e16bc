//! The privileges of a service's processes with systemd's filters and with the drop-in.
//!
//! systemd sets `no_new_privs` to install filters without privileges (`context_has_no_new_privileges` in `execute.c` of
//! systemd 252). The drop-in resets the filters, so the installer must set it in the same cases. They are derived by
//! systemd's steps from the fork to the program, for each command and its prefixes, with and without the drop-in. From
//! version 255 on (`exec-invoke.c`), systemd instead keeps capabilities until its filters are installed, and removes
//! CAP_SETUID. If the version is unknown, both rules are applied and the stricter result counts.
//!
//! The manager is that of the machine; for an image it is assumed to have all privileges. Changes by PAM modules are
//! not considered.

use tamis_report::harden::{CommandStatus, StatusEntry};

use super::commands::CommandLine;
use super::credentials::{Capabilities, Credentials, SECURE_BITS};
use super::settings::Settings;
use tamis_policy::systemd;

/// systemd's rule for the privileges to install filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Sets `no_new_privs` without effective CAP_SYS_ADMIN.
    Before255,
    /// Keeps CAP_SYS_ADMIN until the filters are installed, if they permit it.
    Since255,
}

impl Rule {
    /// The rules of a version; all if it is unknown.
    pub(super) fn of_version(version: Option<u32>) -> &'static [Rule] {
        match version {
            Some(..255) => &[Rule::Before255],
            Some(_) => &[Rule::Since255],
            None => &[Rule::Before255, Rule::Since255],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Rule::Before255 => "before 255",
            Rule::Since255 => "255 and newer",
        }
    }
}

/// The user of the service's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    /// The manager's user.
    Unset,
    /// The user with ID 0.
    Root,
    /// Another user.
    Other,
}

/// The settings of a service that affect privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Privileges {
    /// The manager's credentials.
    pub(super) manager: Credentials,
    /// The possible users; several if the name has a specifier.
    pub(super) users: Vec<User>,
    /// Whether the unit sets `no_new_privs` itself.
    pub(super) sets_no_new_privs: bool,
    pub(super) bounding: Capabilities,
    pub(super) ambient: Capabilities,
    pub(super) secure_bits: u32,
    pub(super) has_filters: bool,
    /// Whether the filters permit the calls by which systemd 255 removes capabilities.
    pub(super) lets_change: bool,
}

impl Privileges {
    /// The privileges of a service. The function returns whether a user's ID is 0.
    pub(super) fn new(
        settings: Settings<'_>,
        lets_change: bool,
        manager: Credentials,
        is_root: &dyn Fn(&str) -> bool,
    ) -> Privileges {
        let user = settings.values("User").last().copied();
        let is_dynamic = settings.switch("DynamicUser");
        let users = match user {
            Some(user) if user.contains('%') => vec![User::Root, User::Other],
            Some(user) if is_root(user) => vec![User::Root],
            Some(_) => vec![User::Other],
            None if is_dynamic => vec![User::Other],
            None => vec![User::Unset],
        };
        let bits = settings
            .last("SecureBits")
            .map(systemd::words)
            .unwrap_or_default();
        let bits = bits.iter().filter_map(|word| {
            let known = SECURE_BITS.iter().find(|(name, _)| name == word)?;
            Some(known.1)
        });
        // A process in a new user namespace has all capabilities there.
        let manager = match settings.is_on("PrivateUsers") {
            true => Credentials {
                no_new_privs: manager.no_new_privs,
                ..Credentials::MANAGER
            },
            false => manager,
        };
        Privileges {
            manager,
            users,
            sets_no_new_privs: settings.switch("NoNewPrivileges") || is_dynamic,
            bounding: settings.bounding_set(),
            ambient: settings.capabilities("AmbientCapabilities", Capabilities::NONE),
            secure_bits: bits.fold(0, |all, bit| all | bit),
            has_filters: settings.has_filters(),
            lets_change,
        }
    }

    /// The credentials of a process when systemd executes its program.
    pub(super) fn by_systemd(&self, user: User, changes_user: bool, rule: Rule) -> Credentials {
        let mut own = self.manager;
        let changes_user = changes_user && user != User::Unset;
        let kept = ["CAP_SYS_ADMIN", "CAP_SETPCAP"].map(capability);
        let keeps = rule == Rule::Since255 && changes_user && self.has_filters && self.lets_change;
        let mut bounding = self.bounding;
        if keeps {
            own.keep_capabilities(true);
            bounding = bounding | kept[0] | kept[1];
        }
        own.bound(bounding);
        let ambient = self.ambient & own.bounding;
        own.inheritable = own.inheritable | ambient;
        own.make_ambient(ambient);
        if changes_user {
            let is_root = user == User::Root;
            let wants_kept = self.ambient != Capabilities::NONE || self.secure_bits != 0;
            if wants_kept && !is_root {
                own.keep_capabilities(true);
            }
            own.set_user(is_root);
            if keeps {
                let set_user = capability("CAP_SETUID");
                if !self.ambient.contains(set_user) {
                    own.drop(set_user);
                }
                own.raise(kept[0] | kept[1]);
            }
            own.make_ambient(ambient);
        }
        own.secure_bits = self.secure_bits;
        let wants = self.has_filters && !own.effective.contains(kept[0]);
        own.no_new_privs |= self.sets_no_new_privs || wants;
        if keeps {
            own.bound(self.bounding);
            for capability in kept.into_iter().filter(|own| !self.bounding.contains(*own)) {
                own.drop(capability);
            }
        }
        own
    }
}

fn capability(name: &str) -> Capabilities {
    Capabilities::named(name).expect("it is in the list of all")
}

/// The credentials of the program under the installer, which sets `no_new_privs` unless `keeps_privs`, or if the kernel
/// requires it.
pub(super) fn under_installer(mut own: Credentials, keeps_privs: bool) -> Credentials {
    own.execute();
    own.no_new_privs |= !keeps_privs || !own.effective.contains(capability("CAP_SYS_ADMIN"));
    own.execute();
    own
}

/// A command of the unit, without and with the drop-in.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) title: String,
    /// Whether the installer sets `no_new_privs` only if the kernel requires it.
    pub(super) keeps_privs: bool,
    /// The cases by rule and user.
    cases: Vec<Case>,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    rule: Rule,
    before: Credentials,
    after: Credentials,
}

impl Comparison {
    /// Compares a command of the unit without and with the drop-in.
    pub(super) fn new(
        line: &CommandLine,
        before: &Privileges,
        after: &Privileges,
        rules: &[Rule],
    ) -> Comparison {
        let of_user = |user: &User| rules.iter().map(|rule| (*rule, *user)).collect::<Vec<_>>();
        let settings: Vec<(Rule, User)> = before.users.iter().flat_map(of_user).collect();
        let run = |keeps_privs| {
            let case = |(rule, user): &(Rule, User)| {
                let of = |privileges: &Privileges| {
                    privileges.by_systemd(*user, line.changes_user(), *rule)
                };
                let mut own = of(before);
                own.execute();
                Case {
                    rule: *rule,
                    before: own,
                    after: under_installer(of(after), keeps_privs),
                }
            };
            settings.iter().map(case).collect::<Vec<Case>>()
        };
        let kept = run(true);
        let is_set = |case: &Case| case.before.no_new_privs;
        let loses = |case: &Case| is_set(case) && !case.after.no_new_privs;
        let keeps_privs = !kept.iter().all(is_set) && !kept.iter().any(loses);
        Comparison {
            title: line.title(),
            keeps_privs,
            cases: if keeps_privs { kept } else { run(false) },
        }
    }

    /// The privileges that only the drop-in leaves.
    pub(super) fn gained(&self) -> Vec<&'static str> {
        let of_case = |case: &Case| {
            let sets =
                |own: &Credentials| [own.permitted, own.bounding, own.ambient, own.inheritable];
            let pairs = sets(&case.after).into_iter().zip(sets(&case.before));
            pairs.fold(Capabilities::NONE, |all, (after, before)| {
                all | (after & !before)
            })
        };
        let all = self.cases.iter().map(of_case);
        let mut names = all.fold(Capabilities::NONE, |all, own| all | own).names();
        let loses = |case: &Case| case.before.no_new_privs && !case.after.no_new_privs;
        if self.cases.iter().any(loses) {
            names.push("those of set-user-ID programs");
        }
        names
    }

    /// The cases for the report: those that differ, or else the first.
    pub(super) fn entries(&self) -> Vec<CommandStatus> {
        let differs = |case: &&Case| case.before != case.after;
        let mut told: Vec<&Case> = self.cases.iter().filter(differs).collect();
        if told.is_empty() {
            told.extend(self.cases.first());
        }
        let entry = |case: &Case| CommandStatus {
            command: self.title.clone(),
            systemd: case.rule.name().to_owned(),
            before: entry(&case.before),
            after: entry(&case.after),
        };
        told.into_iter().map(entry).collect()
    }
}

fn entry(own: &Credentials) -> StatusEntry {
    let hex = |set: Capabilities| format!("{:016x}", set.bits());
    StatusEntry {
        no_new_privs: u8::from(own.no_new_privs),
        seccomp: 2,
        cap_inh: hex(own.inheritable),
        cap_prm: hex(own.permitted),
        cap_eff: hex(own.effective),
        cap_bnd: hex(own.bounding),
        cap_amb: hex(own.ambient),
        secure_bits: own.secure_bits,
    }
}

#[cfg(test)]
mod tests;
