//! Measuring: every figure is there, whatever the filter denies, and nothing is left behind.

use libtest_mimic::Trial;
use tamis_abi::{Action, ActionKind, SeccompData};
use tamis_bpf::harmless::harmless;
use tamis_bpf::{AluOp, Insn, Op, Operand, Program};
use tamis_kernel::measure::{Call, Rounds, TimedCalls, bitmap, calls, measure_workload};
use tamis_kernel::{InstallError, MeasureError, NATIVE_ENDIAN, measure};

use crate::support::{answering, constant, output_of, trial};

/// All tests.
pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("measure: every subject and call has its figures", figures),
        trial("measure: a filter that denies ending", denied_end),
        trial("measure: harmless filters kill nobody", harmless_filters),
        trial(
            "measure: every call that can be made comes back",
            every_call,
        ),
        trial("measure: short and long sequences", sequences),
        trial(
            "measure: each stack and call is asked for in the bitmap",
            skipped,
        ),
        trial("measure: a child that is killed", killed),
        trial("measure: a filter that can't be installed", refused),
        trial("measure: nothing is left behind", || {
            assert_eq!(output_of(&["measure-often"]), "");
        }),
    ]
}

fn usual_calls() -> Vec<SeccompData> {
    let arch = tamis_abi::host::arch().expect("a known architecture");
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

fn program(ops: &[Op]) -> Program {
    let insns = ops.iter().copied().map(Insn::from).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("it is valid")
}

/// Every action, and some that don't exist, as constants and computed from the call.
fn harmless_filters() {
    let actions = ActionKind::ALL.map(|kind| Action::new(kind, 0).ret());
    let unknown = [0x0001_0000, 0x1234_0000, 0x7fff_0001];
    for ret in actions.into_iter().chain(unknown) {
        let computed = program(&[
            Op::LoadData(0),
            Op::Alu(AluOp::And, Operand::K(0)),
            Op::Alu(AluOp::Or, Operand::K(ret)),
            Op::RetA,
        ]);
        let stacks = [constant(ret), computed].map(|program| {
            let tame = harmless(&program, libc::ENOSYS as u16).expect("it is short");
            vec![tame]
        });
        check(&stacks);
    }
}

/// Arguments that would have an effect if they were not replaced.
fn every_call() {
    let arch = tamis_abi::host::arch().expect("a known architecture");
    let one = |value| [value; 6];
    let arguments = [
        one(0),
        one(1),
        one(2),
        one(9),
        one(u64::from(u32::MAX)),
        one(u64::MAX),
        [0, 1, 2, 3, 4, 5],
        [1, 0x10, 0x1000, 0x22, u64::MAX, 0],
    ];
    let call = |name: &str, args| Call::with_args(name, args).expect("it can be made");
    let all = Call::names().flat_map(|name| arguments.map(|args| call(name, args)));
    let sequence: Vec<SeccompData> = all.filter_map(|call| call.data(arch)).collect();
    let mut workload = TimedCalls::default();
    workload.add(&sequence);
    let measured = measure_workload(&[vec![]], &workload, Rounds::exactly(1), &mut |_| {});
    let measured = measured.expect("every call comes back");
    assert!(measured.subjects[0].calls[0].min_ns > 0.0);
}

fn sequences() {
    let calls = usual_calls();
    let long: Vec<SeccompData> = calls.iter().copied().cycle().take(1000).collect();
    let mut workload = TimedCalls::default();
    for sequence in [&calls[..1], &calls, &long, &[]] {
        workload.add(sequence);
    }
    let mut told = Vec::new();
    let allow = vec![constant(Action::ALLOW.ret())];
    let rounds = Rounds::exactly(2);
    let measured = measure_workload(&[vec![], allow], &workload, rounds, &mut |progress| {
        told.push((progress.round, progress.subject));
    });
    let measured = measured.expect("it can be measured");
    assert_eq!(told, [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]);
    assert_eq!(measured.rounds, 2);
    assert!(measured.clock.ns_per_tick > 0.0);
    for subject in measured.subjects {
        let [one, short, long, none] = &subject.calls[..] else {
            panic!("four sequences");
        };
        for timing in [one, short, long] {
            assert!(timing.min_ns > 0.0 && timing.median_ns >= timing.min_ns);
        }
        assert!(none.min_ns < one.min_ns);
    }
}

/// The results depend on timing, so the test doesn't check them.
fn skipped() {
    let calls = usual_calls();
    let first = answering(calls[0].nr.into(), Action::errno(1).ret());
    let stacks = [vec![], vec![constant(Action::ALLOW.ret())], vec![first]];
    let answers = bitmap::skips_filters(&stacks, &calls).expect("it can be measured");
    assert!(answers.iter().all(|answers| answers.len() == calls.len()));
    assert_eq!(answers.len(), stacks.len());
    assert!(answers[0].iter().all(Option::is_none));
}
