//! The time of the prover for pairs of real and large filters, and its share of a compilation.
//!
//! `cargo bench -p tamis-bench --bench prover`; a numeric argument is the number of rounds, and another one a part of
//! the names of the measured items. Pairs with missing files are omitted. `--book` writes the pairs into the page on
//! proofs.

use std::process::ExitCode;

use tamis_abi::Endian;
use tamis_analysis::{CaseLimits, decompile};
use tamis_bench::book;
use tamis_bench::large::Rules;
use tamis_bench::policies::{DOCKER, DOCKER_PEERS, docker_ruleset};
use tamis_bench::ratio::{Contestant, Timing, compare};
use tamis_bench::requests::requests;
use tamis_bpf::Program;
use tamis_compiler::CompileOptions;
use tamis_prover::{Equality, Limits, Space, Subject};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::{self, gvisor};
use tamis_testkit::generate::ruleset::{Size, ruleset};
use tamis_testkit::harness;
use tamis_testkit::rng::Rng;

const ROUNDS: usize = 25;
const SEED: u64 = 1;

/// The beginning of the book's table.
const TABLE_HEAD: &str = "\
| pair | instructions | ms | nodes | KiB |
|---|---:|---:|---:|---:|
";

/// One or more programs, oldest filter first.
type Side = Vec<Program>;

/// Two sides to be compared.
struct Pair {
    name: &'static str,
    sides: [Side; 2],
    /// The time limit for the pair, in milliseconds.
    goal_ms: Option<u32>,
}

/// The result of a comparison, and its cost.
struct Found {
    equality: Equality,
    nodes: usize,
    bytes: usize,
}

fn main() -> ExitCode {
    harness::measure(measure_all)
}

fn measure_all() {
    let rounds = std::env::args().find_map(|argument| argument.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    let is_name = |word: &String| !word.starts_with('-') && word.parse::<usize>().is_err();
    let part = std::env::args().skip(1).find(is_name).unwrap_or_default();
    let mut pairs = pairs();
    pairs.retain(|pair| pair.name.contains(&part));
    let mut table = TABLE_HEAD.to_owned();
    for pair in &pairs {
        table += &print_pair(pair, rounds);
    }
    if part.is_empty() && std::env::args().any(|word| word == book::OPTION) {
        book::put_and_tell("prover.md", &[table]);
    }
    let mut rulesets = rulesets();
    rulesets.retain(|(name, _)| name.contains(&part));
    print_shares(&rulesets, rounds);
}

/// A name, the files of both sides, and the goal.
type RealPair = (&'static str, [&'static str; 2], Option<u32>);

const REAL_PAIRS: [RealPair; 4] = [
    (
        "Docker's profile by libseccomp: list and tree",
        DOCKER_PEERS,
        Some(6),
    ),
    (
        "gVisor's Systrap filter: plain and optimised",
        [
            "gvisor/gvisor-sentry-systrap.unopt.bpf",
            "gvisor/gvisor-sentry-systrap.opt.bpf",
        ],
        Some(4),
    ),
    (
        "gVisor with the nvproxy rules: plain and optimised",
        [
            "gvisor/gvisor-sentry-nvproxy.unopt.bpf",
            "gvisor/gvisor-sentry-nvproxy.opt.bpf",
        ],
        None,
    ),
    (
        "a program that compares arguments with the numbers of calls, twice",
        ["peers/firecracker-go-seccomp-bpf-vmm.bpf"; 2],
        Some(20),
    ),
];

fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (name, files, goal_ms) in REAL_PAIRS {
        pairs.push(Pair {
            name,
            sides: files.map(|file| vec![corpus::program(file)]),
            goal_ms,
        });
    }
    let files = corpus::files("systemd/stack", ".bpf");
    let stack: Side = files.iter().map(|file| corpus::program(file)).collect();
    pairs.push(Pair {
        name: "34 filters of a systemd service, twice",
        sides: [stack.clone(), stack.clone()],
        goal_ms: None,
    });
    pairs.push(Pair {
        name: "34 filters of a systemd service and the one that `tamis optimize` makes of them",
        sides: [stack.clone(), vec![fused(&stack)]],
        goal_ms: Some(30),
    });
    let rules = Rules::new(SEED);
    pairs.push(Pair {
        name: "large generated rules: plain and compiled",
        sides: [vec![rules.program()], vec![compiled(&rules.ruleset())]],
        goal_ms: Some(20),
    });
    pairs
}

