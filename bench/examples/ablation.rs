//! The effect of each pass: length and steps of the corpus with all passes and without each of them, and the growth
//! of the bytecode passes' time with the size of programs.
//!
//! `cargo run --release -p tamis-bench --example ablation`

use std::process::ExitCode;
use std::time::Instant;

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_bench::policies;
use tamis_bpf::cfg::Cfg;
use tamis_bpf::{Insn, Op, Program, Test};
use tamis_compiler::meter::{Workload, measure};
use tamis_compiler::passes::registry::{self, BYTECODE_PASSES, Selection};
use tamis_compiler::passes::{BytecodePass, PassCx};
use tamis_compiler::stages;
use tamis_compiler::{CompileOptions, compile};
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::rng::Rng;
use tamis_testkit::{corpus, harness};

/// The number of inputs for counting steps, in addition to all numbers of x86-64.
const NEAR_INPUTS: usize = 2000;

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    let programs = foreign_programs();
    println!(
        "programs of other compilers: instructions and steps over all inputs, before -> after"
    );
    let inputs: Vec<Workload> = programs
        .iter()
        .map(|(_, program)| inputs(program))
        .collect();
    for ((name, program), inputs) in programs.iter().zip(&inputs) {
        let after = optimised(program, &BYTECODE_PASSES);
        let (steps, steps_after) = (steps(program, inputs), steps(&after, inputs));
        println!(
            "{name:60} {:5} -> {:5} {steps:9} -> {steps_after:9}",
            program.len(),
            after.len()
        );
    }
    println!("\nall of them, and the policies compiled: with all passes, without one, without any");
    row("all passes", &programs, &inputs, |_| true);
    for left_out in registry::all() {
        row(left_out.name, &programs, &inputs, |name| {
            name != left_out.name
        });
    }
    row("no pass", &programs, &inputs, |_| false);
    growth();
}

fn foreign_programs() -> Vec<(String, Program)> {
    let names = corpus::programs();
    let programs = names.into_iter().map(|name| {
        let program = corpus::program(&name);
        (name, program)
    });
    programs.collect()
}

fn inputs(program: &Program) -> Workload {
    let near = Neighbourhood::from_programs(&[program]);
    let mut rng = Rng::new(1);
    let numbers = (0..460).map(|nr| SeccompData {
        nr,
        arch: Arch::X86_64.audit(),
        ..SeccompData::default()
    });
    let mut inputs: Vec<SeccompData> = numbers.collect();
    inputs.extend((0..NEAR_INPUTS).map(|_| near.draw(&mut rng)));
    Workload::of_calls(Arch::X86_64, &inputs)
}

fn optimised(program: &Program, passes: &[BytecodePass]) -> Program {
    stages::optimise(program, passes, &mut PassCx::new(None)).into_unproven()
}

fn steps(program: &Program, inputs: &Workload) -> u64 {
    let cost = measure(std::slice::from_ref(program), inputs, false);
    cost.uncached.steps as u64
}

fn row(
    name: &str,
    programs: &[(String, Program)],
    inputs: &[Workload],
    is_chosen: impl Fn(&str) -> bool,
) {
    let passes: Vec<BytecodePass> = BYTECODE_PASSES
        .into_iter()
        .filter(|pass| is_chosen(pass.info.name))
        .collect();
    let (mut length, mut all_steps) = (0, 0);
    for ((_, program), inputs) in programs.iter().zip(inputs) {
        let after = optimised(program, &passes);
        length += after.len();
        all_steps += steps(&after, inputs);
    }
    let names = registry::all().map(|info| info.name);
    let names = names.filter(|name| is_chosen(name));
    let options = CompileOptions {
        passes: Selection::named(names).expect("the registry has its passes"),
        ..CompileOptions::default()
    };
    let (mut compiled_length, mut compiled_steps) = (0, 0);
    for policy in policies::ALL {
        let ruleset = policy.ruleset();
        let Ok(compiled) = compile(&ruleset, &options) else {
            println!("{}: no program without {name}", policy.name);
            continue;
        };
        let full = compile(&ruleset, &CompileOptions::default()).expect("the policy compiles");
        compiled_length += compiled.program().unwrap().len();
        compiled_steps += steps(
            compiled.program().unwrap(),
            &self::inputs(full.program().unwrap()),
        );
    }
    println!("{name:24} {length:6} {all_steps:10}   {compiled_length:6} {compiled_steps:10}");
}

/// A long chain of rules that load the number again, each with a range inside that of the one before.
fn chain(len_insns: usize) -> Program {
    let mut ops = Vec::new();
    let mut k = 0;
    while ops.len() + 5 < len_insns {
        ops.extend([
            Op::LoadData(0),
            Op::branch(Test::Ge, k, 0, 2),
            Op::branch(Test::Eq, k, 0, 1),
            Op::RetImm(k),
        ]);
        k += 2;
    }
    ops.push(Op::RetImm(1));
    Program::new(ops.into_iter().map(Insn::from).collect(), Endian::Little)
        .expect("the chain is valid")
}

fn growth() {
    println!(
        "\ninstructions, microseconds of all passes (best of 9), taking apart and putting together"
    );
    for len_insns in [512, 1024, 2048, 4096] {
        let program = chain(len_insns);
        let time = |passes: &[BytecodePass]| {
            let runs = (0..9).map(|_| {
                let start = Instant::now();
                assert!(optimised(&program, passes).len() <= program.len());
                start.elapsed()
            });
            runs.min().unwrap_or_default().as_micros()
        };
        let blocks = Cfg::from_program(&program).len();
        println!(
            "{:5} {:6} {:6}  {blocks} blocks",
            program.len(),
            time(&BYTECODE_PASSES),
            time(&[])
        );
    }
}
