//! The back ends beside each other: equal counts of a program that makes every kind of call.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use tamis_abi::{Arch, Nr};
use tamis_kernel::Ended;
use tamis_platform::{Guest, Options, Platform};
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
fn notify_counts_what_programs_in_the_kernel_count() {
    counts_are_those_of_programs_in_the_kernel("notify");
}

#[test]
fn ptrace_seccomp_counts_what_programs_in_the_kernel_count() {
    counts_are_those_of_programs_in_the_kernel("ptrace-seccomp");
}

#[test]
fn patched_counts_what_programs_in_the_kernel_count() {
    counts_are_those_of_programs_in_the_kernel("patched");
}

/// The platform of this name; the test ends if it doesn't work here.
pub(super) fn platform(name: &str) -> &'static dyn Platform {
    skip::unless_live();
    let platform = tamis_platform::by_name(name).expect("it has this name");
    match platform.probe() {
        Ok(()) => platform,
        Err(unavailable) => skip::because(Need::Live, unavailable),
    }
}

fn counts_are_those_of_programs_in_the_kernel(name: &str) {
    let platform = platform(name);
    let recorder = recorder(ebpf::Options::default());
    let program = program(name);
    let (in_kernel, _) = recorded(&recorder, &program, &[]);
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

/// The platform `patched` and a C program for it.
fn patched(name: &str, text: &str, flags: &[&str]) -> (&'static dyn Platform, OsString) {
    let platform = platform("patched");
    let folder = toolchains::C.folder(Path::new(env!("CARGO_TARGET_TMPDIR")), name);
    let program = toolchains::C.build_with(&folder, text, flags);
    (platform, program.into_os_string())
}

/// How a command ends that counts its own calls, and what is recorded.
fn counted(platform: &dyn Platform, program: &OsStr, args: &[&str]) -> (Ended, Counting) {
    let counting = Counting::new(false);
    let filter = Counting::filter();
    let guest = Guest {
        program: program.to_owned(),
        args: args.iter().map(Into::into).collect(),
        filter: &filter,
        has_results: false,
    };
    let options = Options {
        tally: Some(counting.tally()),
        ..Options::default()
    };
    let ended = platform.run(&guest, &counting, &options);
    (ended.expect("it runs"), counting)
}

/// What a guest counts itself is what it calls, whatever it does meanwhile.
#[test]
fn a_guest_counts_its_own_calls() {
    let (platform, program) = patched("counted", include_str!("programs/counted.c"), &[]);
    let (ended, counting) = counted(platform, &program, &[]);
    assert_eq!(ended, Ended::Exited(0));
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
    let counts = counting.tally().counts();
    let by_itself: u64 = counts.iter().map(|(_, count)| count).sum();
    assert!(by_itself > 39_000, "{by_itself}");
}

#[test]
fn a_guest_does_not_notice_that_its_sites_are_patched() {
    let (platform, program) = patched("unnoticed", include_str!("programs/unnoticed.c"), &[]);
    for part in [
        "parent",
        "interrupted",
        "address",
        "borrowed",
        "lent",
        "cancellation",
    ] {
        let (ended, counting) = counted(platform, &program, &[part]);
        assert_eq!(ended, Ended::Exited(0), "{part}");
        assert!(!counting.tally().counts().is_empty(), "{part}");
        if part == "interrupted" {
            let recording = counting.recording();
            let waits = super::support::call(&recording, Arch::X86_64, "epoll_wait");
            assert_eq!(waits.count, 1);
        }
    }
}

/// Its gates are where sanitizers let programs have memory.
#[test]
fn a_program_with_the_sanitizer_of_threads_counts_its_calls() {
    sanitized_counts_its_calls("thread");
}

#[test]
fn a_program_with_the_sanitizer_of_addresses_counts_its_calls() {
    sanitized_counts_its_calls("address");
}

fn sanitized_counts_its_calls(sanitizer: &str) {
    const PROGRAM: &str = "#include <unistd.h>\n\
        /* That of leaks traces. */\n\
        const char *__asan_default_options(void) { return \"detect_leaks=0\"; }\n\
        int main(void) { for (int i = 0; i < 100; i++) getppid(); return 0; }\n";
    let (platform, program) = patched(
        &format!("sanitized-{sanitizer}"),
        PROGRAM,
        &[&format!("-fsanitize={sanitizer}")],
    );
    let alone = Command::new(&program).output().expect("it starts");
    if !alone.status.success() {
        skip::because(Need::Toolchains, format!("{sanitizer} doesn't work here"));
    }
    let (ended, counting) = counted(platform, &program, &[]);
    assert_eq!(ended, Ended::Exited(0), "{sanitizer}");
    let recording = counting.recording();
    let counts = super::support::call(&recording, Arch::X86_64, "getppid");
    assert_eq!(counts.count, 100, "{sanitizer}");
    assert!(!counting.tally().counts().is_empty(), "{sanitizer}");
}

fn name_of(nr: Nr) -> &'static str {
    tamis_abi::syscall::name(Arch::X86_64, nr).unwrap_or_default()
}
