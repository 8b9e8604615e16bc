//! Learned policies: selecting arguments are limited to the recorded values, on every architecture.

use tamis_abi::selector::{self, Selector};
use tamis_abi::signature::{self, Width};
use tamis_abi::{Action, Arch, ArgIndex, Nr, SeccompData, consts, syscall};
use tamis_diag::Sources;
use tamis_learn::{Generality, LearnError, Learned, Options, Reason, Run, learn};
use tamis_profile::{Call, Profile, interest};
use tamis_rules::Ruleset;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

fn learned(profile: &Profile, generality: Generality, max_values: Option<usize>) -> Learned {
    let run = Run {
        name: "run",
        profile,
    };
    let options = Options {
        generality,
        max_values,
        base: None,
    };
    learn(&[run], &options).expect("a policy")
}

fn stable(profile: &Profile) -> Learned {
    learned(profile, Generality::Stable, None)
}

fn allows(ruleset: &Ruleset, arch: Arch, nr: Nr, args: [u64; 6]) -> bool {
    let call = SeccompData {
        nr: nr.0,
        arch: arch.audit(),
        args,
        ..SeccompData::default()
    };
    ruleset.decide(&call).action == Action::ALLOW
}

/// A call made once, with these values of one argument.
fn made(profile: &mut Profile, arch: Arch, name: &str, arg: ArgIndex, values: &[u64]) -> Nr {
    let nr = syscall::number(arch, name).expect("a call");
    let call = profile.call_mut(arch, nr);
    call.count = values.len() as u64;
    let counts = values.iter().map(|value| (*value, 1)).collect();
    call.values.insert(arg.index() as u8, counts);
    nr
}

fn with(arg: ArgIndex, value: u64) -> [u64; 6] {
    let mut args = [0; 6];
    args[arg.index()] = value;
    args
}

#[test]
fn one_seen_value_of_what_decides_is_not_all_values() {
    const SEEN: u64 = 0x1000;
    let mut count = 0;
    for arch in Arch::all() {
        for (nr, name) in syscall::all(arch) {
            for argument in interest::arguments(arch, name) {
                let Some(selector) = selector::at(arch, name, argument.index) else {
                    continue;
                };
                count += 1;
                let mut profile = Profile::default();
                made(&mut profile, arch, name, argument.index, &[SEEN]);
                let ruleset = stable(&profile).ruleset;
                let allows = |value| allows(&ruleset, arch, nr, with(argument.index, value));
                let deciding = match selector {
                    Selector::Bits(bits) => bits,
                    _ => argument.width.max(),
                };
                assert!(allows(SEEN), "{arch} {name}");
                for bit in 0..64 {
                    let other = SEEN ^ 1 << bit;
                    let is_same = deciding & 1 << bit == 0;
                    // Without a flag that was seen a call does less.
                    if selector != Selector::Flags || other != 0 {
                        assert_eq!(allows(other), is_same, "{arch} {name} {other:#x}");
                    }
                }
            }
        }
    }
    assert!(count > 20 * 60, "{count}");
}

