//! The distance of the compiler's programs from lower bounds, case by case: the bounds of `bench::bounds` for calls
//! that run the whole program.
//!
//! `cargo run --release -p tamis-bench --example lower_bounds`

use std::process::ExitCode;

use tamis_bench::bounds::{Numbers, fewest_questions, fewest_with_bit_tests, fixed_steps};
use tamis_bench::goals::{Cached, Case, cases};
use tamis_compiler::{CompileOptions, compile};
use tamis_testkit::harness;

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    let cases = cases();
    println!(
        "{:32} {:>6} {:>6} {:>6} {:>8} {:>8} {:>8}",
        "case", "goal", "now", "bound", "no test", "one", "two"
    );
    for case in cases.iter().filter(|case| case.cached == Cached::Runs) {
        row(case);
    }
    println!(
        "\nbound: of all programs that compare the number and ask for its bits, by their most frequent \
         numbers\nno test, one, two: the optimum with `jge` and so many `jset` on a path, then up to five \
         `jeq` or a `jset`\nthat decides; `-` where some numbers are so frequent that `jeq` belongs before \
         the others"
    );
}

fn row(case: &Case) {
    let told = CompileOptions {
        profile: case.profile.clone(),
        kernel: case.kernel,
        ..CompileOptions::default()
    };
    let compiled = compile(&case.ruleset, &told).expect("the policy compiles");
    let numbers = Numbers::from_case(case);
    let fixed = fixed_steps(case);
    let now = case.mean_steps(&compiled.program().unwrap().clone().into());
    let best = |tests: usize| {
        let best = fixed + fewest_with_bit_tests(&numbers, tests);
        if best < now + 0.2 {
            format!("{best:.2}")
        } else {
            "-".to_owned()
        }
    };
    println!(
        "{:32} {:6.2} {now:6.2} {:6.2} {:>8} {:>8} {:>8}",
        case.name,
        case.goal_steps,
        fixed + fewest_questions(&numbers),
        best(0),
        best(1),
        best(2)
    );
}
