//! The probe against the kernel's own account of itself.

use std::fs;

use libtest_mimic::Trial;
use tamis_abi::{ActionKind, KernelVersion};
use tamis_kernel::probe::{Mode, Support};
use tamis_kernel::{Flag, probe};
use tamis_testkit::skip::{self, Need};

use crate::support::{output_of, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("probe::agrees_with_the_list_of_actions", actions),
        trial("probe::finds_all_that_the_version_promises", promises),
        trial("probe::sees_its_own_state_and_outer_filters", outer),
        trial("probe::changes_nothing", changes_nothing),
    ]
}

fn actions() {
    let Ok(listed) = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail") else {
        skip::because(Need::Live, "no list of actions in /proc/sys/kernel/seccomp");
    };
    let listed: Vec<&str> = listed.split_ascii_whitespace().collect();
    for (kind, support) in probe().actions {
        let name = match kind {
            ActionKind::Notify => "user_notif",
            other => other.name(),
        };
        assert_eq!(support == Support::Yes, listed.contains(&name), "{name}");
    }
}

fn promises() {
    let probe = probe();
    let version: KernelVersion = probe.version.expect("a release starts with a version");
    for flag in Flag::ALL {
        if version >= flag.since() {
            assert_eq!(probe.flag(flag), Support::Yes, "{}", flag.name());
        }
    }
    let is_notifiable = probe.action(ActionKind::Notify) == Support::Yes;
    assert_eq!(probe.notify_sizes.is_some(), is_notifiable);
    if let Some(sizes) = probe.notify_sizes {
        assert_eq!(sizes.data, 64);
    }
}

/// A filter that denies `seccomp` and `ptrace` is distinguished from a kernel that lacks them.
fn outer() {
    let eperm = output_of(&["probe-under", "50001"]);
    assert_eq!(
        eperm,
        "Unknown Err(Errno(1)) Some(Filter) Some(1) Some(true)"
    );
    let enosys = output_of(&["probe-under", "50026"]);
    assert!(enosys.starts_with("No { since:"), "{enosys}");
}

fn changes_nothing() {
    let before = probe();
    assert_eq!(probe(), before);
    assert_eq!(before.mode, Some(Mode::Disabled));
    assert_eq!(before.no_new_privs, Some(false));
}
