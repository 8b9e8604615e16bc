//! The result of `optimise` is never worse than its input by the objective: measured here by running both for every
//! call of the profile, not by the optimiser's own ratings.

use std::collections::BTreeMap;

use tamis_abi::{Arch, Endian, KernelVersion, Nr, SeccompData};
use tamis_bpf::cache::is_cacheable;
use tamis_bpf::ebpf_len::{PROLOGUE_INSNS, op_executed_insns};
use tamis_bpf::{Op, Pc, Program, Stack, interp};
use tamis_compiler::meter::price::{FURTHER_FILTER_NS, MISPREDICTION_NS, STEP_NS, UNCACHED_NS};
use tamis_compiler::{CompileOptions, Objective, compile_any_length};
use tamis_optimize::{Method, Split, optimise};
use tamis_profile::Profile;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::program;
use tamis_testkit::generate::ruleset::{Size, ruleset};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

const OBJECTIVES: [Objective; 3] = [Objective::Steps, Objective::Ns, Objective::Length];
/// The weight of a call that a bitmap answers; other calls weigh 1.
const CACHED_WEIGHT: f64 = 1.0 / 1024.0;
/// Ratings use whole parts of calls.
const ROUNDING: f64 = 1.001;

/// The cost of a profile's calls by an objective.
fn cost(programs: &[Program], profile: &Profile, options: &CompileOptions) -> f64 {
    let mut sum = 0.0;
    let mut branches: BTreeMap<(usize, Pc), [f64; 2]> = BTreeMap::new();
    for (arch, nr, call) in profile.calls() {
        let is_cached = options.has_bitmap()
            && arch != Arch::X32
            && programs
                .iter()
                .all(|program| is_cacheable(program, arch.audit(), nr.0));
        for (args, count) in &call.samples {
            let data = SeccompData {
                nr: nr.0,
                arch: arch.audit(),
                args: *args,
                ip: 0,
            };
            let weight = *count as f64 * if is_cached { CACHED_WEIGHT } else { 1.0 };
            for (index, program) in programs.iter().enumerate() {
                let mut path = Vec::new();
                let run = interp::run_traced(program, &data, &mut |pc| {
                    path.push(pc);
                });
                if options.objective == Objective::Steps {
                    sum += weight * f64::from(run.steps);
                    continue;
                }
                let entering = if index == 0 {
                    UNCACHED_NS
                } else {
                    FURTHER_FILTER_NS
                };
                sum += weight * if is_cached { 0.0 } else { entering };
                sum += weight * STEP_NS * PROLOGUE_INSNS as f64;
                for (at, pc) in path.iter().enumerate() {
                    let op = program.op(*pc);
                    let mut is_taken = false;
                    if let Op::Branch { jt, .. } = op {
                        is_taken = path[at + 1].0 == pc.0 + 1 + usize::from(jt);
                        branches.entry((index, *pc)).or_default()[usize::from(is_taken)] += weight;
                    }
                    sum += weight * STEP_NS * op_executed_insns(op, is_taken) as f64;
                }
            }
        }
    }
    let mispredicted = branches.values().map(|[no, yes]| no.min(*yes));
    sum + MISPREDICTION_NS * mispredicted.sum::<f64>()
}

/// Calls near the constants of the programs, some frequent and most rare.
fn profile(rng: &mut Rng, stack: &[Program]) -> Profile {
    let programs: Vec<&Program> = stack.iter().collect();
    let neighbourhood = Neighbourhood::from_programs(&programs);
    let mut profile = Profile::default();
    for _ in 0..rng.range(1..=60) {
        let data = neighbourhood.draw(rng);
        let arch = match data.nr >= Arch::X32_BIT {
            true => Arch::X32,
            false => Arch::X86_64,
        };
        let count = 1_u64 << rng.range(0..=12);
        let call = profile.call_mut(arch, Nr(data.nr));
        call.count += count;
        *call.samples.entry(data.args).or_default() += count;
    }
    profile
}

/// Optimises a stack for a random profile, objective and kernel.
fn check(rng: &mut Rng, stack: &[Program], seed: u64) -> Method {
    let profile = profile(rng, stack);
    let options = CompileOptions {
        profile: Some(profile.clone()),
        objective: *rng.choose(&OBJECTIVES),
        kernel: rng.chance(1, 2).then_some(KernelVersion::new(5, 4)),
        ..CompileOptions::default()
    };
    let filters = Stack::new(stack.to_vec()).expect("all are for the same machines");
    let result = optimise(&filters, &options, Split::Never).expect("no mistake");
    let (before, after) = match options.objective {
        Objective::Length => {
            let length = |it: &[Program]| it.iter().map(Program::len).sum::<usize>() as f64;
            (length(stack), length(result.programs()))
        }
        Objective::Steps | Objective::Ns => {
            let mut known = Profile::default();
            let calls = profile.calls();
            for (arch, nr, call) in calls.filter(|(arch, ..)| result.archs().contains(arch)) {
                *known.call_mut(arch, nr) = call.clone();
            }
            let cost = |it: &[Program]| cost(it, &known, &options);
            (cost(stack), cost(result.programs()))
        }
    };
    assert!(
        after <= before * ROUNDING,
        "seed {seed}: {before} became {after} for {:?}, {:?}",
        options.objective,
        result.how(),
    );
    result.how()
}

#[test]
fn random_stacks_are_never_worse_for_any_profile_objective_and_kernel() {
    let mut improved = 0;
    for seed in seeds::selected(0..80) {
        let mut rng = Rng::new(seed);
        let stack: Vec<Program> = (0..rng.range(1..=3))
            .map(|_| {
                let ruleset = ruleset(&mut rng, Size::SMALL, Endian::Little);
                let compiled = compile_any_length(&ruleset, &CompileOptions::default());
                compiled
                    .expect("random rulesets compile")
                    .program()
                    .unwrap()
                    .clone()
            })
            .collect();
        improved += usize::from(check(&mut rng, &stack, seed) != Method::Unchanged);
    }
    assert!(improved > seeds::least(20), "{improved}");
}

#[test]
fn random_programs_are_never_worse_for_any_profile_objective_and_kernel() {
    for seed in seeds::selected(0..20) {
        let mut rng = Rng::new(seed);
        let stack = [program::program(&mut rng, 6, Endian::Little)];
        check(&mut rng, &stack, seed);
    }
}
