//! The cases of the conformance suite; each runs in its own process.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::thread;

use tamis_abi::{KernelVersion, SeccompData};
use tamis_kernel::Ended;
use tamis_kernel::spawn::SpawnError;
use tamis_platform::{
    Answer, Caps, Guest, Isolation, Options, Placement, Platform, PlatformError, Spin, Supervisor,
    Task,
};

use crate::host::{self, Asked, Host, filter};
use crate::{evasion, guests, limits, newborn, storms};

/// The outcome of a case.
pub(crate) enum Outcome {
    Passed,
    /// The platform's capabilities, or the machine, lack a requirement of the case.
    Skipped(&'static str),
}

/// A case: its name, its requirements, and its code.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The reason that a platform with these capabilities can't run the case.
    without: fn(&Caps) -> Option<&'static str>,
    run: fn(&dyn Platform) -> Outcome,
}

macro_rules! guest {
    ($name:literal, $without:expr) => {
        guest!($name, $name, Asked::Some, $without)
    };
    ($case:literal, $name:literal, $asked:expr, $without:expr) => {
        Case {
            name: $case,
            without: $without,
            run: |platform| {
                let host = Host::default();
                let ended = run(platform, $name, &[], $asked, &host, &Options::default());
                assert_eq!(ended.expect("it runs"), Ended::Exited(0));
                // A supervisor in the guest's own process counts there.
                if !platform.caps().is_signal_safe {
                    assert_ne!(host.asked.load(Ordering::Relaxed), 0);
                }
                assert_eq!(
                    host.started.load(Ordering::Relaxed),
                    host.ended.load(Ordering::Relaxed)
                );
                Outcome::Passed
            },
        }
    };
}

/// All cases.
pub(crate) const CASES: [Case; 74] = [
    guest!("loop", any),
    guest!("arguments", any),
    guest!("results", any),
    guest!("pointers", any),
    guest!("threads", threads),
    guest!("threads, all asked", "threads", Asked::All, threads),
    guest!("processes", forks),
    guest!("processes, all asked", "processes", Asked::All, forks),
    guest!("exec", exec),
    guest!("exec, all asked", "exec", Asked::All, exec),
    guest!("signals", any),
    guest!("signals, all asked", "signals", Asked::All, any),
    guest!("sigsys", filters),
    guest!("sigsys, all asked", "sigsys", Asked::All, filters),
    guest!("faults", any),
    guest!("faults, all asked", "faults", Asked::All, any),
    guest!("exceptions", any),
    guest!("machine", machine),
    guest!("machine, all asked", "machine", Asked::All, machine),
    Case::new("monitor", machine, monitor),
    Case::new("as notify", any, as_notify),
    Case::new("decided", forks, decided),
    guest!("lost", threads),
    guest!("registers", any),
    guest!("restart", forks),
    guest!("restart, all asked", "restart", Asked::All, forks),
    Case::new("probed", any, limits::probed),
    guest!("ignored", forks),
    guest!("ignored, all asked", "ignored", Asked::All, forks),
    Case::new(
        "storms",
        |caps| {
            let is_vm = caps.isolation == Isolation::Vm;
            let reason = "a signal may end its calls before they are received";
            forks(caps).or(is_vm.then_some(reason))
        },
        storms::storms,
    ),
    guest!("tasks", forks),
    guest!("killed", forks),
    guest!("killed, all asked", "killed", Asked::All, forks),
    Case::new("newborn", patches, newborn::newborn),
    guest!("siblings", forks),
    guest!("bases", threads),
    guest!("attack", forks),
    Case::new("heirs", forks, limits::heirs),
    Case::new("patched sites", patches, patched_sites),
    guest!("confined", filters_and_forks),
    guest!("together", filters_and_forks),
    guest!("late", filters_and_forks),
    guest!("trapped", filters_and_forks),
    guest!("refused", filters),
    guest!("stacks", any),
    guest!("stacks, all asked", "stacks", Asked::All, any),
    Case::new(
        "late, by i386",
        |caps| {
            let misses = (!caps.catches_i386).then_some("it misses calls of the 32-bit interface");
            misses.or_else(|| filters_and_forks(caps))
        },
        evasion::late_by_i386,
    ),
    Case::new("rush", threads, crate::rush::rush),
    Case::new("rolled back", patches, rolled_back),
    Case::new(
        "interfaces",
        |caps| (!caps.catches_i386).then_some("it misses calls of the 32-bit interface"),
        interfaces,
    ),
    Case::new(
        "permits",
        |caps| {
            let has_all = caps.catches_i386 && caps.has_threads;
            (!has_all).then_some("it misses calls of the 32-bit interface, or has no threads")
        },
        evasion::permits,
    ),
    Case::new("hides", filters_and_forks, evasion::hides),
    Case::new("without filters", any, evasion::without_filters),
    Case::new(
        "vsyscall",
        |caps| {
            let is_vm = caps.isolation == Isolation::Vm;
            is_vm.then_some("its guests have no vsyscall page")
        },
        evasion::vsyscall,
    ),
    Case::new(
        "32-bit program",
        |caps| {
            let has_all = caps.catches_i386 && caps.has_forks && caps.runs_dynamic;
            (!has_all).then_some("it runs no 32-bit programs")
        },
        program32,
    ),
    Case::new("ends", any, ends),
    Case::new("not found", any, not_found),
    Case::new("descriptor", any, descriptor),
    Case::new("replaced call", any, replaced_call),
    Case::new("replaced result", any, replaced_result),
    Case::new("placement", any, placement),
    Case::new("spin", any, spin),
    Case::new("until", forks, until),
    Case::new("panic", forks, panic),
    Case::new("nested", exec, nested),
    Case::new("many tasks", forks, limits::many_tasks),
    Case::new("many calls", any, limits::many_calls),
    Case::new("many in turn", any, many_in_turn),
    Case::new("two at once", any, two_at_once),
    Case::new("inherited descriptors", any, limits::inherited_descriptors),
    Case::new("few descriptors", any, limits::few_descriptors),
    Case::new("little memory", any, limits::little_memory),
    Case::new("busybox", exec, busybox),
    Case::new(
        "dynamic",
        |caps| {
            let has_all = caps.runs_dynamic && caps.has_exec && caps.has_forks;
            (!has_all).then_some("it runs no dynamically linked programs that execute others")
        },
        dynamic,
    ),
];

