//! Installing: each mistake gets its own error.

use libtest_mimic::Trial;
use tamis_abi::Action;
use tamis_bpf::stack::Stack;
use tamis_bpf::{Op, Program, Test};
use tamis_testkit::skip;

use crate::support::{output_of, program, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let case = |name: &'static str, expected: &'static str| {
        trial(&format!("install::{name}"), move || {
            assert_eq!(output_of(&["install", name]), expected);
        })
    };
    vec![
        trial("install::unprivileged", || {
            // A namespace may have no other user.
            skip::unless_root();
            assert_eq!(output_of(&["install", "unprivileged"]), "NotPermitted");
        }),
        case("too-long", "TooLong { len_insns: 4097 }"),
        case("longest", "installed"),
        case("listener-twice", "ListenerExists"),
        case("listener", "closes on exec: true"),
        case(
            "tsync-without-esrch",
            "MissingFlag { flag: NewListener, needs: TsyncEsrch }",
        ),
        case(
            "wait-killable-alone",
            "MissingFlag { flag: WaitKillableRecv, needs: NewListener }",
        ),
        case("tsync-esrch-differs", "ThreadDiffers { thread: None }"),
        case("tsync", "Err(77) Err(77) false"),
        case("tsync-listener", "Err(77) Err(77) true"),
        case("outer-eperm", "Refused(Errno(1))"),
        case("outer-enosys", "NotAvailable"),
        case("outer-zero", "NotAvailable"),
        trial("install::tsync-differs", || {
            let output = output_of(&["install", "tsync-differs"]);
            assert!(
                output.starts_with("ThreadDiffers { thread: Some("),
                "{output}"
            );
        }),
        trial("install::until-full", until_full),
    ]
}

/// A program that takes a good part of the room that a task has.
pub(crate) fn half_full() -> Program {
    let mut ops = vec![Op::LoadData(0)];
    let branch = Op::branch(Test::Eq, 0xffff_fff0, 0, 0);
    ops.extend(vec![branch; 3000]);
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    program(ops)
}

/// The limit is that of [`Stack`]'s arithmetic, and the error states the number of filters.
fn until_full() {
    let mut stack = Stack::default();
    let mut fitting = 0;
    loop {
        stack.push(half_full()).expect("all are for this machine");
        if stack.charge_insns() > Stack::MAX_KERNEL_INSNS {
            break;
        }
        fitting += 1;
    }
    assert!(fitting > 1);
    assert_eq!(
        output_of(&["install", "until-full"]),
        format!("{fitting} NoRoom {{ filters: Some({fitting}) }}")
    );
}
