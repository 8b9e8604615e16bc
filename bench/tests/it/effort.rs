//! The cost of quick effort: the steps of quick programs in the cases of `bench/goals.tsv`.

use tamis_bench::goals::{Case, cases};
use tamis_compiler::{CompileOptions, Effort, compile};
use tamis_prover::{Answer, Limits, Subject, decide};

/// The most additional steps of quick programs over all cases, in percent.
const MOST_PERCENT: f64 = 3.0;

/// The weighted steps of the program for a case, which is also proved here.
fn steps(case: &Case, options: &CompileOptions) -> f64 {
    let compiled = compile(&case.ruleset, options).expect("it compiles");
    let program = compiled.program().expect("it has no variables");
    let limits = Limits::default().for_insns(program.len());
    let made = Subject::Program(program);
    let answer = decide(&Subject::Ruleset(&case.ruleset), &made, &limits);
    assert!(
        matches!(answer, Answer::Equal(_)),
        "{}: {answer:?}",
        case.name
    );
    case.mean_steps(&program.clone().into())
}

#[test]
fn quick_programs_are_proved_and_take_few_steps_more() {
    let cases = cases();
    for is_told in [true, false] {
        let [full, quick] = Effort::ALL.map(|effort| {
            let options = |case: &Case| CompileOptions {
                effort,
                profile: case.profile.clone().filter(|_| is_told),
                kernel: case.kernel.filter(|_| is_told),
                ..CompileOptions::default()
            };
            let steps = cases.iter().map(|case| steps(case, &options(case)));
            steps.collect::<Vec<_>>()
        });
        println!("told: {is_told}");
        for ((case, full), quick) in cases.iter().zip(&full).zip(&quick) {
            println!("{:28} {full:.2} {quick:.2}", case.name);
        }
        let ratios = full.iter().zip(&quick).map(|(full, quick)| quick / full);
        let mean = ratios.sum::<f64>() / cases.len() as f64;
        let percent = (mean - 1.0) * 100.0;
        println!("mean: {percent:+.2} %");
        assert!(percent <= MOST_PERCENT, "{percent:.2} % more steps");
    }
}
