//! Length and steps of the compiler's programs, exactly as in `bench/counts.tsv`.
//!
//! `TAMIS_BLESS=1` rewrites the file, which needs the corpus; without the corpus its policies are left out of the
//! comparison.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use tamis_abi::Arch;
use tamis_bench::policies::{self, DOCKER, docker_ruleset};
use tamis_bpf::Program;
use tamis_compiler::{CompileOptions, compile};
use tamis_meter::measure_archs;
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

/// All lines, and the names of policies that are missing.
fn measure() -> (String, BTreeSet<&'static str>) {
    let mut text = HEADER.to_owned();
    let mut missing = BTreeSet::new();
    for policy in policies::ALL {
        let Some(ruleset) = policy.ruleset() else {
            missing.insert(policy.name);
            continue;
        };
        let compiled = compile(&ruleset, &CompileOptions::default()).expect("the policy compiles");
        text += &lines(policy.name, compiled.program().unwrap(), &ruleset);
    }
    for name in policies::DOCKER_PEERS {
        let (Some(program), Some(profile)) = (corpus::program(name), corpus::text(DOCKER)) else {
            missing.insert(name);
            continue;
        };
        let ruleset = docker_ruleset(DOCKER, &profile);
        text += &lines(name, &program, &ruleset);
    }
    (text, missing)
}

#[test]
fn programs_are_as_long_and_as_fast_as_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.tsv");
    let (actual, missing) = measure();
    if env::var("TAMIS_BLESS").is_ok_and(|value| value == "1") {
        assert!(
            missing.is_empty(),
            "not writing a table without {missing:?}"
        );
        fs::write(&path, &actual).unwrap();
    }
    let table = fs::read_to_string(&path).unwrap_or_default();
    let is_measured = |line: &&str| !missing.contains(line.split('\t').next().unwrap_or_default());
    let expected: Vec<&str> = table.lines().filter(is_measured).collect();
    let difference = diff::unified(&expected.join("\n"), &actual);
    assert!(
        difference.is_empty(),
        "counts changed; if they are better or it is worth it, run `cargo xtask counts`:\n{difference}"
    );
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
