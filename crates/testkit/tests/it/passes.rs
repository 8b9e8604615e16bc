//! Passes on programs of other origin: other compilers' programs, and long random ones.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::cfg::{Cfg, End};
use tamis_bpf::{Op, Pc, Program, interp};
use tamis_compiler::CompileOptions;
use tamis_compiler::passes::registry::BYTECODE_PASSES;
use tamis_compiler::passes::{BytecodePass, PassCx};
use tamis_compiler::stages;
use tamis_compiler::weights::Weights;
use tamis_prover::{Answer, Equality, Limits, Space, Subject, decide};
use tamis_testkit::corpus;
use tamis_testkit::generate::program::{data, program as random_program};
use tamis_testkit::generate::ruleset::{Size, call, ruleset};
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// Limits for random arithmetic, which can be arbitrarily hard; the interpreter tests the rest.
const QUICK: Limits = Limits {
    max_nodes: 20_000,
    max_steps: 100_000,
    max_states: 5_000,
    max_paths: 500,
    max_gates: 20_000,
    max_conflicts: 200,
};

fn assert_equal(left: &Program, right: &Program, name: &str) {
    let mut space = Space::new(Limits::default());
    let left = space.program(left).expect("within the limits");
    let right = space.program(right).expect("within the limits");
    assert_eq!(space.compare(left, right), Equality::Equal, "{name}");
}

#[test]
fn programs_of_other_compilers_keep_their_meaning_and_never_get_longer() {
    all_keep_their_meaning(corpus::real_programs());
}

#[test]
fn programs_of_real_shapes_keep_their_meaning_and_never_get_longer() {
    all_keep_their_meaning(shape::programs());
}

fn all_keep_their_meaning(programs: Vec<(String, Program)>) {
    let (mut before, mut after) = (0, 0);
    for (name, program) in programs {
        let optimised =
            stages::optimise(&program, &BYTECODE_PASSES, &mut PassCx::new(None)).into_unproven();
        assert!(optimised.len() <= program.len(), "{name}");
        assert_equal(&program, &optimised, &name);
        before += program.len();
        after += optimised.len();
    }
    println!("{before} instructions before, {after} after");
}

#[test]
fn a_second_run_over_a_program_of_another_compiler_changes_nothing() {
    a_second_run_changes_nothing(corpus::real_programs());
}

#[test]
fn a_second_run_over_a_program_of_a_real_shape_changes_nothing() {
    a_second_run_changes_nothing(shape::programs());
}

fn a_second_run_changes_nothing(programs: Vec<(String, Program)>) {
    for (name, program) in programs {
        let mut graph = Cfg::from_program(&program);
        graph =
            stages::run_on_graph(graph, &BYTECODE_PASSES, &mut PassCx::new(None)).into_unproven();
        let once = graph.clone();
        let mut cx = PassCx::new(None);
        graph = stages::run_on_graph(graph, &BYTECODE_PASSES, &mut cx).into_unproven();
        assert_eq!(cx.into_remarks(), [], "{name}");
        assert_eq!(graph, once, "{name}");
    }
}

/// The number of instructions in reachable blocks, without unconditional jumps.
fn length(graph: &Cfg) -> usize {
    let reachable = graph.reachable();
    let kept = graph.blocks().filter(|(id, _)| reachable[id.index()]);
    kept.map(|(_, block)| block.ops.len() + usize::from(!matches!(block.end, End::Goto(_))))
        .sum()
}

/// The steps of one input, without unconditional jumps.
fn steps(program: &Program, call: &SeccompData) -> u32 {
    let mut jumps = 0;
    let run = interp::run_traced(program, call, &mut |pc: Pc| {
        jumps += u32::from(matches!(program.op(pc), Op::Jump(_)));
    });
    run.steps - jumps
}