#[test]
fn memory_is_writable_or_executable_on_every_architecture_unless_it_was_seen_as_both() {
    for arch in Arch::all() {
        let bit = |name| consts::value(arch, name).expect("a protection");
        let [read, write, exec] = ["PROT_READ", "PROT_WRITE", "PROT_EXEC"].map(bit);
        for name in ["mmap", "mmap2", "mprotect", "pkey_mprotect"] {
            let (Some(nr), index) = (
                syscall::number(arch, name),
                signature::index(arch, name, "prot"),
            ) else {
                continue;
            };
            let mut profile = Profile::default();
            let Some(index) = index else {
                profile.call_mut(arch, nr).count = 1;
                let wider = stable(&profile).wider;
                let is_said = wider
                    .iter()
                    .any(|wider| matches!(wider.reason, Reason::Hidden { .. }));
                assert!(is_said, "{arch} {name}");
                continue;
            };
            let seen = [read | write, read | exec, read];
            made(&mut profile, arch, name, index, &seen);
            let ruleset = stable(&profile).ruleset;
            for prot in seen {
                assert!(
                    allows(&ruleset, arch, nr, with(index, prot)),
                    "{arch} {name}"
                );
            }
            let both = with(index, read | write | exec);
            assert!(!allows(&ruleset, arch, nr, both), "{arch} {name}");
        }
        let (Some(nr), Some(index)) = (
            syscall::number(arch, "shmat"),
            signature::index(arch, "shmat", "shmflg"),
        ) else {
            continue;
        };
        let mut profile = Profile::default();
        let [read_only, exec] = ["SHM_RDONLY", "SHM_EXEC"].map(bit);
        made(&mut profile, arch, "shmat", index, &[0, read_only | exec]);
        let ruleset = stable(&profile).ruleset;
        assert!(
            !allows(&ruleset, arch, nr, with(index, exec)),
            "{arch} shmat"
        );
    }
}

#[test]
fn many_values_are_a_condition_as_few_are_or_the_policy_says_why_not() {
    let ioctl = syscall::number(Arch::X86_64, "ioctl").expect("a call");
    let index = ArgIndex::ALL[1];
    for values in [64, 65, 3000] {
        let mut profile = Profile::default();
        let seen: Vec<u64> = (1..=values).map(|value| value * 0x101).collect();
        made(&mut profile, Arch::X86_64, "ioctl", index, &seen);
        for generality in [Generality::Seen, Generality::Stable, Generality::Groups] {
            let all = learned(&profile, generality, None);
            assert_eq!(all.wider, [], "{values}");
            for value in &seen {
                let args = with(index, *value);
                assert!(allows(&all.ruleset, Arch::X86_64, ioctl, args), "{value}");
            }
            let other = with(index, 0x5413);
            assert!(
                !allows(&all.ruleset, Arch::X86_64, ioctl, other),
                "{values}"
            );
            let limited = learned(&profile, generality, Some(64));
            let is_over = values > 64;
            assert_eq!(
                allows(&limited.ruleset, Arch::X86_64, ioctl, other),
                is_over
            );
            let said = format!("any cmd: {values} values, more than --max-values");
            assert_eq!(
                limited.policy.contains(&said),
                is_over,
                "{}",
                limited.policy
            );
        }
    }
}

#[test]
fn what_is_wider_than_the_evidence_is_said() {
    const ARCH: Arch = Arch::X86_64;
    let mut profile = Profile::default();
    let nr = |name| syscall::number(ARCH, name).expect("a call");
    profile.call_mut(ARCH, nr("keyctl")).count = 2;
    made(&mut profile, ARCH, "prctl", ArgIndex::ALL[0], &[15]);
    profile.call_mut(ARCH, nr("prctl")).count = 3;
    made(&mut profile, ARCH, "lseek", ArgIndex::ALL[2], &[0, 1]);
    made(&mut profile, ARCH, "futex", ArgIndex::ALL[1], &[128]);
    made(
        &mut profile,
        ARCH,
        "personality",
        ArgIndex::ALL[0],
        &[0x40_0000],
    );
    profile.call_mut(ARCH, nr("openat2")).count = 1;
    made(&mut profile, ARCH, "openat", ArgIndex::ALL[2], &[0]);
    let learned = stable(&profile);
    for (call, comment) in [
        ("keyctl ", "any option: values weren't recorded"),
        ("prctl ", "any option: values are known of 1 of 3 calls"),
        ("lseek ", "any whence: new values are likely"),
        ("futex ", "any op: depends on chance"),
        (
            "personality(",
            "READ_IMPLIES_EXEC makes readable memory executable",
        ),
        ("openat2 ", "makes the conditions of openat void"),
    ] {
        let mut rules = learned.policy.lines();
        let rule = rules.find(|line| line.starts_with(&format!("allow {call}")));
        assert!(
            rule.is_some_and(|rule| rule.contains(comment)),
            "{call}: {}",
            learned.policy
        );
    }
    let calls: Vec<&str> = learned
        .wider
        .iter()
        .filter_map(|wider| syscall::name(wider.arch, wider.nr))
        .collect();
    assert_eq!(calls.len(), 6, "{calls:?}");
}

