//! The possible savings of evaluators by tables of bits and multiplication: each policy compiled for user space, and
//! the same with tables for numbers in front.
//!
//! The numbers below 512 are looked up in windows of 32: comparisons find the window, `1 << number` is tested against
//! the bits of always allowed calls, and others continue with the compiled program. With multiplication no test is left
//! in windows with only two actions: the bit times their difference, plus one of them.
//!
//! `cargo run --release -p tamis-bench --example bit_tables`

use std::hint::black_box;
use std::process::ExitCode;

use tamis_abi::{Action, Arch, Endian, Nr, SeccompData, syscall};
use tamis_bench::policies::ALL;
use tamis_bench::ratio::{Comparison, Contestant, compare};
use tamis_bpf::{AluOp, Op, Operand, Program, Stack, Test, interp};
use tamis_compiler::{CompileOptions, Target, compile};
use tamis_engine::{Engine, Evaluator, Options};
use tamis_testkit::harness;
use tamis_testkit::rng::Rng;
use tamis_vm::cache::{Plan, Table};

const AUDIT: u32 = Arch::X86_64.audit();
const ALLOW: u32 = Action::ALLOW.ret();
const WINDOW: u32 = 32;
const WINDOWS: u32 = 16;
const EVALUATIONS: usize = 4096;
const ROUNDS: usize = 41;

/// Where the compiled program goes on, until its place is known.
const TREE: Op = Op::Jump(u32::MAX);

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    println!(
        "{:40} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "policy, program", "insns", "steps", "jit", "thread", "jit", "thread"
    );
    println!(
        "{:40} {:>13} {:>13} {:>13}",
        "", "", "random, ns", "one by one, ns"
    );
    for policy in &ALL {
        let ruleset = policy.ruleset();
        let options = CompileOptions {
            target: Target::User,
            ..CompileOptions::default()
        };
        let compiled = compile(&ruleset, &options).expect("the policy compiles");
        let Ok(tree) = compiled.program() else {
            continue;
        };
        let programs = [
            ("as compiled", tree.clone()),
            ("tables", with_tables(tree, false)),
            ("tables, multiplication", with_tables(tree, true)),
        ];
        measure(policy.name, &programs);
    }
}

/// The program with tables for the numbers of x86-64 in front.
fn with_tables(tree: &Program, multiplies: bool) -> Program {
    let table = Table::new(&Stack::from(tree.clone()));
    let plans: Vec<Plan> = (0..WINDOW * WINDOWS)
        .map(|nr| table.plan(AUDIT, nr))
        .collect();
    let mut ops = vec![
        Op::LoadData(4),
        Op::branch(Test::Eq, AUDIT, 1, 0),
        TREE,
        Op::LoadData(0),
        Op::branch(Test::Ge, WINDOW * WINDOWS, 0, 1),
        TREE,
    ];
    ops.extend(windows(&plans, 0, WINDOWS, multiplies));
    let tables_insns = ops.len() as u32;
    for (pc, op) in ops.iter_mut().enumerate() {
        if *op == TREE {
            *op = Op::Jump(tables_insns - pc as u32 - 1);
        }
    }
    ops.extend(tree.ops());
    let insns = ops.into_iter().map(Into::into).collect();
    Program::new(insns, Endian::Little).expect("legal")
}

/// The search for a window, and the windows.
fn windows(plans: &[Plan], first: u32, last: u32, multiplies: bool) -> Vec<Op> {
    if last - first == 1 {
        let (from, to) = (first * WINDOW, last * WINDOW);
        return window(&plans[from as usize..to as usize], multiplies);
    }
    let same = &plans[(first * WINDOW) as usize..(last * WINDOW) as usize];
    if same.iter().all(|plan| *plan == same[0]) {
        return window(&same[..WINDOW as usize], multiplies);
    }
    let middle = first.midpoint(last);
    let low = windows(plans, first, middle, multiplies);
    let high = windows(plans, middle, last, multiplies);
    let mut ops = match u8::try_from(low.len()) {
        Ok(skip) => vec![Op::branch(Test::Ge, middle * WINDOW, skip, 0)],
        Err(_) => vec![
            Op::branch(Test::Ge, middle * WINDOW, 0, 1),
            Op::Jump(low.len() as u32),
        ],
    };
    ops.extend(low);
    ops.extend(high);
    ops
}

