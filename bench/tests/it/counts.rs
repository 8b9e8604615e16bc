//! Length and steps of the compiler's programs, exactly as in `bench/counts.tsv`.
//!
//! `TAMIS_BLESS=1` rewrites the file, which needs the corpus; our own policies are compared without it, too.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tamis_abi::Arch;
use tamis_bench::policies::{self, DOCKER, Policy, docker_ruleset};
use tamis_bpf::Program;
use tamis_compiler::meter::measure_archs;
use tamis_compiler::{CompileOptions, compile};
use tamis_rules::Ruleset;
use tamis_testkit::{corpus, diff};

const HEADER: &str = "\
# What the compiler makes of real policies: one line per policy and architecture. Steps are those of all
# calls that the tables know, each once with all arguments 0; `cacheable` calls cost the kernel none.
# At the end, for comparison, programs that other compilers made. Written by `cargo xtask counts`.
policy\tarch\tlength_insns\tkernel_insns\tcalls\tcacheable\tmean_steps\tmax_steps
";

/// The lines of one program, one for each architecture.
fn lines(name: &str, program: &Program, ruleset: &Ruleset) -> String {
    let mut lines = String::new();
    let archs: Vec<Arch> = ruleset.sections().iter().map(|it| it.arch).collect();
    for (arch, cost) in measure_archs(std::slice::from_ref(program), &archs) {
        writeln!(
            lines,
            "{name}\t{arch}\t{}\t{}\t{}\t{}\t{:.2}\t{}",
            cost.length_insns,
            cost.kernel_insns,
            cost.numbers,
            cost.cached_numbers,
            cost.all().mean_steps(),
            cost.all().max_steps
        )
        .expect("a string takes any text");
    }
    lines
}

fn compiled_lines(policies: impl Iterator<Item = Policy>) -> String {
    let lines = policies.map(|policy| {
        let ruleset = policy.ruleset();
        let compiled = compile(&ruleset, &CompileOptions::default()).expect("the policy compiles");
        lines(policy.name, compiled.program().unwrap(), &ruleset)
    });
    lines.collect()
}

#[track_caller]
fn assert_same(table: &str, actual: &str) {
    let difference = diff::unified(table, actual);
    assert!(
        difference.is_empty(),
        "counts changed; if they are better or it is worth it, run `cargo xtask counts`:\n{difference}"
    );
}

fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.tsv")
}

#[test]
fn programs_are_as_long_and_as_fast_as_the_table_says() {
    let profile = docker_ruleset(DOCKER, &corpus::text(DOCKER));
    let mut actual = HEADER.to_owned() + &compiled_lines(policies::ALL.into_iter());
    for name in policies::DOCKER_PEERS {
        actual += &lines(name, &corpus::program(name), &profile);
    }
    if is_blessing() {
        fs::write(table(), &actual).unwrap();
    }
    assert_same(&fs::read_to_string(table()).unwrap_or_default(), &actual);
}

/// Whether the table is written.
fn is_blessing() -> bool {
    env::var("TAMIS_BLESS").is_ok_and(|value| value == "1")
}

#[test]
fn programs_of_our_own_policies_are_as_long_and_as_fast_as_the_table_says() {
    if is_blessing() {
        return;
    }
    let own = || {
        let all = policies::ALL.into_iter();
        all.filter(|policy| !policy.is_in_corpus())
    };
    let is_own = |line: &&str| own().any(|policy| line.split('\t').next() == Some(policy.name));
    let table = fs::read_to_string(table()).unwrap_or_default();
    let expected: Vec<&str> = table.split_inclusive('\n').filter(is_own).collect();
    assert_same(&expected.concat(), &compiled_lines(own()));
}

#[test]
fn the_readme_quotes_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("counts.tsv")).unwrap();
    let readme = fs::read_to_string(root.join("../README.md")).unwrap();
    for name in policies::DOCKER_PEERS.into_iter().chain([DOCKER]) {
        let start = format!("{name}\tx86_64\t");
        let line = table.lines().find(|line| line.starts_with(&start)).unwrap();
        let fields: Vec<&str> = line.split('\t').collect();
        let mean_steps: f64 = fields[6].parse().unwrap();
        let quoted = format!("| {} | {mean_steps:.1} | {} |", fields[2], fields[7]);
        assert!(readme.contains(&quoted), "{name}: {quoted}");
    }
}
