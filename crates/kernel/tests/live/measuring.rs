//! Measuring: every figure is there, whatever the filter denies, and nothing is left behind.

use libtest_mimic::Trial;
use tamis_abi::{Action, SeccompData};
use tamis_bpf::Program;
use tamis_bpf::harmless::harmless;
use tamis_kernel::measure::{Call, calls};
use tamis_kernel::{InstallError, MeasureError, measure};

use crate::support::{answering, constant, told, trial};

/// All tests.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("measure: every subject and call has its figures", figures),
        trial("measure: a filter that denies ending", denied_end),
        trial("measure: a child that is killed", killed),
        trial("measure: a filter that can't be installed", refused),
        trial("measure: nothing is left behind", || {
            assert_eq!(told(&["measure-often"]), "");
        }),
    ]
}

fn usual_calls() -> Vec<SeccompData> {
    let arch = tamis_kernel::native_arch().expect("a known architecture");
    calls::DEFAULT
        .iter()
        .filter_map(|name| Call::find(name).expect("it can be called").data(arch))
        .collect()
}

/// Measures stacks and checks that all figures are positive.
pub(crate) fn check(stacks: &[Vec<Program>]) {
    let calls = usual_calls();
    assert_eq!(calls.len(), calls::DEFAULT.len());
    let measured = measure(stacks, &calls, 2).expect("it can be measured");
    assert_eq!(measured.len(), stacks.len());
    for subject in measured {
        assert_eq!(subject.calls.len(), calls.len());
        assert!(subject.install_ns > 0.0);
        for timing in subject.calls {
            assert!(timing.min_ns > 0.0 && timing.median_ns >= timing.min_ns);
        }
    }
}

fn figures() {
    let allow = || constant(Action::ALLOW.ret());
    check(&[vec![], vec![allow()], vec![allow(), allow()]]);
}

fn denied_end() {
    let kill = harmless(&constant(Action::KILL_PROCESS.ret()), 38).expect("it is short");
    let end = answering(libc::SYS_exit_group, Action::errno(1).ret());
    check(&[vec![kill], vec![end]]);
}

fn killed() {
    let kill = constant(Action::KILL_PROCESS.ret());
    let died = MeasureError::Died {
        subject: 1,
        signal: Some(libc::SIGSYS),
    };
    assert_eq!(measure(&[vec![], vec![kill]], &usual_calls(), 1), Err(died));
}

fn refused() {
    let deny = answering(libc::SYS_seccomp, Action::errno(libc::EPERM as u16).ret());
    let stack = vec![deny, constant(Action::ALLOW.ret())];
    let result = measure(&[stack], &usual_calls(), 1);
    let is_second = matches!(
        result,
        Err(MeasureError::Install {
            subject: 0,
            filter: 1,
            error: InstallError::Refused(_),
        })
    );
    assert!(is_second, "{result:?}");
}
