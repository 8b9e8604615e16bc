//! Passes in any order, in any selection and for any profile: the result is proved, and each pass is useful.

use tamis_abi::{Arch, Endian, KernelVersion, Nr};
use tamis_bpf::{Program, interp};
use tamis_compiler::passes::registry::{BYTECODE_PASSES, RULE_PASSES, Selection};
use tamis_compiler::passes::{BytecodePass, PassCx};
use tamis_compiler::stages;
use tamis_compiler::{CompileOptions, Objective, compile_any_length};
use tamis_profile::Profile;
use tamis_rules::Ruleset;
use tamis_testkit::generate::program::{data, program as random_program};
use tamis_testkit::generate::ruleset::{Size, call, entangled, ruleset};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

const OBJECTIVES: [Objective; 3] = [Objective::Steps, Objective::Ns, Objective::Length];

/// Calls of a ruleset, with counts.
fn profile(rng: &mut Rng, ruleset: &Ruleset) -> Profile {
    let mut profile = Profile::default();
    for _ in 0..rng.range(0..=40) {
        let data = call(rng, ruleset);
        let Some(arch) = Arch::of_call(data.arch, data.nr) else {
            continue;
        };
        let count = 1_u64 << rng.range(0..=16);
        let call = profile.call_mut(arch, Nr(data.nr));
        call.count += count;
        if rng.chance(1, 2) {
            *call.samples.entry(data.args).or_default() += count;
        }
    }
    profile
}

/// Some of the passes in some order, rule passes and bytecode passes mixed.
fn selection(rng: &mut Rng) -> Selection {
    let rules = RULE_PASSES.iter().map(|pass| pass.info.name);
    let mut open: Vec<&str> = rules
        .chain(BYTECODE_PASSES.iter().map(|pass| pass.info.name))
        .collect();
    let mut names = Vec::new();
    for _ in 0..rng.range(1..=open.len() as u64) {
        names.push(open.swap_remove(rng.index(open.len())));
    }
    Selection::named(names).expect("the registry has its passes")
}

fn random_ruleset(rng: &mut Rng, seed: u64) -> Ruleset {
    let random = ruleset(rng, Size::SMALL, Endian::Little);
    match seed % 2 {
        0 => random,
        _ => entangled(rng, &random),
    }
}

#[test]
fn any_order_for_any_profile_is_proved_after_every_pass() {
    for seed in seeds::selected(0..150) {
        let mut rng = Rng::new(seed);
        let ruleset = random_ruleset(&mut rng, seed);
        let options = CompileOptions {
            passes: selection(&mut rng),
            profile: Some(profile(&mut rng, &ruleset)),
            objective: *rng.choose(&OBJECTIVES),
            kernel: rng.chance(1, 2).then_some(KernelVersion::new(5, 4)),
            verify_each: true,
            ..CompileOptions::default()
        };
        let compiled = compile_any_length(&ruleset, &options);
        let compiled = compiled.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{ruleset}"));
        let again = compile_any_length(&ruleset, &options).expect("it was compiled before");
        assert_eq!(
            compiled.program().unwrap(),
            again.program().unwrap(),
            "seed {seed}"
        );
        for _ in 0..50 {
            let data = call(&mut rng, &ruleset);
            let ret = interp::run(compiled.program().unwrap(), &data).ret;
            let expected = ruleset.decide(&data).action.ret();
            assert_eq!(ret, expected, "seed {seed}: {data:x?}\n{ruleset}");
        }
    }
}

/// Instructions and steps of programs compiled from random rulesets.
fn compiled_cost(names: &[&str]) -> u64 {
    let mut cost = 0;
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let ruleset = random_ruleset(&mut rng, seed);
        let options = CompileOptions {
            passes: Selection::named(names.iter().copied()).expect("the registry has its passes"),
            ..CompileOptions::default()
        };
        let compiled = compile_any_length(&ruleset, &options).expect("random rulesets compile");
        let program = compiled.program().unwrap();
        let calls = (0..20).map(|_| call(&mut rng, &ruleset));
        let steps = calls.map(|call| u64::from(interp::run(program, &call).steps));
        cost += steps.sum::<u64>() + program.len() as u64;
    }
    cost
}

/// The same for random programs.
fn optimised_cost(passes: &[BytecodePass]) -> u64 {
    let mut cost = 0;
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let body_insns = rng.range(5..=60) as usize;
        let program: Program = random_program(&mut rng, body_insns, Endian::Little);
        let optimised = stages::optimise(&program, passes, &mut PassCx::new(None)).into_unproven();
        let calls = (0..20).map(|_| data(&mut rng, &program));
        let steps = calls.map(|call| u64::from(interp::run(&optimised, &call).steps));
        cost += steps.sum::<u64>() + optimised.len() as u64;
    }
    cost
}

/// These passes only affect later ones, which get fewer rules or blocks.
const HOUSEKEEPING: [&str; 3] = ["merge-rules", "drop-unreachable", "join-blocks"];

/// The total cost without a pass.
fn cost_without(left_out: Option<&str>) -> u64 {
    let bytecode: Vec<BytecodePass> = BYTECODE_PASSES
        .into_iter()
        .filter(|pass| Some(pass.info.name) != left_out)
        .collect();
    let rules = RULE_PASSES.iter().map(|pass| pass.info.name);
    let names = rules.chain(bytecode.iter().map(|pass| pass.info.name));
    let names: Vec<&str> = names.filter(|name| Some(*name) != left_out).collect();
    compiled_cost(&names) + optimised_cost(&bytecode)
}

#[test]
fn leaving_out_any_pass_costs_something() {
    let all = cost_without(None);
    let rules = RULE_PASSES.iter().map(|pass| pass.info.name);
    let names = rules.chain(BYTECODE_PASSES.iter().map(|pass| pass.info.name));
    let worth = names.filter(|name| !HOUSEKEEPING.contains(name));
    for name in worth.step_by(seeds::every(3)) {
        let without = cost_without(Some(name));
        println!("{name}: {all} with it, {without} without");
        assert!(without > all, "{name}: {all} with it, {without} without");
    }
}
