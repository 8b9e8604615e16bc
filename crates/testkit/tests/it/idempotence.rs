//! Passes are idempotent, unless the registry has a reason for a second run.

use std::collections::BTreeMap;

use tamis_abi::{Arch, Endian};
use tamis_bpf::cfg::Cfg;
use tamis_compiler::passes::PassCx;
use tamis_compiler::passes::registry::{self, BYTECODE_PASSES, RULE_PASSES};
use tamis_compiler::stages;
use tamis_compiler::weights::Weights;
use tamis_compiler::{CompileOptions, Remark};
use tamis_rules::Ruleset;
use tamis_testkit::corpus;
use tamis_testkit::generate::program::program as random_program;
use tamis_testkit::generate::ruleset::{Size, entangled, ruleset};
use tamis_testkit::rng::Rng;

/// By pass, the most runs on one input that changed something.
#[derive(Default)]
struct Most(BTreeMap<&'static str, usize>);

impl Most {
    /// Counts the runs of a single pass until it changes nothing.
    fn count(&mut self, remarks: &[Remark]) {
        let mut runs: BTreeMap<Option<Arch>, usize> = BTreeMap::new();
        for run in remarks.chunk_by(|a, b| a.run.number == b.run.number) {
            let own = runs.entry(run[0].run.arch).or_default();
            *own += 1;
            let most = self.0.entry(run[0].pass).or_default();
            *most = (*most).max(*own);
        }
    }

    /// Checks that the registry is right about every pass.
    fn check(&self, stage: impl Iterator<Item = &'static str>) {
        for name in stage {
            let most = self.0.get(name).copied().unwrap_or(0);
            println!("{name}: {most}");
            match registry::why_again(name) {
                None => assert!(most <= 1, "{name} changed something in {most} runs"),
                Some(why) => assert!(most > 1, "{name} never ran again, though {why}"),
            }
        }
    }
}

fn random_ruleset(seed: u64) -> Ruleset {
    let mut rng = Rng::new(seed);
    let random = ruleset(&mut rng, Size::SMALL, Endian::Little);
    match seed % 2 {
        0 => random,
        _ => entangled(&mut rng, &random),
    }
}

#[test]
fn rule_passes_run_once_or_the_registry_says_why_not() {
    let mut most = Most::default();
    for seed in 0..1500 {
        let ruleset = random_ruleset(seed);
        let tidied = stages::run_on_rules(&ruleset, &RULE_PASSES[..1], &mut PassCx::new(None))
            .into_unproven();
        for pass in RULE_PASSES {
            for before in [&ruleset, &tidied] {
                let mut cx = PassCx::new(None);
                let _ = stages::run_on_rules(before, &[pass], &mut cx);
                most.count(&cx.into_remarks());
            }
        }
    }
    most.check(RULE_PASSES.iter().map(|pass| pass.info.name));
}

/// Graphs of tamis before any pass, and of other compilers' programs.
fn graphs() -> Vec<Cfg> {
    let mut graphs = Vec::new();
    for seed in 0..600 {
        let layout = stages::lay_out(
            &random_ruleset(seed),
            &Weights::new(&CompileOptions::default()),
        )
        .into_unproven();
        graphs.push(stages::emit(&layout.dag, layout.root, Endian::Little).into_unproven());
    }
    for name in corpus::files("", ".bpf") {
        let insns = corpus::insns(&name);
        let program =
            tamis_bpf::Program::new(insns, Endian::Little).expect("a corpus program is valid");
        graphs.push(Cfg::from_program(&program));
    }
    graphs
}

#[test]
fn bytecode_passes_run_once_or_the_registry_says_why_not() {
    let mut most = Most::default();
    for graph in graphs() {
        for pass in BYTECODE_PASSES {
            let mut cx = PassCx::new(None);
            let _ = stages::run_on_graph(graph.clone(), &[pass], &mut cx);
            most.count(&cx.into_remarks());
        }
    }
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let body_insns = rng.range(5..=80) as usize;
        let program = random_program(&mut rng, body_insns, Endian::Little);
        for pass in BYTECODE_PASSES {
            let mut cx = PassCx::new(None);
            let _ = stages::optimise(&program, &[pass], &mut cx);
            most.count(&cx.into_remarks());
        }
    }
    most.check(BYTECODE_PASSES.iter().map(|pass| pass.info.name));
}
