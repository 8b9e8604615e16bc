//! What each objective is for it does best, over many random policies with conditions on arguments.

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_compiler::expected::{Expected, Sample};
use tamis_compiler::{Objective, Options, compile_any_length};
use tamis_testkit::generate::ruleset::{Size, call, entangled, ruleset};
use tamis_testkit::rng::Rng;

const OBJECTIVES: [Objective; 3] = [Objective::Steps, Objective::Ns, Objective::Length];

/// Length, steps and nanoseconds of all policies together.
fn costs(objective: Objective) -> (usize, f64, f64) {
    let mut sum = (0, 0.0, 0.0);
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let random = ruleset(&mut rng, Size::SMALL, Endian::Little);
        let ruleset = entangled(&mut rng, &random);
        let options = Options {
            objective,
            ..Options::default()
        };
        let compiled = compile_any_length(&ruleset, &options).expect("random rulesets compile");
        let samples = (0..60).map(|_| call(&mut rng, &ruleset));
        let samples: Vec<Sample> = samples
            .filter_map(|data: SeccompData| {
                let arch = Arch::of_call(data.arch, data.nr)?;
                Some(Sample {
                    arch,
                    data,
                    weight: 1.0,
                })
            })
            .collect();
        let expected = Expected::of(compiled.program().unwrap(), &samples, true);
        sum.0 += compiled.program().unwrap().len();
        sum.1 += expected.steps;
        sum.2 += expected.ns;
    }
    sum
}

#[test]
fn each_objective_is_best_at_what_it_asks_for() {
    let [steps, ns, length] = OBJECTIVES.map(costs);
    println!("steps {steps:?}\nns {ns:?}\nlength {length:?}");
    assert!(length.0 <= steps.0 && length.0 <= ns.0);
    assert!(steps.1 <= length.1);
    assert!(ns.2 <= length.2);
}