/// The case for a guest in Go, which needs its own compiler.
pub(crate) const GO: Case = Case {
    name: "go",
    without: threads,
    run: go,
};

fn any(_: &Caps) -> Option<&'static str> {
    None
}

fn threads(caps: &Caps) -> Option<&'static str> {
    (!caps.has_threads).then_some("it has no threads")
}

fn forks(caps: &Caps) -> Option<&'static str> {
    (!(caps.has_forks && caps.has_threads)).then_some("it has no processes")
}

fn patches(caps: &Caps) -> Option<&'static str> {
    (!caps.patches_sites).then_some("it patches no sites")
}

fn filters(caps: &Caps) -> Option<&'static str> {
    (!caps.takes_filters).then_some("its guests install no filters")
}

pub(crate) fn filters_and_forks(caps: &Caps) -> Option<&'static str> {
    filters(caps).or_else(|| forks(caps))
}

fn machine(caps: &Caps) -> Option<&'static str> {
    (caps.isolation != Isolation::Vm).then_some("its guests are in no machine")
}

fn exec(caps: &Caps) -> Option<&'static str> {
    let has_all = caps.has_exec && caps.has_forks && caps.has_threads;
    (!has_all).then_some("it executes no programs")
}

impl Case {
    const fn new(
        name: &'static str,
        without: fn(&Caps) -> Option<&'static str>,
        run: fn(&dyn Platform) -> Outcome,
    ) -> Case {
        Case { name, without, run }
    }

    /// Runs the case, and then checks for leaks.
    pub(crate) fn play(&self, platform: &dyn Platform) -> Outcome {
        if let Some(reason) = (self.without)(&platform.caps()) {
            return Outcome::Skipped(reason);
        }
        let before = descriptors();
        let outcome = (self.run)(platform);
        assert_eq!(descriptors(), before, "descriptors");
        // A joined thread may still be exiting; one that never exits is found by the time limit.
        while threads_count() != 1 {
            thread::yield_now();
        }
        assert_eq!(children(), "", "children");
        let maps = fs::read_to_string("/proc/self/maps").expect("the mappings");
        assert!(!maps.contains("memfd:tamis"), "mappings");
        outcome
    }
}

