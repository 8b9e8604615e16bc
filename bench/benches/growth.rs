//! How the time to compile, with the proof, grows with the number of rules.
//!
//! `cargo bench -p tamis-bench --bench growth`; a number is the largest number of rules, and any other
//! argument a part of the names of the shapes that are measured. The table goes to the standard output, a
//! chart with logarithmic axes to `target/growth.svg`. Times are the shortest of several rounds. Programs may
//! be longer than the kernel takes.

use std::env;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use tamis_abi::Endian;
use tamis_bench::growth::{SHAPES, Shape};
use tamis_chart::{Axis, Curve, Curves, Style};
use tamis_compiler::{Options, compile_any_length};
use tamis_prover::{Limits, Subject, decide};

const SIZES: [u32; 7] = [10, 30, 100, 300, 1000, 3000, 10_000];

/// How long one size of one shape is measured, if one round is shorter.
const ENOUGH: Duration = Duration::from_millis(1000);
const MAX_ROUNDS: u32 = 50;

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
    let mut curves = Vec::new();
    for shape in SHAPES.into_iter().filter(|shape| shape.name.contains(part)) {
        let sizes = SIZES.into_iter();
        let sizes = sizes.filter(|size| *size <= largest.unwrap_or(u32::MAX));
        curves.push(Curve {
            name: shape.name.to_owned(),
            points: sizes.filter_map(|size| measure(shape, size)).collect(),
            style: Style::DotsAndLine,
        });
    }
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

/// The growth of a compiler whose time is in proportion to the rules, from the fastest first point on.
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

/// Prints a line of the table; the number of rules and milliseconds.
fn measure(shape: Shape, rules: u32) -> Option<(f64, f64)> {
    let ruleset = shape.ruleset(rules);
    let program = match compile_any_length(&ruleset, &Options::default()) {
        Ok(compiled) => compiled.program().clone(),
        Err(error) => {
            println!("{:<25} {rules:>6}  {error}", shape.name);
            return None;
        }
    };
    let compile = shortest(|| {
        black_box(compile_any_length(&ruleset, &Options::default()).is_ok());
    });
    let subjects = [
        Subject::Ruleset(&ruleset),
        Subject::Program {
            program: &program,
            endian: Endian::Little,
        },
    ];
    let limits = Limits::default().for_insns(program.len());
    let proof = shortest(|| {
        black_box(decide(&subjects[0], &subjects[1], &limits));
    });
    let ms = compile.as_secs_f64() * 1e3;
    println!(
        "{:<25} {rules:>6} {:>8} {ms:>10.2} {:>8.1} {:>5.0}%",
        shape.name,
        program.len(),
        ms * 1e3 / f64::from(rules),
        100.0 * proof.as_secs_f64() * 1e3 / ms,
    );
    Some((f64::from(rules), ms))
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
