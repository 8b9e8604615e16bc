//! How far the compiler's programs are from lower bounds, case by case: what `bench::bounds` says about
//! calls that run the whole program.
//!
//! `cargo run --release -p tamis-bench --example lower_bounds`

use tamis_bench::bounds::{Numbers, best_of_class, fewest_questions, fixed_steps};
use tamis_bench::goals::{Cached, Case, cases};
use tamis_compiler::{Options, compile};

fn main() {
    let Some(cases) = cases() else { return };
    println!(
        "{:32} {:>6} {:>6} {:>6} {:>12}",
        "case", "goal", "now", "bound", "best of class"
    );
    for case in cases.iter().filter(|case| case.cached == Cached::Runs) {
        row(case);
    }
    println!(
        "\nbound: of all programs that compare the number and ask for its bits, by their most frequent \
         numbers\nbest of class: `jge`, one `jset` per path, then up to five `jeq` or a `jset` that \
         decides; `-` where\nsome numbers are so frequent that `jeq` belongs before the others"
    );
}

fn row(case: &Case) {
    let told = Options {
        profile: case.profile.clone(),
        kernel: case.kernel,
        ..Options::default()
    };
    let compiled = compile(&case.ruleset, &told).expect("the policy compiles");
    let numbers = Numbers::of(case);
    let fixed = fixed_steps(case);
    let (bound, best) = (fewest_questions(&numbers), best_of_class(&numbers));
    let now = case.mean_steps(compiled.program());
    let best = if fixed + best < now + 0.1 {
        format!("{:.2}", fixed + best)
    } else {
        "-".to_owned()
    };
    println!(
        "{:32} {:6.2} {now:6.2} {:6.2} {best:>12}",
        case.name,
        case.goal_steps,
        fixed + bound
    );
}