pub(crate) fn run(
    platform: &dyn Platform,
    name: &str,
    args: &[&str],
    asked: Asked,
    host: &Host,
    options: &Options<'_>,
) -> Result<Ended, PlatformError> {
    let filter = filter(asked);
    let guest = Guest {
        program: guests::path(name).into(),
        args: args.iter().map(Into::into).collect(),
        filter: &filter,
        has_results: false,
    };
    platform.run(&guest, host, options)
}

fn answers(platform: &dyn Platform, what: &str, host: &Host) -> Result<Ended, PlatformError> {
    let options = Options::default();
    run(platform, "answers", &[what], Asked::Some, host, &options)
}

/// The descriptors of this process.
fn descriptors() -> Vec<String> {
    let entries = fs::read_dir("/proc/self/fd").expect("the descriptors");
    let paths = entries.map(|entry| entry.expect("a descriptor").path());
    // The folder itself has a descriptor while it is read.
    let targets = paths.filter_map(|path| fs::read_link(path).ok());
    let names = targets.map(|target| target.display().to_string());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with("/fd")).collect();
    names.sort();
    names
}

fn threads_count() -> usize {
    fs::read_dir("/proc/self/task")
        .expect("the threads")
        .count()
}

fn children() -> String {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    fs::read_to_string(path).unwrap_or_default()
}

fn signalled(signal: i32) -> impl Fn(&Ended) -> bool {
    move |ended| ended.is_by(signal)
}

pub(crate) const WITHOUT_I386: Outcome = Outcome::Skipped("this kernel has no 32-bit interface");

pub(crate) fn has_i386() -> bool {
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    let native = std::process::Command::new(guests::path("interfaces"))
        .arg("probe")
        .status();
    native.expect("it starts").code() == Some(0)
}

fn interfaces(platform: &dyn Platform) -> Outcome {
    if !has_i386() {
        return WITHOUT_I386;
    }
    let host = Host::default();
    let options = Options::default();
    let ended = run(platform, "interfaces", &[], Asked::Some, &host, &options);
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    Outcome::Passed
}

/// A guest that attacks its machine's monitor, under a filter that denies the 32-bit interface.
fn monitor(platform: &dyn Platform) -> Outcome {
    let has_i386 = has_i386();
    let filter = host::without_i386();
    let guest = Guest {
        program: guests::path("monitor").into(),
        args: has_i386.then(|| "i386".into()).into_iter().collect(),
        filter: &filter,
        has_results: false,
    };
    let ended = platform.run(&guest, &Host::default(), &Options::default());
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    Outcome::Passed
}

/// The same calls under the same filters return the same values as on the platform `notify`.
fn as_notify(platform: &dyn Platform) -> Outcome {
    let notify = tamis_platform::by_name("notify").expect("a platform");
    if notify.probe().is_err() {
        return Outcome::Skipped("the platform `notify` doesn't work here");
    }
    let name = format!("answered-{}-{}", platform.name(), std::process::id());
    let file = guests::path(&name);
    for (index, filter) in host::filters_to_compare().iter().enumerate() {
        let answers = |platform: &dyn Platform| {
            let guest = Guest {
                program: guests::path("answered").into(),
                args: vec![file.clone().into()],
                filter,
                has_results: false,
            };
            let ended = platform.run(&guest, &Host::default(), &Options::default());
            let results = fs::read(&file).expect("the results");
            fs::remove_file(&file).expect("the file");
            (ended.expect("it runs"), results)
        };
        let expected = answers(notify);
        assert!(!expected.1.is_empty());
        assert_eq!(answers(platform), expected, "filter {index}");
    }
    Outcome::Passed
}

