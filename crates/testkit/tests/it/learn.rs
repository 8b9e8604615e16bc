//! Learned policies: the recorded calls are allowed, within the base by proof.

use tamis_abi::{Action, Arch, ArgIndex, Nr, SeccompData, syscall};
use tamis_diag::Sources;
use tamis_learn::{Generality, LearnError, Options, Run, drift, learn};
use tamis_policy::loader::NoIncludes;
use tamis_policy::oci::{self, OciOptions};
use tamis_policy::tamis::{self, TamisOptions};
use tamis_profile::{Call, Profile};
use tamis_prover::{Limits, Space};
use tamis_rules::Ruleset;
use tamis_testkit::corpus;

const X86_64: Arch = Arch::X86_64;

fn nr(name: &str) -> Nr {
    syscall::number(X86_64, name).expect("a call")
}

/// A call made with these values of one argument, each so often.
fn with_values(profile: &mut Profile, name: &str, arg: u8, values: &[(u64, u64)]) {
    let call = profile.call_mut(X86_64, nr(name));
    call.count = values.iter().map(|(_, count)| count).sum();
    call.values.insert(arg, values.iter().copied().collect());
}

fn learned(profile: &Profile, options: &Options<'_>) -> Ruleset {
    let run = Run {
        name: "run",
        profile,
    };
    learn(&[run], options).expect("a policy").ruleset
}

fn allows(ruleset: &Ruleset, name: &str, args: [u64; 6]) -> bool {
    let call = SeccompData {
        nr: nr(name).0,
        arch: X86_64.audit(),
        args,
        ..SeccompData::default()
    };
    ruleset.decide(&call).action == Action::ALLOW
}

#[test]
fn conditions_follow_from_what_was_seen() {
    let mut profile = Profile::default();
    // `PROT_READ|PROT_WRITE` and `PROT_READ|PROT_EXEC`, never both.
    with_values(&mut profile, "mmap", 2, &[(3, 40), (5, 40)]);
    with_values(&mut profile, "prctl", 0, &[(15, 1)]);
    // New values are likely of the first, unlikely of the second.
    with_values(&mut profile, "lseek", 2, &[(0, 1), (1, 1)]);
    with_values(&mut profile, "shutdown", 1, &[(1, 50)]);
    let stable = learned(&profile, &Options::default());
    assert!(allows(&stable, "mmap", [0, 0, 3, 0, 0, 0]));
    assert!(allows(&stable, "mmap", [0, 0, 1, 0, 0, 0]));
    assert!(!allows(&stable, "mmap", [0, 0, 7, 0, 0, 0]), "W^X");
    assert!(!allows(&stable, "mmap", [0, 0, 8, 0, 0, 0]));
    assert!(allows(&stable, "prctl", [15, 0, 0, 0, 0, 0]));
    assert!(
        !allows(&stable, "prctl", [22, 0, 0, 0, 0, 0]),
        "seen once, but it selects"
    );
    assert!(allows(&stable, "lseek", [0, 0, 2, 0, 0, 0]));
    assert!(!allows(&stable, "shutdown", [0, 2, 0, 0, 0, 0]));
    assert!(!allows(&stable, "reboot", [0; 6]));
    for name in [
        "exit_group",
        "rt_sigreturn",
        "restart_syscall",
        "clock_gettime",
    ] {
        assert!(allows(&stable, name, [0; 6]), "{name}");
    }
    let option = |generality| Options {
        generality,
        ..Options::default()
    };
    let seen = learned(&profile, &option(Generality::Seen));
    assert!(!allows(&seen, "lseek", [0, 0, 2, 0, 0, 0]));
    let calls = learned(&profile, &option(Generality::Calls));
    assert!(allows(&calls, "mmap", [0, 0, 7, 0, 0, 0]));
}

#[test]
fn groups_are_allowed_as_a_whole_and_what_was_seen_of_them_keeps_its_conditions() {
    let mut profile = Profile::default();
    with_values(&mut profile, "prctl", 0, &[(15, 1)]);
    with_values(&mut profile, "mmap", 2, &[(3, 40)]);
    for name in ["openat", "close", "clone", "getpid"] {
        profile.call_mut(X86_64, nr(name)).count = 1;
    }
    let options = Options {
        generality: Generality::Groups,
        ..Options::default()
    };
    let ruleset = learned(&profile, &options);
    for name in ["openat", "rename", "getcwd", "getuid", "futex"] {
        assert!(allows(&ruleset, name, [0; 6]), "{name}");
    }
    // `close` is in several groups, and no other call of the others was made.
    for name in ["connect", "write", "execveat", "unshare", "mount", "setuid"] {
        assert!(!allows(&ruleset, name, [0; 6]), "{name}");
    }
    assert!(!allows(&ruleset, "mmap", [0, 0, 7, 0, 0, 0]));
    let stable = learned(&profile, &Options::default());
    assert!(!allows(&stable, "rename", [0; 6]));
}

