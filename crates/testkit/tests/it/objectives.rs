//! Each objective gives the best result in its own measure, over many random policies with conditions on arguments.

use tamis_abi::{Arch, Endian, Nr, SeccompData};
use tamis_compiler::meter::{Cost, Sample, Workload, measure};
use tamis_compiler::{CompileOptions, Objective, compile_any_length};
use tamis_diag::Sources;
use tamis_profile::Profile;
use tamis_rules::text;
use tamis_testkit::generate::ruleset::{Size, call, entangled, ruleset};
use tamis_testkit::rng::Rng;

const OBJECTIVES: [Objective; 3] = [Objective::Steps, Objective::Ns, Objective::Length];

/// The length, steps and nanoseconds of all policies together.
fn costs(objective: Objective) -> (usize, f64, f64) {
    let mut sum = (0, 0.0, 0.0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let random = ruleset(&mut rng, Size::SMALL, Endian::Little);
        let ruleset = entangled(&mut rng, &random);
        let options = CompileOptions {
            objective,
            ..CompileOptions::default()
        };
        let compiled = compile_any_length(&ruleset, &options).expect("random rulesets compile");
        let samples = (0..60).map(|_| call(&mut rng, &ruleset));
        let calls = Workload::new(samples.filter_map(|data: SeccompData| {
            let arch = Arch::of_call(data.arch, data.nr)?;
            Some(Sample {
                arch,
                data,
                weight: 1.0,
            })
        }));
        let cost = measure(&[compiled.program().unwrap().clone()], &calls, true);
        sum.0 += cost.length_insns;
        sum.1 += cost.mean_executed_steps();
        sum.2 += cost.mean_ns();
    }
    sum
}

/// Every other number has an action of its own; few of them are frequent. Measured for their calls.
fn cost_of_uneven_calls(objective: Objective) -> Cost {
    let mut lines =
        "ruleset bad-arch kill_process\nsection x86_64 default kill_process\n".to_owned();
    let mut profile = Profile::default();
    for nr in (0..48).step_by(2) {
        lines += &format!("  {nr}: errno({})\n", nr + 1);
        profile.call_mut(Arch::X86_64, Nr(nr)).count = if nr % 16 == 0 { 1000 } else { 1 };
    }
    let mut sources = Sources::new();
    let source = sources.add("a.rules", lines);
    let ruleset = text::parse(&sources, source).unwrap();
    let options = CompileOptions {
        profile: Some(profile),
        objective,
        ..CompileOptions::default()
    };
    let compiled = compile_any_length(&ruleset, &options).unwrap();
    let program = compiled.program().unwrap().clone();
    measure(&[program], &options.workload(&[Arch::X86_64]), true)
}

#[test]
fn each_objective_is_best_for_the_calls_of_a_profile() {
    let [steps, ns, length] = OBJECTIVES.map(cost_of_uneven_calls);
    let mean_steps = [ns, length].map(|cost| cost.mean_executed_steps());
    assert!(
        mean_steps
            .iter()
            .all(|other| steps.mean_executed_steps() <= *other)
    );
    assert!(ns.mean_ns() < steps.mean_ns() && ns.mean_ns() < length.mean_ns());
    assert!(length.length_insns <= steps.length_insns && length.length_insns <= ns.length_insns);
}

#[test]
fn each_objective_is_best_at_what_it_asks_for() {
    let [steps, ns, length] = OBJECTIVES.map(costs);
    println!("steps {steps:?}\nns {ns:?}\nlength {length:?}");
    assert!(length.0 <= steps.0 && length.0 <= ns.0);
    assert!(steps.1 <= length.1);
    assert!(ns.2 <= length.2);
}