/// A filter's actions for calls that create and end tasks end the guest as on the platform `notify`.
fn decided(platform: &dyn Platform) -> Outcome {
    let notify = tamis_platform::by_name("notify").expect("a platform");
    if notify.probe().is_err() {
        return Outcome::Skipped("the platform `notify` doesn't work here");
    }
    let (about_tasks, interrupted) = (host::about_tasks(), host::interrupted());
    let without_sigreturn = host::without_sigreturn();
    // The race of `r` is rarely lost, so it is repeated.
    for scene in "k t l i v f c h e m w s r r r r r - m o b".split(' ') {
        if scene == "-" {
            limits::drop_capability(1 << 24); // CAP_SYS_RESOURCE: limits may not be raised.
            continue;
        }
        let ended = |platform: &dyn Platform| {
            let guest = Guest {
                program: guests::path("decided").into(),
                args: vec![scene.into()],
                filter: match scene {
                    "h" => &without_sigreturn,
                    "e" => &interrupted,
                    _ => &about_tasks,
                },
                has_results: false,
            };
            let (host, options) = (Host::default(), Options::default());
            platform.run(&guest, &host, &options).expect("it runs")
        };
        let expected = ended(notify);
        assert_ne!(expected, Ended::Exited(1), "{scene}");
        assert_eq!(ended(platform), expected, "{scene}");
    }
    Outcome::Passed
}

fn program32(platform: &dyn Platform) -> Outcome {
    for asked in [Asked::Some, Asked::All] {
        let host = Host::default();
        let options = Options::default();
        match run(platform, "program32", &[], asked, &host, &options) {
            Ok(ended) => assert_eq!(ended, Ended::Exited(0)),
            Err(PlatformError::Spawn(SpawnError::Exec(_))) => {
                return Outcome::Skipped("there is no compiler for it, or no kernel");
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    Outcome::Passed
}

/// The ends of guests: by the filter, by the supervisor, and on their own.
fn ends(platform: &dyn Platform) -> Outcome {
    let host = Host::default();
    for (what, code) in [
        ("e", 0),
        ("t", 0),
        ("l", 0),
        ("0", 0),
        ("7", 7),
        ("255", 255),
    ] {
        let ended = answers(platform, what, &host).expect("it runs");
        assert_eq!(ended, Ended::Exited(code), "{what}");
    }
    for (what, signal) in [("k", libc::SIGKILL), ("s", libc::SIGSYS)] {
        let ended = answers(platform, what, &host).expect("it runs");
        assert!(signalled(signal)(&ended), "{what}: {ended:?}");
    }
    Outcome::Passed
}

fn not_found(platform: &dyn Platform) -> Outcome {
    let options = Options::default();
    let host = Host::default();
    let error = run(platform, "nothing", &[], Asked::Some, &host, &options).unwrap_err();
    let is_said = match &error {
        PlatformError::Spawn(SpawnError::Exec(errno)) => errno.0 == libc::ENOENT,
        PlatformError::Request { errno, .. } => errno.0 == libc::ENOENT,
        _ => false,
    };
    assert!(is_said, "{error:?}");
    Outcome::Passed
}

/// This guest's sites are certainly patched; otherwise the other cases would test less than they seem to.
fn patched_sites(platform: &dyn Platform) -> Outcome {
    let (host, options) = (Host::default(), Options::default());
    let ended = run(
        platform,
        "attack",
        &["patched"],
        Asked::Some,
        &host,
        &options,
    );
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    assert_eq!(host.asked.load(Ordering::Relaxed), 1100);
    Outcome::Passed
}

/// Sites are rolled back on request, and before a process that has borrowed or lent its memory gets a filter.
fn rolled_back(platform: &dyn Platform) -> Outcome {
    let host = Host::default();
    let options = Options {
        unpatch: Some(&host.unpatch),
        ..Options::default()
    };
    for scene in ["lends", "storm", "asks"] {
        let ended = run(platform, "confined", &[scene], Asked::Some, &host, &options);
        assert_eq!(ended.expect("it runs"), Ended::Exited(0), "{scene}");
    }
    assert!(host.unpatch.load(Ordering::Relaxed));
    Outcome::Passed
}

/// Whether the running kernel is older than a version.
pub(crate) fn is_before(version: KernelVersion) -> bool {
    tamis_kernel::probe::version().is_some_and(|running| running < version)
}

fn descriptor(platform: &dyn Platform) -> Outcome {
    if platform.name() == "notify" && is_before(KernelVersion::new(5, 14)) {
        return Outcome::Skipped("before Linux 5.14 an answer has no descriptor");
    }
    let host = Host::default();
    *host.descriptor.lock().expect("no panic") = Some(File::open("/dev/zero").expect("zeros"));
    assert_can(
        answers(platform, "d", &host),
        platform.caps().installs_descriptors,
    )
}

fn replaced_call(platform: &dyn Platform) -> Outcome {
    let host = Host::default();
    assert_can(
        answers(platform, "w", &host),
        platform.caps().replaces_calls,
    )
}

fn replaced_result(platform: &dyn Platform) -> Outcome {
    let filter = filter(Asked::Some);
    let guest = Guest {
        program: guests::path("answers").into(),
        args: vec!["r".into()],
        filter: &filter,
        has_results: true,
    };
    let ended = platform.run(&guest, &Host::default(), &Options::default());
    assert_can(ended, platform.caps().sees_results)
}

/// A platform supports its declared capabilities, and rejects the rest.
fn assert_can(ended: Result<Ended, PlatformError>, can: bool) -> Outcome {
    match (ended, can) {
        (Ok(Ended::Exited(0)), true) => Outcome::Passed,
        (Err(PlatformError::Unsupported(_)), false) => Outcome::Skipped("it can't, and says so"),
        (ended, _) => panic!("{ended:?}"),
    }
}

fn placement(platform: &dyn Platform) -> Outcome {
    let cpus = tamis_kernel::affinity::allowed().expect("the CPUs");
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    let mut placements = vec![Placement::Same(last)];
    if first != last {
        placements.push(Placement::Apart {
            guest: last,
            supervisor: first,
        });
    }
    for placement in placements {
        let options = Options {
            placement,
            ..Options::default()
        };
        let host = Host::default();
        let ended = run(platform, "loop", &[], Asked::Some, &host, &options);
        assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    }
    // The caller's affinity is unchanged.
    assert_eq!(tamis_kernel::affinity::allowed().expect("the CPUs"), cpus);
    let options = Options {
        placement: Placement::Same(usize::MAX),
        ..Options::default()
    };
    let host = Host::default();
    assert!(run(platform, "loop", &[], Asked::Some, &host, &options).is_err());
    Outcome::Passed
}

fn spin(platform: &dyn Platform) -> Outcome {
    for spin in [Spin::Never, Spin::Bounded(50), Spin::Adaptive] {
        let options = Options {
            spin,
            ..Options::default()
        };
        let host = Host::default();
        let ended = run(platform, "loop", &[], Asked::Some, &host, &options);
        assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    }
    Outcome::Passed
}

/// Guests that block in calls, or that make none, are killed from outside.
fn until(platform: &dyn Platform) -> Outcome {
    for args in [&[][..], &["busy"]] {
        let host = Host::default();
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                // The guest's first call precedes the blocking one; with a supervisor in the guest's own process the
                // time is arbitrary.
                let sees = !platform.caps().is_signal_safe;
                while sees && host.asked.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
                writer.write_all(&[1]).expect("the pipe");
            });
            let options = Options {
                until: Some(reader.as_fd()),
                ..Options::default()
            };
            run(platform, "blocked", args, Asked::All, &host, &options)
        });
        assert!(ended.expect("it runs").is_by(libc::SIGKILL));
    }
    Outcome::Passed
}