#[test]
fn a_multiplexer_is_learned_with_its_operations_and_says_which_conditions_it_makes_void() {
    for arch in Arch::all() {
        let Some(through) = syscall::multiplexed(arch, "socket") else {
            continue;
        };
        let mut profile = Profile::default();
        let first = ArgIndex::ALL[0];
        made(
            &mut profile,
            arch,
            "socketcall",
            first,
            &[through.call.into(), 3],
        );
        let has_own = syscall::number(arch, "socket").is_some();
        if has_own {
            made(&mut profile, arch, "socket", first, &[1]);
        }
        // `shmat` of version 1.
        made(&mut profile, arch, "ipc", first, &[1 << 16 | 21]);
        let learned = stable(&profile);
        let voids: Vec<&str> = learned
            .wider
            .iter()
            .flat_map(|wider| match &wider.reason {
                Reason::Hidden { voids, .. } => voids.clone(),
                _ => Vec::new(),
            })
            .collect();
        assert_eq!(
            voids,
            if has_own { vec!["socket"] } else { vec![] },
            "{arch}"
        );
        let nr = |name| syscall::number(arch, name).expect("a call");
        let allows =
            |name, operation| allows(&learned.ruleset, arch, nr(name), with(first, operation));
        assert!(allows("socketcall", 1) && allows("socketcall", 3), "{arch}");
        assert!(
            !allows("socketcall", 2) && !allows("socketcall", 14),
            "{arch}"
        );
        assert!(allows("ipc", 21) && allows("ipc", 1 << 16 | 21), "{arch}");
        assert!(!allows("ipc", 1) && !allows("ipc", 24), "{arch}");
    }
}

#[test]
fn groups_have_nothing_that_decides() {
    for arch in [Arch::X86, Arch::X86_64, Arch::S390x, Arch::Arm] {
        let mut profile = Profile::default();
        for name in ["connect", "rename", "shmget", "read", "mlock", "fsync"] {
            if let Some(nr) = syscall::number(arch, name) {
                *profile.call_mut(arch, nr) = Call {
                    count: 1,
                    ..Call::default()
                };
            }
        }
        let ruleset = learned(&profile, Generality::Groups, None).ruleset;
        for (nr, name) in syscall::all(arch) {
            let is_allowed = allows(&ruleset, arch, nr, [0; 6]);
            assert!(!is_allowed || !selector::is_several(name), "{arch} {name}");
        }
    }
}

#[test]
fn values_are_compared_at_the_width_that_the_kernel_reads() {
    let first = ArgIndex::ALL[0];
    let args = signature::args("ipc").expect("a call");
    assert_eq!(signature::width(Arch::X86, "ipc", &args[0]), Width::Bits16);
    let mut profile = Profile::default();
    let nr = made(&mut profile, Arch::X86, "ipc", first, &[1 << 16 | 21]);
    let ruleset = stable(&profile).ruleset;
    assert!(allows(&ruleset, Arch::X86, nr, with(first, 21)));
}