/// One program equivalent to a stack.
fn fused(stack: &[Program]) -> Program {
    let mut space = Space::new(Limits::default());
    let meaning = space
        .subject(&Subject::whole(&Subject::programs(stack)))
        .expect("within the limits");
    let ruleset = decompile(&mut space, meaning, &CaseLimits::default());
    compiled(&ruleset.expect("the stack can be said as rules"))
}

fn compiled(ruleset: &Ruleset) -> Program {
    let compiled = tamis_compiler::compile(ruleset, &CompileOptions::default());
    compiled
        .expect("the ruleset compiles")
        .program()
        .unwrap()
        .clone()
}

fn prove(left: &Subject<'_>, right: &Subject<'_>) -> Found {
    let mut space = Space::new(Limits::default());
    let [left, right] = [left, right].map(|side| space.subject(side).expect("within the limits"));
    Found {
        equality: space.compare(left, right),
        nodes: space.len_nodes(),
        bytes: space.len_bytes(),
    }
}

/// The shortest round, which other work on the machine disturbs least.
fn shortest_us(name: &str, rounds: usize, run: impl FnMut() -> usize) -> u128 {
    let comparison = compare(&mut [Contestant::new(name, run)], rounds);
    let shortest = |timing: &Timing| timing.min.as_micros();
    comparison.0.first().map_or(0, shortest)
}

/// Measures a pair and prints a line about it; returns the line of the book.
fn print_pair(pair: &Pair, rounds: usize) -> String {
    let Pair {
        name,
        sides,
        goal_ms,
    } = pair;
    let subjects = [&sides[0], &sides[1]].map(|side| Subject::programs(side));
    let [left, right] = [&subjects[0], &subjects[1]].map(|side| Subject::whole(side));
    let found = prove(&left, &right);
    let time_us = shortest_us(name, rounds, || prove(&left, &right).nodes);
    let [left, right] = [0, 1].map(|side| sides[side].iter().map(Program::len).sum::<usize>());
    let goal = goal_ms.map_or(String::new(), |goal| format!(", goal {goal} ms"));
    let verdict = match found.equality {
        Equality::Equal => "equal",
        Equality::Different(_) => "different",
        Equality::Unknown => "unknown",
    };
    let (ms, kib) = (time_us as f64 / 1000.0, found.bytes / 1024);
    println!(
        "{left:>5} ~ {right:>5} insns  {verdict}  {ms:>7.2} ms  {:>7} nodes {kib:>6} KiB  {name}{goal}",
        found.nodes,
    );
    format!(
        "| {name} | {left}, {right} | {ms:.1} | {} | {kib} |\n",
        found.nodes
    )
}

/// Rulesets whose compilation is timed.
fn rulesets() -> Vec<(&'static str, Ruleset)> {
    let docker = ("Docker", docker_ruleset(DOCKER, &corpus::text(DOCKER)));
    let gvisor = |name, file| (name, gvisor::ruleset(file));
    let mut rng = Rng::new(SEED);
    let random = loop {
        let random = ruleset(&mut rng, Size::LARGE, Endian::Little);
        let rules: usize = random
            .sections()
            .iter()
            .map(|section| section.rules.len())
            .sum();
        if rules >= 500 && tamis_compiler::compile(&random, &CompileOptions::default()).is_ok() {
            break random;
        }
    };
    let sandboxes = [
        gvisor("gVisor Systrap", "gvisor/gvisor-sentry-systrap.json"),
        gvisor("gVisor nvproxy", "gvisor/gvisor-sentry-nvproxy.json"),
    ];
    let known = [docker].into_iter().chain(sandboxes);
    known
        .chain([
            ("1000 requests", requests(1000)),
            ("large rules", Rules::new(SEED).ruleset()),
            ("500 or more random rules", random),
        ])
        .collect()
}

fn print_shares(rulesets: &[(&str, Ruleset)], rounds: usize) {
    for (name, ruleset) in rulesets {
        let program = compiled(ruleset);
        let whole_us = shortest_us(name, rounds, || compiled(ruleset).len());
        let left = Subject::Ruleset(ruleset);
        let right = Subject::Program(&program);
        let proof_us = shortest_us(name, rounds, || prove(&left, &right).nodes);
        println!(
            "{name:<38} compile {whole_us:>7} us, of which the proof {proof_us:>7} us ({:.0} %)",
            100.0 * proof_us as f64 / whole_us as f64
        );
    }
}
