//! The back ends beside each other: equal counts of a program that makes every kind of call.

use std::collections::BTreeMap;
use std::path::Path;

use tamis_abi::{Arch, Nr};
use tamis_kernel::Ended;
use tamis_platform::{Guest, Options};
use tamis_recorder::Recording;
use tamis_recorder::caught::Counting;
use tamis_recorder::ebpf;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains;

use super::made_calls::program;
use super::support::{recorded, recorder};

/// Counts by architecture and number, and errors by number if they are seen.
type Counts = BTreeMap<(Arch, Nr), (u64, Option<BTreeMap<u16, u64>>)>;

fn counts(recording: &Recording, has_errors: bool) -> Counts {
    let calls = recording.profile.calls();
    let calls = calls.map(|(arch, nr, call)| {
        let errors = has_errors.then(|| call.errors.clone());
        ((arch, nr), (call.count, errors))
    });
    calls.collect()
}

#[test]
fn a_platform_counts_what_programs_in_the_kernel_count() {
    let Some(recorder) = recorder(ebpf::Options::default()) else {
        return;
    };
    let Some(program) = program("backends") else {
        return;
    };
    let (in_kernel, _) = recorded(&recorder, &program, &[]);
    for name in ["notify", "ptrace-seccomp", "patched"] {
        let platform = tamis_platform::by_name(name).expect("it has this name");
        if let Err(unavailable) = platform.probe() {
            skip::because(Need::Live, unavailable);
            continue;
        }
        let caps = platform.caps();
        let has_results = caps.sees_results && !caps.patches_sites;
        let counting = Counting::new(true);
        let filter = Counting::filter();
        let guest = Guest {
            program: program.clone().into_os_string(),
            args: Vec::new(),
            filter: &filter,
            has_results,
        };
        let options = Options {
            tally: Some(counting.tally()),
            ..Options::default()
        };
        let ended = platform.run(&guest, &counting, &options);
        assert_eq!(ended.expect("it runs"), Ended::Exited(0));
        let recording = counting.recording();
        let mut theirs = counts(&in_kernel, has_results);
        let mut ours = counts(&recording, has_results);
        // Locks of the C library depend on who comes first, and platforms send programs from `clone3` to `clone`.
        const DIFFERENT: [&str; 4] = ["clone", "clone3", "futex", "rt_sigprocmask"];
        for counts in [&mut ours, &mut theirs] {
            counts.retain(|(_, nr), _| !DIFFERENT.contains(&name_of(*nr)));
        }
        assert_eq!(ours, theirs, "{name}");
        assert_eq!(recording.unknown, in_kernel.unknown, "{name}");
        let socket = super::support::call(&recording, Arch::X86_64, "socket");
        assert_eq!(
            socket.values[&0],
            BTreeMap::from([(1, 1), (2, 4), (0x7_0000_0001, 1)])
        );
    }
}

/// What a guest counts itself is what it calls, whatever it does meanwhile.
#[test]
fn a_guest_counts_its_own_calls() {
    let platform = tamis_platform::by_name("patched").expect("it has this name");
    if skip::without_live() {
        return;
    }
    if let Err(unavailable) = platform.probe() {
        return skip::because(Need::Live, unavailable);
    }
    let folder = toolchains::C.folder(Path::new(env!("CARGO_TARGET_TMPDIR")), "counted");
    let Some(program) = toolchains::C.build(&folder, include_str!("programs/counted.c")) else {
        return;
    };
    let counting = Counting::new(false);
    let filter = Counting::filter();
    let guest = Guest {
        program: program.into_os_string(),
        args: Vec::new(),
        filter: &filter,
        has_results: false,
    };
    let options = Options {
        tally: Some(counting.tally()),
        ..Options::default()
    };
    let ended = platform.run(&guest, &counting, &options);
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    let recording = counting.recording();
    let made = [
        ("getppid", 16_000),
        ("getsid", 22_000),
        ("getpgrp", 2000),
        ("tgkill", 2000),
        ("rt_sigreturn", 2000),
        ("geteuid", 100),
        ("execve", 2),
    ];
    for (call, count) in made {
        let counts = super::support::call(&recording, Arch::X86_64, call);
        assert_eq!(counts.count, count, "{call}");
    }
    let by_itself: u64 = counting
        .tally()
        .counts()
        .iter()
        .map(|(_, count)| count)
        .sum();
    assert!(by_itself > 39_000, "{by_itself}");
}

fn name_of(nr: Nr) -> &'static str {
    tamis_abi::syscall::name(Arch::X86_64, nr).unwrap_or_default()
}
