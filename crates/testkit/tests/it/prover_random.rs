//! The prover and the interpreter on random programs, rulesets, stacks and mutants: they never contradict each other.

use tamis_abi::{Endian, SeccompData};
use tamis_bpf::{Program, Stack, interp};
use tamis_prover::{Equality, Function, Limits, Space};
use tamis_rules::Input;
use tamis_testkit::corpus;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::mutant::mutant;
use tamis_testkit::generate::program::program;
use tamis_testkit::generate::ruleset::{Size, call, ruleset};
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::tally::Tally;

/// Limits that stop early at the whole-word arithmetic of some random programs.
const LIMITS: Limits = Limits {
    max_nodes: 20_000,
    max_steps: 200_000,
    max_states: 5_000,
    max_paths: 1_000,
    max_gates: 200_000,
    max_conflicts: 2_000,
};

/// Limits for mutants that return a whole word, for which no diagram is small enough.
const CORPUS_LIMITS: Limits = Limits {
    max_nodes: 60_000,
    max_steps: 500_000,
    ..LIMITS
};

fn answer(program: &Program, data: &SeccompData) -> u32 {
    interp::run(program, data).ret
}

fn endian(rng: &mut Rng) -> Endian {
    *rng.choose(&[Endian::Little, Endian::Big])
}

#[test]
fn the_function_of_a_program_is_what_the_interpreter_answers() {
    let mut translated = 0;
    for seed in seeds::selected(0..1500) {
        let mut rng = Rng::new(seed);
        let endian = endian(&mut rng);
        let body_insns = rng.range(1..=12) as usize;
        let program = program(&mut rng, body_insns, endian);
        let mut space = Space::new(LIMITS);
        let Ok(function) = space.program(&program) else {
            continue;
        };
        translated += 1;
        let near = Neighbourhood::from_programs(&[&program]);
        for _ in 0..50 {
            let data = near.draw(&mut rng);
            let (found, expected) = (space.value(function, &data.into()), answer(&program, &data));
            assert_eq!(found, expected, "seed {seed}: {data:x?}");
        }
    }
    println!("{translated} programs within the limits");
    assert!(translated > seeds::least(500), "{translated}");
}

#[test]
fn the_function_of_a_ruleset_is_what_it_decides() {
    for seed in seeds::selected(0..1000) {
        let mut rng = Rng::new(seed);
        let endian = endian(&mut rng);
        let ruleset = ruleset(&mut rng, Size::SMALL, endian);
        let mut space = Space::new(Limits::default());
        let function = space.ruleset(&ruleset).expect("within the limits");
        for _ in 0..50 {
            let data = call(&mut rng, &ruleset);
            let expected = ruleset.decide(&data).action.ret();
            let found = space.value(function, &data.into());
            assert_eq!(found, expected, "seed {seed}: {data:x?}\n{ruleset}");
        }
    }
}

#[test]
fn the_function_of_a_stack_is_what_the_stack_answers() {
    for seed in seeds::selected(0..300) {
        let mut rng = Rng::new(seed);
        let endian = endian(&mut rng);
        let mut space = Space::new(LIMITS);
        let (mut programs, mut functions) = (Vec::new(), Vec::new());
        for _ in 0..rng.range(0..=5) {
            let program = program(&mut rng, 6, endian);
            if let Ok(function) = space.program(&program) {
                programs.push(program);
                functions.push(function);
            }
        }
        let Ok(function) = space.stack(&functions) else {
            continue;
        };
        let near = Neighbourhood::from_programs(&programs.iter().collect::<Vec<_>>());
        let stack = Stack::new(programs).expect("all have one byte order");
        for _ in 0..50 {
            let data = near.draw(&mut rng);
            let expected = stack.run(&data).ret;
            assert_eq!(
                space.value(function, &data.into()),
                expected,
                "seed {seed}: {data:x?}"
            );
        }
    }
}

/// Compares a program with a mutant, and the answer with the interpreter's.
fn judge(
    space: &mut Space,
    original: (&Program, Function),
    mutant: &Program,
    rng: &mut Rng,
    tally: &mut Tally,
) {
    let differs = |data: &SeccompData| answer(original.0, data) != answer(mutant, data);
    let Ok(function) = space.program(mutant) else {
        tally.unknown += 1;
        return;
    };
    match space.compare(original.1, function) {
        Equality::Different(Input { data, .. }) => {
            tally.different += 1;
            assert!(differs(&data), "the witness is one: {data:x?}");
        }
        Equality::Equal => {
            tally.equal += 1;
            let near = Neighbourhood::from_programs(&[original.0, mutant]);
            for _ in 0..300 {
                let data = near.draw(rng);
                assert!(!differs(&data), "{data:x?}\n{original:?}\n{mutant:?}");
            }
        }
        Equality::Unknown => tally.unknown += 1,
    }
}

#[test]
fn mutants_of_random_programs() {
    let mut tally = Tally::default();
    for seed in seeds::selected(0..600) {
        let mut rng = Rng::new(seed);
        let endian = endian(&mut rng);
        let program = program(&mut rng, 10, endian);
        let mut space = Space::new(LIMITS);
        let Ok(function) = space.program(&program) else {
            continue;
        };
        for _ in 0..3 {
            let mutant = mutant(&mut rng, &program).expect("some change is legal");
            let original = (&program, function);
            judge(&mut space, original, &mutant, &mut rng, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(
        tally.equal > seeds::least(100) && tally.different > seeds::least(100),
        "{tally:?}"
    );
}

#[test]
fn mutants_of_real_programs() {
    judge_mutants(corpus::all_programs(), 300);
}

#[test]
fn mutants_of_programs_of_real_shapes() {
    judge_mutants(shape::programs(), 10);
}

fn judge_mutants(programs: Vec<(String, Program)>, least: u32) {
    let mut tally = Tally::default();
    for (seed, (_, program)) in programs.into_iter().enumerate() {
        let mut rng = Rng::new(seed as u64);
        for _ in 0..4 {
            let mut space = Space::new(CORPUS_LIMITS);
            let Ok(function) = space.program(&program) else {
                break;
            };
            let original = (&program, function);
            let mutant = mutant(&mut rng, &program).expect("some change is legal");
            judge(&mut space, original, &mutant, &mut rng, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.different > seeds::least(least), "{tally:?}");
}
