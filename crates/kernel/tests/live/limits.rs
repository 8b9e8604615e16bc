//! The kernel's limits: a filter at the limit is installed, one instruction more is rejected, and tamis predicts both.

use libtest_mimic::Trial;
use tamis_abi::Action;
use tamis_bpf::ebpf_len::kernel_len_insns;
use tamis_bpf::{Op, Operand, Program, Stack, Test};
use tamis_kernel::{Command, Ended, Install, InstallError, RunError, install, run};

use crate::raw;
use crate::support::{ARGS, CALL, output_of, program, stack, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let plays = |name: &'static str, case: &'static str, expected: &'static str| {
        trial(&format!("limits::{name}"), move || {
            assert_eq!(output_of(&["limit", case]), expected);
        })
    };
    vec![
        plays("stack_of_32768", "32768", "installed"),
        plays("stack_of_32769", "32769", "NoRoom { filters: Some(3) }"),
        plays("all_kinds_of_instructions_at_the_limit", "kinds", "well"),
        trial("limits::longest_filter_runs_a_command", longest),
        trial("limits::full_stack_runs_a_command", full_stack),
    ]
}

pub(crate) fn in_victim(case: &str) -> String {
    if case == "kinds" {
        return every_kind();
    }
    let charge_insns = case.parse().expect("a number");
    let (last, older) = filling(charge_insns);
    for program in &older {
        install(program, &Install::default()).expect("there is room");
    }
    match install(&last, &Install::default()) {
        Ok(_) => "installed".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}

/// Filters that allow everything and that the kernel counts as this many instructions together: the newest
/// and three older ones.
fn filling(charge_insns: usize) -> (Program, Vec<Program>) {
    let older = older();
    let so_far = |padding: usize| {
        let last = padded(&vec![Op::Tax; padding]);
        let stack = stack([older.clone(), vec![last.clone()]].concat());
        (stack.charge_insns(), last)
    };
    let padding = charge_insns - so_far(0).0;
    let (charge, last) = so_far(padding);
    assert_eq!(charge, charge_insns);
    (last, older)
}

/// Three filters that take most of the room.
fn older() -> Vec<Program> {
    let two_sided = Op::branch(Test::Set, 1 << 31, 1, 1);
    vec![padded(&vec![two_sided; 3400]); 3]
}

/// A program that allows everything and has these instructions behind that.
fn padded(padding: &[Op]) -> Program {
    let allow = Op::RetImm(Action::ALLOW.ret());
    let ops = [allow].into_iter().chain(padding.iter().copied());
    program(ops.chain([allow, allow]).collect())
}

/// One instruction of each kind in the way of a last filter that would just fit.
fn every_kind() -> String {
    let branch = |test, operand, jt, jf| Op::Branch {
        test,
        operand,
        jt,
        jf,
    };
    let (small, large) = (Operand::K(1), Operand::K(1 << 31));
    let mut kinds = vec![
        Op::LoadData(0),
        Op::LoadImm(1),
        Op::LoadLen,
        Op::Neg,
        Op::Tax,
        Op::Txa,
    ];
    kinds.extend([
        Op::Store(0),
        Op::StoreX(15),
        Op::Jump(0),
        Op::RetA,
        Op::RetImm(0),
    ]);
    kinds.extend(tamis_bpf::AluOp::ALL.map(|op| Op::Alu(op, Operand::X)));
    kinds.extend(tamis_bpf::AluOp::ALL.map(|op| Op::Alu(op, small)));
    for test in [Test::Eq, Test::Gt, Test::Ge, Test::Set] {
        for operand in [Operand::X, small, large] {
            for (jt, jf) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                kinds.push(branch(test, operand, jt, jf));
            }
        }
    }
    let older = older();
    for program in &older {
        install(program, &Install::default()).expect("there is room");
    }
    for kind in kinds {
        let subject = padded(&[kind]);
        let room = Stack::MAX_KERNEL_INSNS - 4 - kernel_len_insns(&subject);
        for (charge_insns, expected) in [(room, true), (room + 1, false)] {
            let newest = vec![filling(charge_insns).0, subject.clone()];
            let stack = stack([older.clone(), newest.clone()].concat());
            assert_eq!(
                (stack.is_installable(), on_a_thread(newest)),
                (expected, expected),
                "{kind:?}"
            );
        }
    }
    "well".to_owned()
}

/// Whether a thread can install these over the filters of this one. It takes them along when it ends; the older
/// ones stay, so that few are freed.
fn on_a_thread(newest: Vec<Program>) -> bool {
    let install_all = move || {
        let mut results = newest
            .iter()
            .map(|program| install(program, &Install::default()));
        results.all(|result| match result {
            Ok(_) => true,
            Err(InstallError::NoRoom { .. }) => false,
            Err(error) => panic!("{error}"),
        })
    };
    std::thread::spawn(install_all).join().expect("no panic")
}

fn command(filters: Vec<Program>) -> Command {
    Command {
        args: ["-c", "exit 3"].map(Into::into).to_vec(),
        filters: stack(filters),
        ..Command::new("sh")
    }
}

fn longest() {
    let of = |len_insns: usize| padded(&vec![Op::Tax; len_insns - 3]);
    let longest = run(&command(vec![of(Program::MAX_INSNS)]));
    assert_eq!(longest.expect("it runs").ended, Ended::Exited(3));
    let error = InstallError::TooLong { len_insns: 4097 };
    let refused = Err(RunError::Install { filter: 1, error });
    assert_eq!(run(&command(vec![of(3), of(4097)])), refused);
}

/// Filters of this process count too: there are none.
fn full_stack() {
    let run_under = |charge_insns| {
        let (last, mut stack) = filling(charge_insns);
        stack.push(last);
        run(&command(stack)).map(|report| report.ended)
    };
    assert_eq!(run_under(Stack::MAX_KERNEL_INSNS), Ok(Ended::Exited(3)));
    match run_under(Stack::MAX_KERNEL_INSNS + 1) {
        Err(RunError::Install {
            filter: 3,
            error: InstallError::NoRoom { .. },
        }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(raw::call(CALL, ARGS), Err(libc::EINVAL));
}
