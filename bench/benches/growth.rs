//! The growth of compile time, including the proof, with the number of rules.
//!
//! `cargo bench -p tamis-bench --bench growth`; a number is the largest number of rules, and any other argument a
//! part of the names of the measured shapes. The table goes to standard output, a chart with logarithmic axes to
//! `target/growth.svg`. Times are the shortest of several rounds. Programs may be longer than the kernel accepts.
//! `--book` writes the times per rule into the page on costs.

use std::env;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use tamis_bench::book;
use tamis_bench::growth::{SHAPES, Shape};
use tamis_chart::{Axis, Curve, Curves, Style};
use tamis_compiler::{CompileOptions, compile_any_length};
use tamis_prover::{Limits, Subject, decide};

const SIZES: [u32; 7] = [10, 30, 100, 300, 1000, 3000, 10_000];

/// The total time of measuring one size of one shape, unless one round takes longer.
const ENOUGH: Duration = Duration::from_millis(1000);
const MAX_ROUNDS: u32 = 50;

/// The sizes in the book.
const BOOK_SIZES: [u32; 5] = [10, 100, 1000, 3000, 10_000];

/// The measurement of one size of one shape.
struct Measured {
    rules: u32,
    insns: usize,
    ms: f64,
    proof_ms: f64,
}

impl Measured {
    fn us_per_rule(&self) -> f64 {
        self.ms * 1e3 / f64::from(self.rules)
    }

    fn proof_percent(&self) -> f64 {
        100.0 * self.proof_ms / self.ms
    }
}

fn main() {
    let is_option = |word: &String| word.starts_with('-');
    let words: Vec<String> = env::args()
        .skip(1)
        .filter(|word| !is_option(word))
        .collect();
    let largest = words.iter().find_map(|word| word.parse().ok());
    let part = words.iter().find(|word| word.parse::<u32>().is_err());
    let part = part.map_or("", String::as_str);
    println!("shape                      rules    insns         ms  us/rule  proof");
    let mut measured = Vec::new();
    for shape in SHAPES.into_iter().filter(|shape| shape.name.contains(part)) {
        let sizes = SIZES.into_iter();
        let sizes = sizes.filter(|size| *size <= largest.unwrap_or(u32::MAX));
        let of_shape: Vec<Measured> = sizes.filter_map(|size| measure(shape, size)).collect();
        measured.push((shape.name, of_shape));
    }
    draw(&measured);
    if words.is_empty() && env::args().any(|word| word == book::OPTION) {
        book::put_and_tell("costs.md", &[table(&measured)]);
    }
}

/// The table of the book.
fn table(measured: &[(&str, Vec<Measured>)]) -> String {
    let mut text = String::from("| rules |");
    for size in BOOK_SIZES {
        text += &format!(" {size} |");
    }
    text += " instructions at 10000 | of which proof |\n|---|";
    text += &"---:|".repeat(BOOK_SIZES.len() + 2);
    for (name, sizes) in measured {
        text += &format!("\n| {name} |");
        for size in BOOK_SIZES {
            let of_size = sizes.iter().find(|measured| measured.rules == size);
            let us = of_size.map_or("-".to_owned(), |measured| {
                format!("{:.0}", measured.us_per_rule())
            });
            text += &format!(" {us} |");
        }
        if let Some(last) = sizes.last() {
            text += &format!(" {} | {:.0} % |", last.insns, last.proof_percent());
        }
    }
    text + "\n"
}

/// Draws the chart.
fn draw(measured: &[(&str, Vec<Measured>)]) {
    let curve = |(name, sizes): &(&str, Vec<Measured>)| Curve {
        name: (*name).to_owned(),
        points: sizes
            .iter()
            .map(|own| (f64::from(own.rules), own.ms))
            .collect(),
        style: Style::DotsAndLine,
    };
    let mut curves: Vec<Curve> = measured.iter().map(curve).collect();
    curves.extend(proportional(&curves));
    let log = |label: &str| Axis {
        label: label.to_owned(),
        is_log: true,
    };
    let chart = Curves {
        title: "Compile time with proof".to_owned(),
        x: log("rules"),
        y: log("ms"),
        curves,
    };
    let svg = chart.draw().to_string();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/growth.svg");
    let written = fs::create_dir_all(path.with_file_name("")).and_then(|()| fs::write(&path, svg));
    match written {
        Ok(()) => println!("{}", path.display()),
        Err(error) => println!("{}: {error}", path.display()),
    }
}

/// The growth of a compiler with time proportional to the rules, from the fastest first point.
fn proportional(curves: &[Curve]) -> Option<Curve> {
    let first = curves.iter().filter_map(|curve| curve.points.first());
    let start = *first.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let points = curves.iter().flat_map(|curve| &curve.points);
    let most_rules = points.map(|point| point.0).fold(start.0, f64::max);
    Some(Curve {
        name: "in proportion".to_owned(),
        points: vec![start, (most_rules, start.1 * most_rules / start.0)],
        style: Style::Line,
    })
}

/// Measures one size, and prints a line of the table.
fn measure(shape: Shape, rules: u32) -> Option<Measured> {
    let ruleset = shape.ruleset(rules);
    let program = match compile_any_length(&ruleset, &CompileOptions::default()) {
        Ok(compiled) => compiled.program().unwrap().clone(),
        Err(error) => {
            println!("{:<25} {rules:>6}  {error}", shape.name);
            return None;
        }
    };
    let compile = shortest(|| {
        black_box(compile_any_length(&ruleset, &CompileOptions::default()).is_ok());
    });
    let subjects = [Subject::Ruleset(&ruleset), Subject::Program(&program)];
    let limits = Limits::default().for_insns(program.len());
    let proof = shortest(|| {
        black_box(decide(&subjects[0], &subjects[1], &limits));
    });
    let measured = Measured {
        rules,
        insns: program.len(),
        ms: compile.as_secs_f64() * 1e3,
        proof_ms: proof.as_secs_f64() * 1e3,
    };
    println!(
        "{:<25} {rules:>6} {:>8} {:>10.2} {:>8.1} {:>5.0}%",
        shape.name,
        measured.insns,
        measured.ms,
        measured.us_per_rule(),
        measured.proof_percent(),
    );
    Some(measured)
}

/// The shortest of several rounds.
fn shortest(mut run: impl FnMut()) -> Duration {
    let mut shortest = Duration::MAX;
    let begin = Instant::now();
    for _ in 0..MAX_ROUNDS {
        let start = Instant::now();
        run();
        shortest = shortest.min(start.elapsed());
        if begin.elapsed() > ENOUGH {
            break;
        }
    }
    shortest
}
