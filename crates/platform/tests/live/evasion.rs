//! Guests that attempt calls past the supervisor: by another interface, the vsyscall page, or their own filters.

use std::fs;
use std::sync::atomic::Ordering;

use tamis_kernel::Ended;
use tamis_platform::{Guest, Options, Platform};

use crate::cases::{Outcome, WITHOUT_I386, has_i386, run};
use crate::guests;
use crate::host::{self, Asked, Host, filter};

/// A filter for all threads, installed through the 32-bit interface while a thread waits for an answer, is handled like
/// one of the 64-bit interface.
pub(crate) fn late_by_i386(platform: &dyn Platform) -> Outcome {
    if !has_i386() {
        return WITHOUT_I386;
    }
    let (host, options) = (Host::default(), Options::default());
    let ended = run(platform, "late", &["i386"], Asked::Some, &host, &options);
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    Outcome::Passed
}

/// A guest's own filters don't hide calls from the supervisor.
pub(crate) fn hides(platform: &dyn Platform) -> Outcome {
    let filter = host::about_filters();
    let catches_i386 = has_i386() && platform.caps().catches_i386;
    let args = [(catches_i386, "i386"), (has_vsyscalls(), "vsyscall")];
    let guest = Guest {
        program: guests::path("hides").into(),
        args: args
            .into_iter()
            .map(|(has, name)| if has { name.into() } else { "".into() })
            .collect(),
        filter: &filter,
        has_results: false,
    };
    let ended = platform.run(&guest, &Host::default(), &Options::default());
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    Outcome::Passed
}

/// A supervisor that denies filters to the guest doesn't receive the platform's own installations.
pub(crate) fn without_filters(platform: &dyn Platform) -> Outcome {
    let filter = host::asking_about_filters();
    let guest = Guest {
        program: guests::path("loop").into(),
        args: Vec::new(),
        filter: &filter,
        has_results: false,
    };
    let ended = platform.run(&guest, &host::Denying::default(), &Options::default());
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    Outcome::Passed
}

/// Whether programs have an executable vsyscall page.
fn has_vsyscalls() -> bool {
    let maps = fs::read_to_string("/proc/self/maps").expect("the mappings");
    let mut pages = maps.lines().filter(|line| line.contains("[vsyscall]"));
    pages.any(|page| page.contains("xp "))
}

/// Each call through the vsyscall page reaches the supervisor once.
pub(crate) fn vsyscall(platform: &dyn Platform) -> Outcome {
    if !has_vsyscalls() {
        return Outcome::Skipped("this kernel has no vsyscall page");
    }
    let caps = platform.caps();
    let filter = filter(Asked::Some);
    for has_results in [false, true] {
        if has_results && !caps.sees_results {
            continue;
        }
        let host = Host::default();
        let guest = Guest {
            program: guests::path("vsyscall").into(),
            args: Vec::new(),
            filter: &filter,
            has_results,
        };
        let ended = platform.run(&guest, &host, &Options::default());
        assert_eq!(ended.expect("it runs"), Ended::Exited(0));
        if !caps.is_signal_safe {
            assert_eq!(host.asked.load(Ordering::Relaxed), 400);
        }
    }
    Outcome::Passed
}

/// A permit for a call of one interface doesn't cover the other interface's call with the same number.
pub(crate) fn permits(platform: &dyn Platform) -> Outcome {
    if !has_i386() {
        return WITHOUT_I386;
    }
    let has_slots = ["patched", "stub"].contains(&platform.name());
    let args = if has_slots { &["slots"][..] } else { &[] };
    let (host, options) = (Host::default(), Options::default());
    let ended = run(platform, "permits", args, Asked::Some, &host, &options);
    assert_eq!(ended.expect("it runs"), Ended::Exited(0));
    Outcome::Passed
}