#[test]
fn lost_values_are_no_condition_whatever_the_others_add_up_to() {
    const ARCH: Arch = Arch::X86_64;
    let lost = |count| {
        let mut profile = Profile::default();
        let nr = made(
            &mut profile,
            ARCH,
            "ioctl",
            ArgIndex::ALL[1],
            &[0x5401, 0x5402],
        );
        let call = profile.call_mut(ARCH, nr);
        call.lost_values.extend((count > 0).then_some((1, count)));
        profile
    };
    // Of both together, as many values are known as calls were made.
    let mut merged = lost(2);
    merged.merge(&lost(0));
    let sources = &mut Sources::new();
    let source = sources.add("merged.json", merged.to_json());
    let read = tamis_profile::read(sources, source, ARCH);
    assert_eq!(
        read.profile.as_ref(),
        Some(&merged),
        "{:?}",
        read.diagnostics
    );
    for generality in [Generality::Seen, Generality::Stable] {
        let learned = learned(&merged, generality, None);
        let reasons: Vec<&Reason> = learned.wider.iter().map(|wider| &wider.reason).collect();
        assert_eq!(reasons, [&Reason::Lost { count: 2 }], "{}", learned.policy);
        let ioctl = syscall::number(ARCH, "ioctl").expect("a call");
        let other = with(ArgIndex::ALL[1], 0x5403);
        assert!(allows(&learned.ruleset, ARCH, ioctl, other));
    }
}

/// A call with random counts, values and lists of arguments, which contradict each other as those of other tools may.
fn random_call(rng: &mut Rng) -> (Arch, Nr, Call) {
    let arches: Vec<Arch> = Arch::all().collect();
    let arch = *rng.choose(&arches);
    let numbers: Vec<Nr> = syscall::all(arch).map(|(nr, _)| nr).collect();
    let nr = *rng.choose(&numbers);
    let mut call = Call {
        count: rng.range(1..=40),
        ..Call::default()
    };
    call.denied = rng.range(0..=call.count) * u64::from(rng.chance(1, 4));
    for index in 0..6 {
        if rng.chance(1, 2) {
            let (value, count) = (rng.interesting_u64(), rng.range(1..=call.count));
            let values = call.values.entry(index).or_default();
            values.insert(value, count);
            values.insert(rng.range(0..=9), call.count - count);
        }
    }
    if rng.chance(1, 2) {
        let args = [(); 6].map(|()| rng.interesting_u64());
        call.samples.insert(args, rng.range(1..=call.count));
    }
    (arch, nr, call)
}

#[test]
fn no_profile_is_a_bug() {
    let mut learned_from = 0;
    for seed in seeds::selected(0..4000) {
        let mut rng = Rng::new(seed);
        let mut profile = Profile::default();
        for _ in 0..rng.range(1..=4) {
            let (arch, nr, call) = random_call(&mut rng);
            *profile.call_mut(arch, nr) = call;
        }
        for generality in [Generality::Seen, Generality::Stable, Generality::Groups] {
            let run = Run {
                name: "run",
                profile: &profile,
            };
            let options = Options {
                generality,
                ..Options::default()
            };
            match learn(&[run], &options) {
                Ok(learned) => {
                    let denied = learned.refused.iter().find(|refused| refused.is_certain);
                    assert_eq!(denied, None, "{seed} {generality:?}");
                    learned_from += 1;
                }
                Err(LearnError::NothingSeen) => {}
                Err(error) => panic!("{seed} {generality:?}: {error}"),
            }
        }
    }
    assert!(learned_from > seeds::least(8000), "{learned_from}");
}

#[test]
fn a_policy_beyond_a_limit_is_no_bug() {
    let mut numbers = Profile::default();
    for nr in 0..40_000 {
        numbers.call_mut(Arch::X86_64, Nr(100_000 + nr)).count = 1;
    }
    let mut operations = Profile::default();
    let values: Vec<u64> = (0..9000).collect();
    made(&mut operations, Arch::X86, "ipc", ArgIndex::ALL[0], &values);
    let limit = |profile: &Profile, max_values| {
        let run = Run {
            name: "run",
            profile,
        };
        let options = Options {
            max_values,
            ..Options::default()
        };
        match learn(&[run], &options) {
            Err(LearnError::TooLarge {
                has_many_values, ..
            }) => Some(has_many_values),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        }
    };
    assert_eq!(limit(&numbers, None), Some(false));
    assert_eq!(limit(&operations, None), Some(true));
    assert_eq!(limit(&operations, Some(64)), None);
}