fn check_claim(pass: BytecodePass, graph: &Cfg, calls: &[SeccompData]) {
    let before = stages::linearise(graph)
        .expect("the program is valid")
        .into_unproven();
    let mut changed = graph.clone();
    changed = stages::run_on_graph(changed, &[pass], &mut PassCx::new(None)).into_unproven();
    let after = stages::linearise(&changed)
        .expect("the program is valid")
        .into_unproven();
    let name = pass.info.name;
    if pass.info.claim.never_longer {
        assert!(length(&changed) <= length(graph), "{name}");
    }
    for call in calls {
        assert_eq!(
            interp::run(&before, call).ret,
            interp::run(&after, call).ret,
            "{name}"
        );
        if pass.info.claim.never_slower {
            assert!(steps(&after, call) <= steps(&before, call), "{name}");
        }
    }
}

#[test]
fn every_pass_keeps_what_it_claims() {
    for seed in seeds::selected(0..100) {
        let mut rng = Rng::new(seed);
        let ruleset = ruleset(&mut rng, Size::SMALL, Endian::Little);
        let layout =
            stages::lay_out(&ruleset, &Weights::new(&CompileOptions::default())).into_unproven();
        let mut graph = stages::emit(&layout.dag, layout.root, Endian::Little).into_unproven();
        scramble(&mut rng, &mut graph);
        let calls: Vec<SeccompData> = (0..100).map(|_| call(&mut rng, &ruleset)).collect();
        for pass in BYTECODE_PASSES {
            check_claim(pass, &graph, &calls);
        }
    }
}

/// Gives passes opportunities: copies of blocks, detours and repeated tests.
fn scramble(rng: &mut Rng, graph: &mut Cfg) {
    for _ in 0..40 {
        let reachable = graph.reverse_postorder();
        let id = *rng.choose(&reachable);
        let next: Vec<_> = graph.block(id).end.successors().collect();
        if next.is_empty() {
            continue;
        }
        let target = *rng.choose(&next);
        let mut copy = graph.block(target).clone();
        if rng.chance(1, 3) {
            copy.ops.clear();
            copy.end = End::Goto(target);
        } else if rng.chance(1, 3) && matches!(graph.block(id).end, End::Branch { .. }) {
            // The same test again: both sides lead to the original block.
            copy.ops.clear();
            if let End::Branch { test, operand, .. } = graph.block(id).end {
                copy.end = End::Branch {
                    test,
                    operand,
                    yes: target,
                    no: target,
                };
            }
        }
        let copy = graph.push(copy);
        match &mut graph.block_mut(id).end {
            End::Goto(next) => *next = copy,
            End::Branch { yes, .. } if *yes == target => *yes = copy,
            End::Branch { no, .. } => *no = copy,
            End::Ret(_) | End::RetA => {}
        }
    }
}

#[test]
fn random_programs_keep_their_answers_and_passes_their_claims() {
    let mut proved = 0;
    for seed in seeds::selected(0..400) {
        let mut rng = Rng::new(seed);
        let body_insns = rng.range(5..=60) as usize;
        let program = random_program(&mut rng, body_insns, Endian::Little);
        let calls: Vec<SeccompData> = (0..60).map(|_| data(&mut rng, &program)).collect();
        let graph = Cfg::from_program(&program);
        if stages::linearise(&graph).is_ok() {
            for pass in BYTECODE_PASSES {
                check_claim(pass, &graph, &calls);
            }
        }
        let optimised =
            stages::optimise(&program, &BYTECODE_PASSES, &mut PassCx::new(None)).into_unproven();
        assert!(optimised.len() <= program.len(), "{seed}");
        for call in &calls {
            let before = interp::run(&program, call);
            let after = interp::run(&optimised, call);
            assert_eq!(before.ret, after.ret, "{seed}");
        }
        let again =
            stages::optimise(&optimised, &BYTECODE_PASSES, &mut PassCx::new(None)).into_unproven();
        assert!(again.len() <= optimised.len(), "{seed}");
        let [left, right] = [&program, &optimised].map(Subject::Program);
        match decide(&left, &right, &QUICK) {
            Answer::Equal(_) => proved += 1,
            Answer::Different { .. } => panic!("seed {seed}: {program:?}"),
            Answer::Unknown(_) => {}
        }
    }
    assert!(proved > seeds::least(200), "{proved} programs proved");
}