#[test]
fn with_many_runs_a_value_of_one_run_makes_new_ones_likely() {
    let mut sum = Profile::default();
    for run in 0..40 {
        let mut profile = Profile::default();
        // Often in each run, but three of the runs have a value of their own.
        let mut values = vec![(0, 50)];
        values.extend((run < 3).then_some((run + 1, 50)));
        with_values(&mut profile, "lseek", 2, &values);
        with_values(&mut profile, "shutdown", 1, &[(1, 1)]);
        sum.merge(&profile);
    }
    assert_eq!(sum.run_count(), 40);
    let ruleset = learned(&sum, &Options::default());
    assert!(allows(&ruleset, "lseek", [0, 0, 9, 0, 0, 0]));
    assert!(!allows(&ruleset, "shutdown", [0, 2, 0, 0, 0, 0]));
}

#[test]
fn what_depends_on_chance_is_not_limited_by_what_was_seen() {
    let mut profile = Profile::default();
    with_values(&mut profile, "futex", 1, &[(129, 90), (128, 90)]);
    let ruleset = learned(&profile, &Options::default());
    assert!(allows(&ruleset, "futex", [0, 393, 0, 0, 0, 0]));
    let options = Options {
        generality: Generality::Seen,
        ..Options::default()
    };
    assert!(!allows(
        &learned(&profile, &options),
        "futex",
        [0, 393, 0, 0, 0, 0]
    ));
}

#[test]
fn what_was_seen_and_is_allowed_is_not_told_as_denied() {
    let base = docker();
    let mut profile = Profile::default();
    // Shared and private memory: each value fits one alternative of the learned condition.
    with_values(&mut profile, "mmap", 3, &[(0x22, 40), (1, 40), (0x812, 40)]);
    with_values(&mut profile, "openat", 2, &[(0x80000, 40), (0x80241, 40)]);
    let options = Options {
        base: Some(("docker", &base)),
        ..Options::default()
    };
    let run = Run {
        name: "run",
        profile: &profile,
    };
    let learned = learn(&[run], &options).expect("a policy");
    assert!(learned.policy.contains("mmap(flags"), "{}", learned.policy);
    assert_eq!(learned.refused, []);
}

#[test]
fn values_that_are_partly_unknown_are_no_condition() {
    let mut profile = Profile::default();
    with_values(&mut profile, "prctl", 0, &[(15, 9)]);
    profile.call_mut(X86_64, nr("prctl")).count = 10;
    let ruleset = learned(&profile, &Options::default());
    assert!(allows(&ruleset, "prctl", [22, 0, 0, 0, 0, 0]));
}

#[test]
fn calls_that_were_only_denied_are_not_allowed() {
    let mut profile = Profile::default();
    profile.call_mut(X86_64, nr("read")).count = 1;
    *profile.call_mut(X86_64, nr("mount")) = Call {
        count: 3,
        denied: 3,
        ..Call::default()
    };
    assert!(!allows(
        &learned(&profile, &Options::default()),
        "mount",
        [0; 6]
    ));
    let nothing = Profile::default();
    let run = Run {
        name: "run",
        profile: &nothing,
    };
    assert!(matches!(
        learn(&[run], &Options::default()),
        Err(LearnError::NothingSeen)
    ));
}

#[test]
fn drift_is_certain_where_unknown_arguments_don_t_matter() {
    let mut profile = Profile::default();
    with_values(&mut profile, "prctl", 0, &[(15, 3), (22, 1)]);
    with_values(&mut profile, "socket", 0, &[(1, 4)]);
    profile.call_mut(X86_64, nr("socket")).count = 5;
    for (name, count, denied) in [
        ("read", 1, 0),
        ("reboot", 2, 0),
        ("mount", 3, 3),
        ("uname", 4, 0),
    ] {
        *profile.call_mut(X86_64, nr(name)) = Call {
            count,
            denied,
            ..Call::default()
        };
    }
    let mut sources = Sources::new();
    let policy = "default errno(EPERM)\nallow read, prctl(option == 15), socket(family == AF_UNIX)\nlog uname\n";
    let source = sources.add("policy.tamis", policy);
    let options = TamisOptions::new(vec![X86_64]);
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    let found = drift(&profile, &parsed.ruleset.expect("a policy"));
    let values: Vec<_> = found.iter().map(|drift| drift.values.clone()).collect();
    let denied = vec![(ArgIndex::ALL[0], 22)];
    assert_eq!(values, [vec![], denied, vec![]], "with any arguments: none");
    let found: Vec<_> = found
        .iter()
        .map(|drift| (drift.nr, drift.count, drift.is_certain))
        .collect();
    let expected = [
        ("socket", 5, false),
        ("prctl", 4, true),
        ("reboot", 2, true),
    ];
    assert_eq!(
        found,
        expected.map(|(name, count, is_certain)| (nr(name), count, is_certain))
    );
}

