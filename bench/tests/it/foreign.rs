//! The results of `tamis optimize` for other compilers' programs, exactly as in `bench/foreign.tsv`, beside the
//! compiler's programs for their policies.
//!
//! `TAMIS_BLESS=1` rewrites the file. Without the corpus nothing is compared.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use tamis_abi::Arch;
use tamis_analysis::narrowed;
use tamis_bench::policies;
use tamis_bpf::{Program, Stack};
use tamis_compiler::meter::{Workload, measure};
use tamis_compiler::{CompileOptions, compile};
use tamis_optimize::{Method, Optimised, Split, optimise};
use tamis_prover::{Limits, Space};
use tamis_testkit::{corpus, diff};

const HEADER: &str = "\
# What `tamis optimize` makes of programs of other compilers, of a stack of 34 filters and of what the
# compiler made itself (`compiled/`), and how; `own` is what the compiler makes of the policy behind a
# program, where both mean the same for x86_64. Steps are those of all calls that the x86_64 table knows, each
# once with all arguments 0. Written by `cargo xtask counts`.
input\tfilters\tlength_insns\tmean_steps\toptimised_insns\toptimised_steps\tmax_steps\thow\town_insns\town_steps
";

/// The factor by which a result may be worse than the compiler's program for the policy itself.
const MARGIN: f64 = 1.05;

/// The policies of programs, by the beginning of their names.
const POLICIES: [(&str, &str); 9] = [
    ("docker/docker-libseccomp-", policies::DOCKER),
    (
        "gvisor/gvisor-gofer-directfs.",
        "gvisor/gvisor-gofer-directfs.json",
    ),
    (
        "gvisor/gvisor-sentry-nvproxy.",
        "gvisor/gvisor-sentry-nvproxy.json",
    ),
    (
        "gvisor/gvisor-sentry-systrap.",
        "gvisor/gvisor-sentry-systrap.json",
    ),
    (
        "gvisor/gvisor-systrap-stub.",
        "gvisor/gvisor-systrap-stub.json",
    ),
    (
        "gvisor/gvisor-systrap-sysmsg-thread.",
        "gvisor/gvisor-systrap-sysmsg-thread.json",
    ),
    ("peers/firecracker-", "peers/fc-vmm.pol.json"),
    ("peers/docker-", "peers/docker.pol.json"),
    ("peers/gappy302-", "peers/gappy302.pol.json"),
];

/// The compiler's program for a policy that is equivalent to a foreign program for x86_64.
struct Own {
    program: Program,
    /// Whether they are also equivalent for x32 and all other architectures.
    is_same: bool,
}

/// The compiler's program for the policy of a foreign program, if they are equivalent: other compilers add checks
/// that are not in the policy, such as of upper halves.
fn own(name: &str, stack: &[Program]) -> Option<Own> {
    let (_, policy) = POLICIES.iter().find(|(start, _)| name.starts_with(start))?;
    let policy = policies::ALL.iter().find(|known| known.name == *policy);
    let ruleset = policy.expect("the policy is measured").ruleset();
    let compiled = compile(&ruleset, &CompileOptions::default()).expect("the policy compiles");
    let program = compiled.program().unwrap().clone();
    let mut space = Space::new(Limits::default());
    let functions = [
        space.program(&stack[0]).ok()?,
        space.program(&program).ok()?,
    ];
    let narrowed = functions.map(|function| narrowed(&mut space, function, &[Arch::X86_64], 0));
    (narrowed[0] == narrowed[1]).then_some(Own {
        program,
        is_same: functions[0] == functions[1],
    })
}

/// Mean and most steps of a stack.
fn figures(programs: &[Program]) -> (f64, u32) {
    let known = Workload::every_call(&[Arch::X86_64]);
    let all = measure(programs, &known, false).all();
    (all.mean_steps(), all.max_steps)
}

fn length(programs: &[Program]) -> usize {
    programs.iter().map(Program::len).sum()
}

/// The inputs: every program of the corpus, the stack, and compiled policies.
fn inputs() -> Vec<(String, Vec<Program>)> {
    let mut stack = Vec::new();
    let mut inputs = Vec::new();
    for name in corpus::programs() {
        let program = corpus::program(&name);
        match name.starts_with("systemd/stack/") {
            true => stack.push(program),
            false => inputs.push((name, vec![program])),
        }
    }
    inputs.push(("systemd/stack".to_owned(), stack));
    for policy in policies::ALL {
        let ruleset = policy.ruleset();
        let compiled = compile(&ruleset, &CompileOptions::default()).expect("the policy compiles");
        let name = format!("compiled/{}", policy.name);
        inputs.push((name, vec![compiled.program().unwrap().clone()]));
    }
    inputs
}

fn how(how: Method) -> &'static str {
    match how {
        Method::LaidOutAnew => "anew",
        Method::Split => "split",
        Method::Redispatched => "redispatched",
        Method::Passes => "passes",
        Method::Unchanged => "-",
    }
}

fn line(name: &str, stack: &[Program], result: &Optimised, own: Option<&Own>) -> String {
    let (before, _) = figures(stack);
    let (after, most) = figures(result.programs());
    let own = match own {
        Some(own) => {
            let program = std::slice::from_ref(&own.program);
            format!("{}\t{:.2}", length(program), figures(program).0)
        }
        None => "-\t-".to_owned(),
    };
    let mut line = String::new();
    writeln!(
        line,
        "{name}\t{}\t{}\t{before:.2}\t{}\t{after:.2}\t{most}\t{}\t{own}",
        stack.len(),
        length(stack),
        length(result.programs()),
        how(result.how()),
    )
    .expect("a string takes any text");
    line
}

#[test]
fn optimised_programs_are_as_the_table_says_and_nearly_as_good_as_their_policies() {
    let inputs = inputs();
    let mut actual = HEADER.to_owned();
    let mut worse = Vec::new();
    for (name, stack) in inputs {
        let filters = Stack::new(stack.clone()).expect("they are for one machine");
        let result = optimise(&filters, &CompileOptions::default(), Split::Never);
        let result = result.expect("no mistake of tamis");
        let own = own(&name, &stack);
        let no_reason = result.rejected().is_empty() && result.how() == Method::Unchanged;
        assert!(!no_reason, "{name}: why nothing better was found is said");
        actual += &line(&name, &stack, &result, own.as_ref());
        if let Some(own) = own {
            let own_program = std::slice::from_ref(&own.program);
            let lengths = [result.programs(), own_program].map(|it| length(it) as f64);
            let steps = [result.programs(), own_program].map(|it| figures(it).0);
            let is_slower = own.is_same && steps[0] > steps[1] * MARGIN;
            if is_slower || lengths[0] > lengths[1] * MARGIN {
                worse.push(name);
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign.tsv");
    if env::var("TAMIS_BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &actual).unwrap();
    }
    let table = fs::read_to_string(&path).unwrap_or_default();
    let difference = diff::unified(&table, &actual);
    assert!(
        difference.is_empty(),
        "counts changed; if they are better or it is worth it, run `cargo xtask counts`:\n{difference}"
    );
    assert!(worse.is_empty(), "worse than the policy itself: {worse:?}");
}