/// A panic of the supervisor ends the guest, and is passed on to the caller.
fn panic(platform: &dyn Platform) -> Outcome {
    struct Panicking;
    impl Supervisor for Panicking {
        fn call(&self, _task: &mut dyn Task, _call: &SeccompData) -> Answer {
            panic!("as the test wants");
        }
    }
    if platform.caps().is_signal_safe {
        return Outcome::Skipped("a signal handler may not panic");
    }
    let filter = filter(Asked::Some);
    let guest = Guest {
        program: guests::path("blocked").into(),
        args: vec!["busy".into()],
        filter: &filter,
        has_results: false,
    };
    let run = || platform.run(&guest, &Panicking, &Options::default());
    assert!(std::panic::catch_unwind(AssertUnwindSafe(run)).is_err());
    Outcome::Passed
}

/// A supervisor in a guest: the inner platform works, or returns an expected error.
fn nested(platform: &dyn Platform) -> Outcome {
    let filter = filter(Asked::Some);
    let host = Host::default();
    for inner in tamis_platform::all() {
        let guest = Guest {
            program: std::env::current_exe().expect("its own path").into(),
            args: vec![crate::NESTED.into(), inner.name().into()],
            filter: &filter,
            has_results: false,
        };
        if !platform.caps().runs_dynamic {
            return Outcome::Skipped("it runs no dynamically linked programs");
        }
        let ended = platform.run(&guest, &host, &Options::default());
        let ended = ended.expect("it runs");
        assert_eq!(ended, Ended::Exited(0), "{} inside", inner.name());
    }
    Outcome::Passed
}

