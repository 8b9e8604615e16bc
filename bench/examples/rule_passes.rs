//! The effect of each rule pass: length, mean steps and compile time of the measured policies with all rule passes
//! and with all but one, and the growth of each pass's time with the number of rules.
//!
//! `cargo run --release -p tamis-bench --example rule_passes`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tamis_abi::{Action, Arch, ArgIndex};
use tamis_bench::policies;
use tamis_compiler::passes::PassCx;
use tamis_compiler::passes::registry::{BYTECODE_PASSES, RULE_PASSES, Selection};
use tamis_compiler::stages;
use tamis_compiler::{CompileOptions, compile};
use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};
use tamis_testkit::harness;

const ROUNDS: u32 = 5;

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    let rulesets: Vec<(&str, Ruleset)> = policies::ALL
        .into_iter()
        .map(|policy| (policy.name, policy.ruleset()))
        .collect();
    print_ablation(&rulesets);
    print_growth();
}

/// All rule passes but one, and all bytecode passes.
fn without(left_out: &[&str]) -> CompileOptions {
    let rules = RULE_PASSES.iter().map(|pass| pass.info.name);
    let kept = rules.filter(|name| !left_out.contains(name));
    let blocks = BYTECODE_PASSES.iter().map(|pass| pass.info.name);
    CompileOptions {
        passes: Selection::named(kept.chain(blocks)).expect("the names are of passes"),
        ..CompileOptions::default()
    }
}

/// Length, mean steps of all architectures together, and the shortest of several times.
fn measure(ruleset: &Ruleset, options: &CompileOptions) -> (usize, f64, Duration) {
    let mut shortest = Duration::MAX;
    let mut counts = (0, 0.0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let compiled = compile(ruleset, options).expect("the policy compiles");
        shortest = shortest.min(start.elapsed());
        let costs = compiled.costs();
        let steps = costs.iter().map(|(_, cost)| cost.all().mean_steps());
        counts = (
            compiled.template().unbound().len(),
            steps.sum::<f64>() / costs.len() as f64,
        );
    }
    (counts.0, counts.1, shortest)
}

fn print_ablation(rulesets: &[(&str, Ruleset)]) {
    println!(
        "left out: changes it makes in the corpus, length and steps without it where they differ"
    );
    let all: Vec<_> = rulesets
        .iter()
        .map(|(_, ruleset)| measure(ruleset, &without(&[])))
        .collect();
    let everything: Vec<&str> = RULE_PASSES.iter().map(|pass| pass.info.name).collect();
    let time = |measures: &[(usize, f64, Duration)]| -> Duration {
        measures.iter().map(|(_, _, time)| time).sum()
    };
    println!("{:24} {:>6} {:>9.2?}", "(none)", "", time(&all));
    let report = |name: &str, left_out: &[&str]| {
        let ablated: Vec<_> = rulesets
            .iter()
            .map(|(_, ruleset)| measure(ruleset, &without(left_out)))
            .collect();
        let changes: usize = rulesets
            .iter()
            .map(|(_, ruleset)| {
                let compiled = compile(ruleset, &without(&[])).expect("the policy compiles");
                let remarks = compiled.remarks().iter();
                remarks.filter(|remark| remark.pass == name).count()
            })
            .sum();
        println!("{name:24} {changes:6} {:>9.2?}", time(&ablated));
        for ((policy, _), (with, without)) in rulesets.iter().zip(all.iter().zip(&ablated)) {
            if (with.0, with.1) != (without.0, without.1) {
                println!(
                    "    {policy}: {} -> {}, {:.2} -> {:.2}",
                    with.0, without.0, with.1, without.1
                );
            }
        }
    };
    for name in &everything {
        report(name, &[name]);
    }
    report("(all of them)", &everything);
}

fn print_growth() {
    let counts = [10, 100, 1_000, 10_000];
    println!(
        "microseconds of one pass over so many rules, and over one rule of so many alternatives"
    );
    for pass in RULE_PASSES {
        print!("{:24}", pass.info.name);
        for make in [many_rules, many_alternatives] {
            for count in counts {
                let ruleset = make(count);
                let start = Instant::now();
                let made = stages::run_on_rules(&ruleset, &[pass], &mut PassCx::new(None));
                let elapsed = start.elapsed();
                drop(made);
                print!(" {:>7}", elapsed.as_micros());
            }
            print!("  |");
        }
        println!();
    }
}

fn ruleset(rules: Vec<Rule>) -> Ruleset {
    let section = Section {
        arch: Arch::X86_64,
        rules,
        default: Action::errno(1),
    };
    Ruleset::new(vec![section], Action::KILL_PROCESS).expect("one section")
}

/// A condition of a few parts that differs from number to number.
fn condition(number: u64) -> Predicate {
    let operand = |arg: u64| Operand::arg(ArgIndex::ALL[(arg % 6) as usize]);
    Predicate::All(vec![
        Predicate::compare(operand(0), CmpOp::Eq, number * 3),
        Predicate::Any(vec![
            Predicate::compare(operand(number), CmpOp::Ge, number % 7),
            Predicate::Test(Test::Masked {
                operand: operand(number + 1),
                mask: 0x50 + number % 4,
                value: 0x10,
            }),
            Predicate::Test(Test::In {
                operand: operand(number + 2),
                set: [0, 1, 0x80, 0x81, number].into_iter().collect(),
            }),
        ]),
    ])
}

fn many_rules(count: u32) -> Ruleset {
    let rule = |number: u32| Rule {
        syscalls: IntervalSet::single(number % (count / 3 + 1)),
        when: condition(u64::from(number)),
        action: Action::errno((number % 3) as u16),
        origin: None,
    };
    ruleset((0..count).map(rule).collect())
}

fn many_alternatives(count: u32) -> Ruleset {
    ruleset(vec![Rule {
        syscalls: IntervalSet::single(16),
        when: Predicate::Any((0..u64::from(count)).map(condition).collect()),
        action: Action::ALLOW,
        origin: None,
    }])
}