#[test]
fn one_of_several_kinds_is_not_a_flag() {
    let mut profile = Profile::default();
    // `SOCK_STREAM` and `SOCK_DGRAM`, the latter with `SOCK_CLOEXEC`: not `SOCK_RAW`, which has the bits of both.
    with_values(&mut profile, "socket", 1, &[(1, 50), (0o2000002, 50)]);
    with_values(&mut profile, "openat", 2, &[(1, 50), (2, 50)]);
    let stable = learned(&profile, &Options::default());
    for (kind, is_allowed) in [
        (1, true),
        (2, true),
        (0o2000001, true),
        (3, false),
        (5, false),
    ] {
        assert_eq!(
            allows(&stable, "socket", [2, kind, 0, 0, 0, 0]),
            is_allowed,
            "{kind:#x}"
        );
    }
    assert!(!allows(&stable, "openat", [0, 0, 3, 0, 0, 0]));
    let options = Options {
        generality: Generality::Seen,
        ..Options::default()
    };
    let seen = learned(&profile, &options);
    assert!(
        !allows(&seen, "socket", [2, 0o2000001, 0, 0, 0, 0]),
        "not in this combination"
    );
}

fn policy(text: &str) -> Ruleset {
    let mut sources = Sources::new();
    let source = sources.add("policy.tamis", text);
    let options = TamisOptions::new(vec![X86_64]);
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    parsed.ruleset.expect("a policy")
}

#[test]
fn namespaces_are_opened_only_as_was_seen() {
    const THREAD: u64 = 0x3d_0f00;
    let forks = [0x120_0011, 0x4111, 17];
    let apart = [0x1000_0011, 0x4002_0011];
    let mut profile = Profile::default();
    let seen: Vec<u64> = [&[THREAD][..], &forks, &apart].concat();
    let counted: Vec<(u64, u64)> = seen.iter().map(|flags| (*flags, 9)).collect();
    with_values(&mut profile, "clone", 0, &counted);
    with_values(
        &mut profile,
        "unshare",
        0,
        &[(0x200, 9), (0x400, 9), (0x1000_0000, 9), (0x80, 9)],
    );
    with_values(&mut profile, "setns", 1, &[(0x2_0000, 1), (0x4000_0000, 1)]);
    let of = |generality| {
        let options = Options {
            generality,
            ..Options::default()
        };
        learned(&profile, &options)
    };
    let [listed, stable] = [Generality::Seen, Generality::Stable].map(of);
    assert!(is_within(&listed, &stable));
    let text = format!(
        "default allow\n\
         allow clone(clone_flags & 0x7e020000 == 0 || clone_flags in {{{}, {}}})\n\
         allow unshare(low(unshare_flags) & 0x7e020080 == 0 || low(unshare_flags) in {{0x10000000, 0x80}})\n\
         allow setns(flags in {{0x20000, 0x40000000}})\n\
         errno(EPERM) clone, unshare, setns",
        apart[0], apart[1]
    );
    assert!(is_within(&stable, &policy(&text)));
    let clones = |flags| allows(&stable, "clone", [flags, 0, 0, 0, 0, 0]);
    assert!(clones(0x120_4111) && clones(0x100), "in any combination");
    assert!(!clones(THREAD | 17) && !clones(0x4000), "of their own kind");
    assert!(allows(&stable, "unshare", [0x600, 0, 0, 0, 0, 0]));
}

#[test]
fn rare_values_and_wide_ones_count() {
    let mut profile = Profile::default();
    with_values(&mut profile, "socket", 0, &[(1, 10_000), (17, 1)]);
    let one = policy("default errno(EPERM)\nallow socket(family == AF_UNIX)\n");
    let found = drift(&profile, &one);
    assert!(found.len() == 1 && found[0].is_certain, "{found:?}");
    // Two pairs are allowed; which came together isn't known.
    let mut profile = Profile::default();
    with_values(&mut profile, "socket", 0, &[(1, 1), (16, 1)]);
    let pairs =
        "allow socket(family == AF_UNIX, type == 1), socket(family == AF_NETLINK, type == 3)\n";
    profile
        .call_mut(X86_64, nr("socket"))
        .values
        .insert(1, [(1, 1), (3, 1)].into());
    let found = drift(&profile, &policy(&format!("default errno(EPERM)\n{pairs}")));
    assert!(found.len() == 1 && !found[0].is_certain, "{found:?}");
    // -1 as the C library passes it.
    let mut profile = Profile::default();
    with_values(&mut profile, "personality", 0, &[(u64::MAX, 1)]);
    let narrow =
        policy("default errno(EPERM)\nallow personality(full(personality) == 0xffffffff)\n");
    assert!(drift(&profile, &narrow)[0].is_certain);
}