/// The inner side of [`nested`].
pub(crate) fn play_nested(platform: &dyn Platform) {
    let host = Host::default();
    let options = Options::default();
    match run(platform, "loop", &[], Asked::Some, &host, &options) {
        Ok(ended) => assert_eq!(ended, Ended::Exited(0)),
        Err(PlatformError::Request { .. } | PlatformError::Spawn(_)) => {}
        Err(PlatformError::Unavailable(_)) => {}
        Err(error) => panic!("{error:?}"),
    }
}

fn many_in_turn(platform: &dyn Platform) -> Outcome {
    for code in 0..20 {
        let ended = answers(platform, &code.to_string(), &Host::default());
        assert_eq!(ended.expect("it runs"), Ended::Exited(code));
    }
    Outcome::Passed
}

fn two_at_once(platform: &dyn Platform) -> Outcome {
    if platform.caps().is_signal_safe {
        return Outcome::Skipped("its guests' signal handlers are those of the process");
    }
    thread::scope(|scope| {
        let guests = [1, 2].map(|code: u8| {
            let one = move || answers(platform, &code.to_string(), &Host::default());
            (code, scope.spawn(one))
        });
        for (code, guest) in guests {
            let ended = guest.join().expect("no panic").expect("it runs");
            assert_eq!(ended, Ended::Exited(code));
        }
    });
    Outcome::Passed
}

/// Runs a program of the machine as a guest; false if it isn't installed.
fn foreign(platform: &dyn Platform, program: &str, args: &[&str], expected: Ended) -> bool {
    let filter = filter(Asked::Some);
    let guest = Guest {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        filter: &filter,
        has_results: false,
    };
    match platform.run(&guest, &Host::default(), &Options::default()) {
        Ok(ended) => {
            assert_eq!(ended, expected, "{program}");
            true
        }
        Err(PlatformError::Spawn(SpawnError::Exec(errno))) if errno.0 == libc::ENOENT => false,
        Err(error) => panic!("{program}: {error:?}"),
    }
}

fn busybox(platform: &dyn Platform) -> Outcome {
    // Busybox executes itself for `wc`, unless its path is given.
    let path = tamis_kernel::search::find("busybox".as_ref());
    let path = path.map(|path| path.display().to_string());
    let prefix = match (platform.caps().has_own_exe, path) {
        (false, Ok(path)) => format!("{path} "),
        _ => String::new(),
    };
    let script = format!("test $(echo a b c | {prefix}wc -w) = 3 && exit 42");
    let listing = format!("{prefix}ls / | {prefix}wc | {prefix}grep -q . && exit 43");
    let sh = |script: &str, code| {
        let ended = Ended::Exited(code);
        foreign(platform, "busybox", &["sh", "-c", script], ended)
    };
    match sh(&script, 42) && sh(&listing, 43) {
        true => Outcome::Passed,
        false => Outcome::Skipped("busybox is not installed"),
    }
}

fn dynamic(platform: &dyn Platform) -> Outcome {
    assert!(foreign(platform, "true", &[], Ended::Exited(0)));
    let script = "for i in 1 2 3; do /bin/true | cat; done; (exit 7)";
    assert!(foreign(platform, "sh", &["-c", script], Ended::Exited(7)));
    Outcome::Passed
}

fn go(platform: &dyn Platform) -> Outcome {
    let program = guests::path("hello-go");
    let program = program.to_str().expect("a path in UTF-8");
    match foreign(platform, program, &[], Ended::Exited(0)) {
        true => Outcome::Passed,
        false => Outcome::Skipped("there is no compiler of Go"),
    }
}

/// Runs a guest that blocks until this process is killed.
pub(crate) fn play_orphan(platform: &dyn Platform, args: &[&str]) {
    let options = Options::default();
    let _ = run(
        platform,
        "blocked",
        args,
        Asked::Some,
        &Host::default(),
        &options,
    );
}