/// The numbers of a window, which is in A.
fn window(plans: &[Plan], multiplies: bool) -> Vec<Op> {
    let bits = |is: &dyn Fn(Plan) -> bool| {
        let bit = |(at, plan): (usize, &Plan)| u32::from(is(*plan)) << at;
        plans
            .iter()
            .enumerate()
            .map(bit)
            .fold(0, |all, bit| all | bit)
    };
    let allowed = bits(&|plan| plan == Plan::Answer(ALLOW));
    if allowed == u32::MAX {
        return vec![Op::RetImm(ALLOW)];
    }
    if allowed == 0 {
        return vec![TREE];
    }
    let alu = |alu, k| Op::Alu(alu, Operand::K(k));
    let mut others = plans.iter().filter_map(|plan| match plan {
        Plan::Answer(ret) if *ret != ALLOW => Some(*ret),
        _ => None,
    });
    let mut ops = vec![Op::Tax];
    let shifted_one = [Op::LoadImm(1), Op::Alu(AluOp::Lsh, Operand::X)];
    match others.next() {
        Some(deny) if multiplies && others.all(|ret| ret == deny) => {
            let denied = bits(&|plan| plan == Plan::Answer(deny));
            let open = !(allowed | denied);
            if open != 0 {
                ops.extend(shifted_one);
                ops.extend([Op::branch(Test::Set, open, 0, 1), TREE]);
            }
            ops.extend([Op::LoadImm(allowed), Op::Alu(AluOp::Rsh, Operand::X)]);
            ops.extend([
                alu(AluOp::And, 1),
                alu(AluOp::Mul, ALLOW.wrapping_sub(deny)),
                alu(AluOp::Add, deny),
                Op::RetA,
            ]);
        }
        _ => {
            ops.extend(shifted_one);
            ops.extend([
                Op::branch(Test::Set, allowed, 0, 1),
                Op::RetImm(ALLOW),
                TREE,
            ]);
        }
    }
    ops
}

fn measure(name: &str, programs: &[(&str, Program)]) {
    let call = |nr: u32| SeccompData {
        nr,
        arch: AUDIT,
        ..SeccompData::default()
    };
    let numbers: Vec<u32> = syscall::all(Arch::X86_64).map(|(Nr(nr), _)| nr).collect();
    let mut rng = Rng::new(1);
    let random: Vec<SeccompData> = (0..EVALUATIONS)
        .map(|_| call(*rng.choose(&numbers)))
        .collect();
    let images = |calls: &[SeccompData]| -> Vec<[u32; 16]> {
        calls
            .iter()
            .map(|call| call.image(Endian::Little))
            .collect()
    };
    let repeated: Vec<SeccompData> = numbers
        .iter()
        .flat_map(|nr| vec![call(*nr); EVALUATIONS / 64])
        .collect();
    let evaluators: Vec<Evaluator> = programs
        .iter()
        .flat_map(|(_, program)| {
            [Engine::Jit, Engine::Threaded].map(|engine| {
                let options = Options {
                    engine,
                    ..Options::default()
                };
                let made = Evaluator::new(&Stack::from(program.clone()), &options);
                made.expect("the engine is there")
            })
        })
        .collect();
    let judge = &programs[0].1;
    for call in random.iter().chain(&repeated).step_by(7) {
        let expected = interp::run(judge, call).ret;
        assert!(evaluators.iter().all(|one| one.run(call) == expected));
    }
    let timed = |calls: &[SeccompData]| -> Vec<f64> {
        let inputs = images(calls);
        let mut contestants: Vec<Contestant<'_>> = evaluators
            .iter()
            .map(|evaluator| {
                let inputs = &inputs;
                Contestant::new(name, move || {
                    let run = |image| evaluator.run_image(black_box(image)) as usize;
                    inputs.iter().map(run).sum()
                })
            })
            .collect();
        let Comparison(timings) = compare(&mut contestants, ROUNDS);
        let ns = |min: std::time::Duration| min.as_secs_f64() * 1e9 / inputs.len() as f64;
        timings.iter().map(|timing| ns(timing.min)).collect()
    };
    let (mixed, single) = (timed(&random), timed(&repeated));
    for (at, (kind, program)) in programs.iter().enumerate() {
        let steps = random.iter().map(|call| interp::run(program, call).steps);
        let steps = steps.map(f64::from).sum::<f64>() / EVALUATIONS as f64;
        println!(
            "{:40} {:5} {steps:6.2} {:6.2} {:6.2} {:6.2} {:6.2}",
            format!("{name}, {kind}"),
            program.len(),
            mixed[2 * at],
            mixed[2 * at + 1],
            single[2 * at],
            single[2 * at + 1]
        );
    }
}