#[test]
fn programs_that_confine_themselves_are_learned_from() {
    let mut profile = Profile::default();
    with_values(&mut profile, "prctl", 0, &[(15, 5)]);
    let call = profile.call_mut(X86_64, nr("prctl"));
    (call.count, call.denied) = (10, 5);
    let mut denied = Profile::default();
    *denied.call_mut(X86_64, nr("prctl")) = Call {
        count: 5,
        denied: 5,
        ..Call::default()
    };
    let runs = [&profile, &denied].map(|profile| Run {
        name: "run",
        profile,
    });
    let learned = learn(&runs, &Options::default()).expect("a policy");
    assert!(allows(&learned.ruleset, "prctl", [15, 0, 0, 0, 0, 0]));
    assert!(learned.refused.is_empty());
}

#[test]
fn a_fallback_counts_only_if_it_is_allowed() {
    let mut sources = Sources::new();
    let source = sources.add(
        "base.tamis",
        "default errno(EPERM)\nallow read\nlog write\n",
    );
    let options = TamisOptions::new(vec![X86_64]);
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    let base = parsed.ruleset.expect("a policy");
    let mut profile = Profile::default();
    for name in ["read", "write", "clone3"] {
        profile.call_mut(X86_64, nr(name)).count = u64::MAX;
    }
    let run = Run {
        name: "run",
        profile: &profile,
    };
    let options = Options {
        base: Some(("base", &base)),
        ..Options::default()
    };
    let learned = learn(&[run], &options).expect("a policy");
    let refused: Vec<_> = learned
        .refused
        .iter()
        .map(|refused| (refused.nr, refused.has_fallback))
        .collect();
    assert_eq!(
        refused,
        [(nr("clone3"), false)],
        "what the base logs isn't denied"
    );
    let mut other = Profile::default();
    other.call_mut(Arch::X86, Nr(3)).count = 1;
    let run = Run {
        name: "run",
        profile: &other,
    };
    assert!(matches!(
        learn(&[run], &options),
        Err(LearnError::NothingLeft)
    ));
}

/// Docker's profile, for x86-64.
pub(crate) fn docker() -> Ruleset {
    let text = corpus::text("docker/docker-default-x86_64.json");
    let mut sources = Sources::new();
    let source = sources.add("docker.json", text);
    let parsed = oci::parse(&sources, source, &OciOptions::docker(X86_64)).parsed;
    parsed.ruleset.expect("it has no errors")
}

#[test]
fn nothing_that_the_base_denies_is_allowed() {
    let base = docker();
    let mut profile = Profile::default();
    for (number, _) in syscall::all(X86_64) {
        profile.call_mut(X86_64, number).count = 100;
    }
    with_values(&mut profile, "personality", 0, &[(0, 5), (77, 5)]);
    with_values(&mut profile, "socket", 0, &[(1, 50), (40, 50)]);
    for generality in [
        Generality::Seen,
        Generality::Stable,
        Generality::Groups,
        Generality::Calls,
    ] {
        let options = Options {
            generality,
            base: Some(("docker", &base)),
            ..Options::default()
        };
        let run = Run {
            name: "run",
            profile: &profile,
        };
        let learned = learn(&[run], &options).expect("a policy");
        assert!(is_within(&learned.ruleset, &base), "{generality:?}");
        let names = learned.refused.iter().filter(|refused| refused.is_whole);
        let names: Vec<&str> = names
            .filter_map(|refused| syscall::name(X86_64, refused.nr))
            .collect();
        assert!(
            names.contains(&"reboot") && names.contains(&"mount"),
            "{names:?}"
        );
        assert!(!names.contains(&"read"));
        assert!(allows(&learned.ruleset, "personality", [0; 6]));
        assert!(!allows(
            &learned.ruleset,
            "personality",
            [77, 0, 0, 0, 0, 0]
        ));
        assert!(!allows(&learned.ruleset, "socket", [40, 0, 0, 0, 0, 0]));
        assert!(
            allows(&learned.ruleset, "clone", [0x3d0f00, 0, 0, 0, 0, 0]),
            "instead of clone3"
        );
    }
}

/// Whether one ruleset allows only calls that the other allows, by an independent method: together they are as strict
/// as the first alone for the calls that it allows.
fn is_within(inner: &Ruleset, outer: &Ruleset) -> bool {
    let mut space = Space::new(Limits::default());
    let functions = [inner, outer].map(|ruleset| space.ruleset(ruleset).expect("small"));
    let both = space.stack(&functions).expect("small");
    let allow = Action::ALLOW.ret();
    let (of_both, of_inner) = (
        space.returns(both, allow),
        space.returns(functions[0], allow),
    );
    of_both.expect("small") == of_inner.expect("small")
}
