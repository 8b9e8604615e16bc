//! Several filters on one task: the verdict and their memory are those of the running kernel.

use tamis_abi::{Action, ActionKind, Endian, SeccompData, syscall};
use tamis_bpf::{Insn, Op, Program, Stack, Test};
use tamis_kernel::differential::calls::compare;
use tamis_kernel::differential::check::check;
use tamis_kernel::{Install, InstallError, install};
use tamis_testkit::corpus;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::program::program;
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip;

use crate::native;

/// A filter that returns the lower half of an argument, and allows `seccomp`, so that further ones can be installed.
fn answers_argument(index: u32) -> Program {
    let seccomp = syscall::number(native(), "seccomp").expect("all machines have it");
    let is_seccomp = Op::branch(Test::Eq, seccomp.0, 2, 0);
    let ops = [
        Op::LoadData(0),
        is_seccomp,
        Op::LoadData(16 + 8 * index),
        Op::RetA,
        Op::RetImm(Action::ALLOW.ret()),
    ];
    Program::new(ops.map(Insn::from).to_vec(), Endian::Little).expect("the filter is legal")
}

#[test]
fn the_strictest_answer_wins_and_then_the_newest() {
    skip::unless_kernel();
    let stack = Stack::new((0..4).map(answers_argument).collect()).expect("all are alike");
    let mut rng = Rng::new(0x7374_6163);
    let ret = |rng: &mut Rng| {
        let kind = match rng.range(0..=30) {
            0 => *rng.choose(&ActionKind::ALL),
            1..=15 => ActionKind::Errno,
            _ => *rng.choose(&[ActionKind::Allow, ActionKind::Trace, ActionKind::Notify]),
        };
        u64::from(Action::new(kind, rng.range(0..=5000) as u16).ret())
    };
    let call = |rng: &mut Rng| SeccompData {
        nr: 0x1_f000,
        arch: native().audit(),
        ip: 0,
        args: [(); 6].map(|()| ret(rng)),
    };
    let calls: Vec<SeccompData> = (0..2000).map(|_| call(&mut rng)).collect();
    let (asked, mismatches) = compare(&stack, &calls).expect("the kernel can be asked");
    assert_eq!((asked, mismatches), (calls.len(), Vec::new()));
}

/// Real filters, alone and as the stack of a service: verdicts, calls and packets.
#[test]
fn filters_of_the_corpus_say_what_the_interpreter_says() {
    let (calls, packets) = all_say_what_the_interpreter_says(corpus::all_programs());
    assert!(calls > 1000 && packets > 5000, "{calls} {packets}");
}

/// Real filters, alone and as the stack of a service: verdicts, calls and packets.
#[test]
fn filters_of_real_shapes_say_what_the_interpreter_says() {
    let (calls, packets) = all_say_what_the_interpreter_says(shape::programs());
    assert!(calls > 100 && packets > 500, "{calls} {packets}");
}

/// The numbers of calls and packets that were compared.
fn all_say_what_the_interpreter_says(programs: Vec<(String, Program)>) -> (usize, usize) {
    skip::unless_kernel();
    let mut rng = Rng::new(0x636f_7270);
    let (mut calls, mut packets) = (0, 0);
    for (name, program) in programs {
        let near = Neighbourhood::from_programs(&[&program]);
        let inputs: Vec<SeccompData> = (0..60).map(|_| near.draw(&mut rng)).collect();
        let checked = check(&program.into(), &inputs);
        assert_eq!(checked.contradictions, [], "{name}");
        calls += checked.calls;
        packets += checked.packets;
    }
    println!("{calls} calls, {packets} packets");
    (calls, packets)
}

/// The number of times a new thread can install a program that begins with an unconditional allow.
fn how_many_fit(program: &Program) -> usize {
    let installing = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut count = 0;
            loop {
                match install(program, &Install::default()) {
                    Ok(_) => count += 1,
                    Err(error) => return (count, error),
                }
            }
        });
        thread.join().expect("the filter allows everything")
    });
    let (count, error) = installing;
    let filters = u32::try_from(count).ok();
    assert_eq!(error, InstallError::NoRoom { filters });
    count
}

#[test]
fn as_many_filters_fit_as_the_converted_length_says() {
    skip::unless_kernel();
    let mut rng = Rng::new(0x726f_6f6d);
    for _ in seeds::selected(0..60) {
        // The instructions after the first return are never executed, but need memory.
        let body_insns = rng.range(20..=120) as usize;
        let mut insns = vec![Insn::from(Op::RetImm(Action::ALLOW.ret()))];
        insns.extend_from_slice(program(&mut rng, body_insns, Endian::Little).insns());
        let program =
            Program::new(insns, Endian::Little).expect("a program behind a return is one");
        let fits = |count| {
            Stack::new(vec![program.clone(); count]).is_ok_and(|stack| stack.is_installable())
        };
        let expected = (1..)
            .find(|count| !fits(*count))
            .expect("the room is limited")
            - 1;
        assert_eq!(how_many_fit(&program), expected, "{program:?}");
    }
}
