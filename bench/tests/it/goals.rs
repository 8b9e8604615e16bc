//! The comparison of the compiler's programs with the best of other compilers, exactly as in `bench/goals.tsv`.
//! `TAMIS_BLESS=1` rewrites the file.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use tamis_bench::goals::{Case, cases};
use tamis_bpf::{Program, Stack};
use tamis_compiler::{CompileOptions, compile};
use tamis_testkit::diff;

const HEADER: &str = "\
# The compiler against the best program that another compiler made of the same policy: weighted mean of
# executed instructions, the most of any call that counts, and length. `with` is told the profile and the
# kernel of the case, `without` is compiled with default options. Written by `cargo xtask counts`.
case\tpeer_steps\tpeer_max\tpeer_insns\tgoal_steps\tgoal_insns\twith_steps\twith_max\twith_insns\twithout_steps\twithout_max\twithout_insns
";

fn line(case: &Case) -> String {
    let told = CompileOptions {
        profile: case.profile.clone(),
        kernel: case.kernel,
        ..CompileOptions::default()
    };
    let compile = |options: &CompileOptions| compile(&case.ruleset, options).expect("it compiles");
    let (with, without) = (compile(&told), compile(&CompileOptions::default()));
    let mut line = case.name.to_owned();
    let figures = |stack: &Stack| {
        let length_insns: usize = stack.programs().iter().map(Program::len).sum();
        let (mean, max) = (case.mean_steps(stack), case.max_steps(stack));
        format!("\t{mean:.2}\t{max}\t{length_insns}")
    };
    line += &figures(&case.peer);
    write!(line, "\t{:.2}\t{}", case.goal_steps, case.goal_insns).expect("a string takes any text");
    for compiled in [with, without] {
        line += &figures(&compiled.program().unwrap().clone().into());
    }
    line + "\n"
}

#[test]
fn programs_compare_with_others_as_the_table_says() {
    let cases = cases();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("goals.tsv");
    let actual = cases
        .iter()
        .fold(HEADER.to_owned(), |text, case| text + &line(case));
    if env::var("TAMIS_BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &actual).unwrap();
    }
    let difference = diff::unified(&fs::read_to_string(&path).unwrap_or_default(), &actual);
    assert!(
        difference.is_empty(),
        "figures changed; if they are better or it is worth it, run `cargo xtask counts`:\n{difference}"
    );
}
