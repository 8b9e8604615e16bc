//! All combinations of user, capabilities, secure bits, prefixes and versions, compared with systemd's rules in closed
//! form.

use super::*;

fn set(names: &[&str]) -> Capabilities {
    names
        .iter()
        .fold(Capabilities::NONE, |all, name| all | capability(name))
}

/// The inputs of the rules.
#[derive(Clone, Copy, Debug)]
struct Shape {
    user: User,
    changes_user: bool,
    sets_no_new_privs: bool,
    bounding: Capabilities,
    ambient: Capabilities,
    secure_bits: u32,
    lets_change: bool,
    rule: Rule,
}

fn shapes() -> Vec<Shape> {
    let admin = set(&["CAP_SYS_ADMIN"]);
    let mut shapes = Vec::new();
    for user in [User::Unset, User::Root, User::Other] {
        for changes_user in [true, false] {
            for sets_no_new_privs in [true, false] {
                for bounding in [
                    Capabilities::ALL,
                    !admin,
                    admin,
                    Capabilities::NONE,
                    set(&["CAP_SETUID", "CAP_KILL"]),
                ] {
                    for ambient in [
                        Capabilities::NONE,
                        admin,
                        set(&["CAP_KILL"]),
                        set(&["CAP_SETUID", "CAP_SYS_ADMIN"]),
                    ] {
                        for (_, bit) in [("", 0)].iter().chain(&SECURE_BITS) {
                            for rule in [Rule::Before255, Rule::Since255] {
                                for lets_change in [true, false] {
                                    shapes.push(Shape {
                                        user,
                                        changes_user,
                                        sets_no_new_privs,
                                        bounding,
                                        ambient,
                                        secure_bits: *bit,
                                        lets_change,
                                        rule,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    shapes
}

impl Shape {
    fn privileges(&self, has_filters: bool) -> Privileges {
        Privileges {
            manager: Credentials::MANAGER,
            users: vec![self.user],
            sets_no_new_privs: self.sets_no_new_privs,
            bounding: self.bounding,
            ambient: self.ambient,
            secure_bits: self.secure_bits,
            has_filters,
            lets_change: self.lets_change,
        }
    }

    fn credentials(&self, has_filters: bool) -> Credentials {
        let privileges = self.privileges(has_filters);
        privileges.by_systemd(self.user, self.changes_user, self.rule)
    }

    /// `needs_setuid` and `uid_is_valid` of `exec_child`.
    fn is_set_user(&self) -> bool {
        self.changes_user && self.user != User::Unset
    }

    fn is_root(&self) -> bool {
        !self.is_set_user() || self.user == User::Root
    }

    /// `keep_seccomp_privileges` of `exec_invoke`.
    fn keeps(&self, has_filters: bool) -> bool {
        self.rule == Rule::Since255 && self.is_set_user() && has_filters && self.lets_change
    }

    /// `context_has_no_new_privileges`: filters, and no effective CAP_SYS_ADMIN after `enforce_user`, which clears the
    /// effective set of all users but root.
    fn no_new_privs(&self, has_filters: bool) -> bool {
        let is_privileged = self.is_root() || self.keeps(has_filters);
        self.sets_no_new_privs || has_filters && !is_privileged
    }

    /// The permitted set after `execve`: the ambient set, and for root without `noroot` the bounding set. With
    /// `no_new_privs`, capabilities that `drop_capability` removed don't return.
    fn permitted(&self, has_filters: bool) -> Capabilities {
        let ambient = self.ambient & self.bounding;
        if !self.is_root() || self.secure_bits & 1 != 0 {
            return ambient;
        }
        let taken = match self.keeps(has_filters) && self.no_new_privs(has_filters) {
            true => capability("CAP_SETUID") & !self.ambient,
            false => Capabilities::NONE,
        };
        (self.bounding & !taken) | ambient
    }
}

#[test]
fn every_combination_has_what_systemd_gives_it() {
    let shapes = shapes();
    assert_eq!(shapes.len(), 3 * 2 * 2 * 5 * 4 * 7 * 2 * 2);
    for shape in shapes {
        for has_filters in [true, false] {
            let mut own = shape.credentials(has_filters);
            own.execute();
            assert_eq!(own.is_root, shape.is_root(), "{shape:?}");
            assert_eq!(
                own.no_new_privs,
                shape.no_new_privs(has_filters),
                "{shape:?}"
            );
            assert_eq!(own.bounding, shape.bounding, "{shape:?}");
            assert_eq!(own.ambient, shape.ambient & shape.bounding, "{shape:?}");
            let kept = match shape.keeps(has_filters) {
                true => set(&["CAP_SYS_ADMIN", "CAP_SETPCAP"]),
                false => Capabilities::NONE,
            };
            // `drop_capability` removes CAP_SETUID before the ambient set is set.
            assert_eq!(
                own.inheritable,
                (shape.ambient | kept) & shape.bounding,
                "{shape:?}"
            );
            assert_eq!(
                own.permitted,
                shape.permitted(has_filters),
                "{shape:?} {own:?}"
            );
            let effective = match shape.is_root() && shape.secure_bits & 1 == 0 {
                true => own.permitted,
                false => own.ambient,
            };
            assert_eq!(own.effective, effective, "{shape:?}");
        }
    }
}

/// The rule for `no_new_privs`, and that no setting adds a privilege.
#[test]
fn no_combination_gains_a_privilege_by_the_drop_in() {
    let admin = capability("CAP_SYS_ADMIN");
    for shape in shapes() {
        let line = line(shape.changes_user);
        let before = shape.privileges(true);
        for keeps_filters in [true, false] {
            let after = shape.privileges(keeps_filters);
            let own = Comparison::new(&line, &before, &after, &[shape.rule]);
            let [case] = own.cases[..] else {
                panic!("one user and one rule")
            };
            let is_set = shape.no_new_privs(true);
            // The kernel accepts a filter of a process with CAP_SYS_ADMIN or `no_new_privs`.
            let has_admin = (shape.permitted(keeps_filters) & admin) == admin
                && (shape.is_root() || shape.ambient.contains(admin));
            let is_set_after = is_set || !has_admin;
            assert_eq!(case.before.no_new_privs, is_set, "{shape:?}");
            assert_eq!(case.after.no_new_privs, is_set_after, "{shape:?}");
            assert_eq!(own.keeps_privs, !is_set, "{shape:?}");
            // Without filters systemd 255 keeps CAP_SETUID of root with `no_new_privs`.
            let is_left = !keeps_filters && shape.permitted(true) != shape.permitted(false);
            let expected: &[&str] = if is_left { &["CAP_SETUID"] } else { &[] };
            assert_eq!(own.gained(), expected, "{shape:?} {case:?}");
        }
    }
}

fn line(changes_user: bool) -> CommandLine {
    let value = if changes_user { "/bin/x" } else { "!/bin/x" };
    let assignment = systemd::Assignment {
        section: "Service".to_owned(),
        key: "ExecStart".to_owned(),
        value: value.to_owned(),
    };
    let lines = super::super::commands::of_unit(&[assignment], "a.service", &|_| None);
    lines.unwrap().remove(0)
}

/// The privileges of a unit with these settings.
fn of_unit(lines: &[(&str, &str)]) -> Privileges {
    let assignment = |(key, value): &(&str, &str)| systemd::Assignment {
        section: "Service".to_owned(),
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    };
    let lines: Vec<systemd::Assignment> = lines.iter().map(assignment).collect();
    Privileges::new(Settings(&lines), true, Credentials::MANAGER, &|user| {
        user == "toor"
    })
}

#[test]
fn settings_are_read_as_systemd_reads_them() {
    let users = |lines: &[(&str, &str)]| of_unit(lines).users;
    assert_eq!(users(&[]), [User::Unset]);
    assert_eq!(users(&[("User", "toor")]), [User::Root]);
    assert_eq!(users(&[("User", "toor"), ("User", "www")]), [User::Other]);
    assert_eq!(users(&[("User", "www"), ("User", "")]), [User::Unset]);
    assert_eq!(users(&[("User", "%i")]), [User::Root, User::Other]);
    assert_eq!(users(&[("DynamicUser", "yes")]), [User::Other]);
    // An invalid value leaves a switch unchanged.
    for (value, is_set) in [("yes", true), ("no", false), ("", true), ("maybe", true)] {
        let own = of_unit(&[("NoNewPrivileges", "on"), ("NoNewPrivileges", value)]);
        assert_eq!(own.sets_no_new_privs, is_set, "{value}");
    }
    assert!(of_unit(&[("DynamicUser", "1")]).sets_no_new_privs);
    let bits = of_unit(&[
        ("SecureBits", "keep-caps"),
        ("SecureBits", "noroot 'no-setuid-fixup' no"),
    ]);
    assert_eq!(bits.secure_bits, 0b101);
    let kill = set(&["CAP_KILL"]);
    let admin = set(&["CAP_SYS_ADMIN"]);
    for (values, expected) in [
        (&["CAP_KILL"][..], kill),
        (&["~CAP_KILL"], !kill),
        (&["CAP_KILL", "cap_sys_admin CAP_NONE"], kill | admin),
        (&["CAP_KILL CAP_SYS_ADMIN", "~21"], kill),
        (&["CAP_KILL", ""], Capabilities::NONE),
        (&["CAP_KILL", "~"], Capabilities::ALL),
    ] {
        let lines: Vec<(&str, &str)> = values
            .iter()
            .map(|value| ("CapabilityBoundingSet", *value))
            .collect();
        assert_eq!(of_unit(&lines).bounding, expected, "{values:?}");
    }
    let clock = of_unit(&[("ProtectClock", "yes"), ("PrivateDevices", "yes")]);
    let taken = set(&[
        "CAP_SYS_TIME",
        "CAP_WAKE_ALARM",
        "CAP_MKNOD",
        "CAP_SYS_RAWIO",
    ]);
    assert_eq!(clock.bounding, !taken);
    assert!(clock.has_filters && !of_unit(&[("SystemCallFilter", "")]).has_filters);
}
