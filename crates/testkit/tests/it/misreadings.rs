//! Misreadings by the prover: whatever instruction it misreads, no wrong result is returned.
//!
//! Each misreading is injected into one of the prover's two readings, and everything that lifts, fuses, decompiles or
//! compiles uses it. The reference for a filter's meaning is the interpreter, and the prover after the misreading is
//! removed. A release build has no misreadings (`tamis_prover::misreading`).
#![cfg(debug_assertions)]

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tamis_abi::{Action, Arch, Endian, Word};
use tamis_analysis::{CaseLimits, decompile, narrowed};
use tamis_bpf::{AluOp, Op, Operand, Program, Stack, Template, Test};
use tamis_compiler::judge::compiled;
use tamis_compiler::{CompileError, CompileOptions, ProofEffort, compile_any_length};
use tamis_fuzz::{Disagreement, agreement};
use tamis_optimize::judge::{Filter, judge, judge_reading};
use tamis_optimize::{Method, Split, optimise};
use tamis_prover::misreading::{Misreading, Reading, with};
use tamis_prover::{
    Answer, Equality, Function, Limits, Space, Stop, Subject, decide, equality_by_diagrams,
    equality_by_gates,
};
use tamis_rules::Ruleset;
use tamis_testkit::generate::shape;
use tamis_testkit::misreadings::{self, Case};
use tamis_testkit::rng::Rng;
use tamis_testkit::{corpus, seeds};

use crate::fuzz_corpus;

/// The outcome for a filter under a misreading, without a wrong result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Caught {
    /// The interpreter found a call with a different result.
    Call,
    /// The prover contradicts the interpreter.
    Misread,
    /// A compiled program has an instruction that the compiler does not make.
    Instruction,
    /// The prover's witness of a difference was not confirmed. A compiled policy has no other outcome: its program is
    /// correct, and a wrong reading distinguishes it from the rules by a call for which both return the same.
    Unconfirmed,
    /// The result could not be confirmed.
    Rejected,
    /// The result is correct.
    Kept,
}

/// Limits that no diagram meets, so that gates decide.
fn gates_only() -> ProofEffort {
    ProofEffort {
        limits: Limits {
            max_nodes: 2,
            ..Limits::default()
        },
        stop: Stop::default(),
    }
}

/// The effort with which a reading decides.
fn effort(reading: Reading) -> ProofEffort {
    match reading {
        Reading::Diagrams => ProofEffort::default(),
        Reading::Gates => gates_only(),
    }
}

/// The message of the prover's only assertion about its witnesses.
const ASSERTION: &str = "a witness tells the subjects apart";

/// Runs a function with a misreading.
///
/// # Panics
/// If it panics by anything but the prover's assertion.
fn misread<T>(
    reading: Reading,
    misreading: Misreading,
    body: impl FnOnce() -> Result<T, CompileError>,
) -> Result<T, Caught> {
    let outcome = catch_unwind(AssertUnwindSafe(|| with(reading, misreading, body)));
    match outcome {
        Err(panic) => match panic.downcast_ref::<String>() {
            Some(message) if message.contains(ASSERTION) => Err(Caught::Unconfirmed),
            _ => resume_unwind(panic),
        },
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(match error {
            CompileError::Miscompiled { .. } => Caught::Call,
            CompileError::Misread { .. } => Caught::Misread,
            CompileError::Unexpected { .. } => Caught::Instruction,
            CompileError::Unproven { .. } | CompileError::Unjudged(_) => Caught::Rejected,
            error => panic!("no error of a judge: {error}"),
        }),
    }
}

/// The ruleset that misread filters are lifted to, if there is one.
fn decompiled(filter: &Subject<'_>) -> Option<Ruleset> {
    let mut space = Space::new(Limits::default());
    let function = space.subject(filter).ok()?;
    decompile(&mut space, function, &CaseLimits::default()).ok()
}

/// Whether two subjects are equivalent, by a prover without a misreading.
fn are_same(left: &Subject<'_>, right: &Subject<'_>) -> bool {
    match decide(left, right, &Limits::default()) {
        Answer::Equal(_) => true,
        Answer::Different { .. } => false,
        Answer::Unknown(limit) => panic!("{limit}"),
    }
}

/// A program compiled from a ruleset.
fn made(ruleset: &Ruleset) -> Program {
    let made = compile_any_length(ruleset, &CompileOptions::default());
    made.expect("it compiles")
        .program()
        .expect("it has no variables")
        .clone()
}

/// The outcome of optimising filters with a misreading, which must not be a wrong result.
fn optimised(reading: Reading, case: &Case, filters: &Stack, proof: &ProofEffort) -> Caught {
    let options = CompileOptions {
        proof: proof.clone(),
        ..CompileOptions::default()
    };
    let result = misread(reading, case.misreading, || {
        optimise(filters, &options, Split::Never)
    });
    let result = match result {
        Err(caught) => return caught,
        Ok(result) => result,
    };
    let [given, made] = [filters.programs(), result.programs()].map(Subject::programs);
    let is_right = are_same(&Subject::whole(&given), &Subject::whole(&made));
    assert!(is_right, "a wrong result left: {:?}", result.how());
    Caught::Kept
}

/// The outcome of judging a wrong result that is equivalent to the misread filters.
fn judged(reading: Reading, case: &Case, given: &Subject<'_>, wrong: &Subject<'_>) -> Caught {
    let proof = effort(reading);
    match misread(reading, case.misreading, || judge(given, wrong, &proof)) {
        Err(caught) => caught,
        Ok(judged) => panic!("{}: a wrong result left: {judged}", case.name),
    }
}

/// The outcomes of one misreading in one reading.
struct Row {
    /// Whether, without a second judge, the misreading would let a wrong program and a wrong ruleset pass.
    would_leave: [bool; 2],
    optimise: Caught,
    fuse: Caught,
    decompile: Caught,
    /// `None` for a stack, which is not compiled.
    compile: Option<Caught>,
}

/// Whether a reading alone finds the result equivalent to the input.
fn is_taken_for(reading: Reading, case: &Case, given: &Subject<'_>, made: &Subject<'_>) -> bool {
    let (limits, stop) = (Limits::default(), Stop::default());
    let equality = with(reading, case.misreading, || match reading {
        Reading::Diagrams => equality_by_diagrams(given, made, &limits, &stop),
        Reading::Gates => equality_by_gates(given, made, &limits, &stop),
    });
    equality == Ok(Equality::Equal)
}

/// A filter to be fused with another: it denies one number.
fn another(endian: Endian) -> Program {
    let branch = |k, jt, jf| Op::branch(Test::Eq, k, jt, jf);
    let arch = match endian {
        Endian::Little => Arch::X86_64,
        Endian::Big => Arch::S390x,
    };
    let ops = [
        Op::LoadData(Word::ARCH.offset(endian)),
        branch(arch.audit(), 1, 0),
        Op::RetImm(Action::KILL_PROCESS.ret()),
        Op::LoadData(Word::NR.offset(endian)),
        branch(999, 0, 1),
        Op::RetImm(Action::errno(5).ret()),
        Op::RetImm(Action::ALLOW.ret()),
    ];
    Program::new(ops.map(Into::into).to_vec(), endian).expect("a valid filter")
}

/// The outcome for filters that a misreading takes for other ones.
fn made_and_judged(reading: Reading, case: &Case, filters: &Stack) -> (bool, Caught) {
    let given = Subject::programs(filters.programs());
    let given = Subject::whole(&given);
    // Both readings have the same misreading, so diagrams show the function of a misread filter.
    let wrong = with(Reading::Diagrams, case.misreading, || decompiled(&given));
    let wrong = wrong.unwrap_or_else(|| panic!("{} is taken for no ruleset", case.name));
    let program = made(&wrong);
    let made = Subject::Program(&program);
    let would_leave = is_taken_for(reading, case, &given, &made);
    let caught = match reading {
        Reading::Diagrams => optimised(reading, case, filters, &ProofEffort::default()),
        Reading::Gates => {
            optimised(reading, case, filters, &gates_only());
            // Gates do not lift, so the result that they would accept is judged directly.
            judged(reading, case, &given, &made)
        }
    };
    (would_leave, caught)
}

fn row(reading: Reading, case: &Case) -> Row {
    let given = Subject::programs(case.filters.programs());
    let given = Subject::whole(&given);
    let wrong = with(Reading::Diagrams, case.misreading, || decompiled(&given));
    let wrong = wrong.unwrap_or_else(|| panic!("{} is taken for no ruleset", case.name));
    let wrong_subject = Subject::Ruleset(&wrong);
    let is_harmless = are_same(&given, &wrong_subject);
    assert!(!is_harmless, "{} does no harm to its filter", case.name);
    let (program_would_leave, optimise) = made_and_judged(reading, case, &case.filters);
    let mut fused = case.filters.clone();
    let newest = another(fused.endian().expect("a case has a filter"));
    fused.push(newest).expect("it is for the same machines");
    let (_, fuse) = made_and_judged(reading, case, &fused);
    let ruleset_would_leave = is_taken_for(reading, case, &given, &wrong_subject);
    let programs = case.filters.programs().iter();
    let programs: Vec<Filter<'_>> = programs.map(Filter::Program).collect();
    let decompile = misread(reading, case.misreading, || {
        judge_reading(&programs, &BTreeSet::new(), &wrong, &effort(reading))
    });
    let decompile = match decompile {
        Err(caught) => caught,
        Ok(judged) => panic!("{}: a wrong policy left: {judged}", case.name),
    };
    let compile = match case.filters.programs() {
        [filter] => {
            let ops: Vec<Op> = filter.ops().collect();
            let template = Template::new(&ops, filter.endian()).expect("a valid program");
            let checked = misread(reading, case.misreading, || {
                compiled(&template, &wrong, &effort(reading))
            });
            let caught = checked.err();
            assert!(
                caught.is_some(),
                "{}: a wrong program was compiled",
                case.name
            );
            caught
        }
        _ => None,
    };
    Row {
        would_leave: [program_would_leave, ruleset_would_leave],
        optimise,
        fuse,
        decompile,
        compile,
    }
}

fn table(reading: Reading) -> Vec<Row> {
    println!(
        "{reading:?}: alone lets a wrong program leave, a wrong ruleset; optimise, fuse, decompile, compile"
    );
    let rows = misreadings::all().into_iter().map(|case| {
        let row = row(reading, &case);
        println!(
            "{:28} {:5} {:5}  {:<8} {:<8} {:<8} {:?}",
            case.name,
            row.would_leave[0],
            row.would_leave[1],
            format!("{:?}", row.optimise),
            format!("{:?}", row.fuse),
            format!("{:?}", row.decompile),
            row.compile,
        );
        row
    });
    let rows: Vec<Row> = rows.collect();
    type Column = fn(&Row) -> Option<Caught>;
    let columns: [(&str, Column); 4] = [
        ("optimise", |row| Some(row.optimise)),
        ("fuse", |row| Some(row.fuse)),
        ("decompile", |row| Some(row.decompile)),
        ("compile", |row| row.compile),
    ];
    for (name, column) in columns {
        let mut counts: BTreeMap<Caught, usize> = BTreeMap::new();
        for caught in rows.iter().filter_map(column) {
            *counts.entry(caught).or_default() += 1;
        }
        println!("{name}: {counts:?}");
    }
    rows
}

#[test]
fn what_diagrams_misread_is_caught_by_others() {
    let rows = table(Reading::Diagrams);
    assert!(rows.len() >= 30);
    for [_, ruleset] in rows.iter().map(|row| row.would_leave) {
        assert!(
            ruleset,
            "a misread filter is the ruleset that it is taken for"
        );
    }
    // Without the judge most of the programs would also have been returned; the others use the instructions of
    // compiled programs.
    let wrong = rows.iter().filter(|row| row.would_leave[0]).count();
    assert!(wrong >= 50, "{wrong}");
    // If a wrong program would have been returned, it was detected, and not merely never made.
    for row in rows.iter().filter(|row| row.would_leave[0]) {
        assert!(![row.optimise, row.fuse, row.decompile].contains(&Caught::Kept));
    }
}

#[test]
fn what_gates_misread_is_caught_by_others() {
    let rows = table(Reading::Gates);
    assert!(rows.iter().all(|row| row.would_leave[1]));
    let wrong = rows.iter().filter(|row| row.would_leave[0]).count();
    assert!(wrong >= 50, "{wrong}");
}

#[test]
fn negation_ignored_is_caught_by_a_call_of_the_interpreter() {
    let ops = [
        Op::LoadData(0),
        Op::Neg,
        Op::branch(Test::Eq, u32::MAX, 0, 1),
        Op::RetImm(0x7fff_0000),
        Op::RetImm(0x0005_0001),
    ];
    let filter =
        Program::new(ops.map(Into::into).to_vec(), Endian::Little).expect("a valid filter");
    let filters = Stack::from(filter);
    let right = optimise(&filters, &CompileOptions::default(), Split::Never).expect("no mistake");
    assert_eq!(right.how(), Method::LaidOutAnew);
    let ignored = misreadings::all()
        .into_iter()
        .find(|case| case.name == "neg-ignored");
    let misreading = ignored.expect("it is one of the cases").misreading;
    let error = with(Reading::Diagrams, misreading, || {
        optimise(&filters, &CompileOptions::default(), Split::Never)
    });
    let Err(CompileError::Miscompiled { witness, .. }) = &error else {
        panic!("{error:?}");
    };
    assert!([1, u32::MAX].contains(&witness.data.nr), "{witness:x?}");
}

/// The operations on foreign filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Optimise,
    Fuse,
    Decompile,
    /// Decompilation for the calls of one architecture.
    DecompileNarrowed,
}

const WAYS: [Way; 4] = [
    Way::Optimise,
    Way::Fuse,
    Way::Decompile,
    Way::DecompileNarrowed,
];

/// The misreadings that change instructions of a program, and those of rules.
fn cases_for(program: &Program) -> Vec<Case> {
    let mut cases = misreadings::all();
    cases.retain(|case| match case.misreading {
        Misreading::Op(map) => program.ops().any(|op| map(op) != op),
        Misreading::Rule(_) => true,
    });
    cases
}

/// The function of a program for the calls of architectures, or of all.
fn meaning(space: &mut Space, program: &Program, arches: &[Arch]) -> Option<Function> {
    let function = space.program(program).ok()?;
    match arches {
        [] => Some(function),
        arches => narrowed(space, function, arches, Action::KILL_PROCESS.ret()).ok(),
    }
}

/// The outcome of decompiling a program with a misreading, which must not be a wrong result.
fn decompiled_and_judged(
    reading: Reading,
    case: &Case,
    program: &Program,
    arches: &[Arch],
) -> Caught {
    let result = misread(reading, case.misreading, || {
        let mut space = Space::new(Limits::default());
        let Some(function) = meaning(&mut space, program, arches) else {
            return Ok(None);
        };
        let Ok(ruleset) = decompile(&mut space, function, &CaseLimits::default()) else {
            return Ok(None);
        };
        let filter = [Filter::Program(program)];
        let arches = arches.iter().copied().collect();
        judge_reading(&filter, &arches, &ruleset, &effort(reading))?;
        Ok(Some(ruleset))
    });
    let ruleset = match result {
        Err(caught) => return caught,
        Ok(None) => return Caught::Kept,
        Ok(Some(ruleset)) => ruleset,
    };
    let mut space = Space::new(Limits::default());
    let given = meaning(&mut space, program, arches).expect("it is within limits");
    let made = space.ruleset(&ruleset).expect("it is within limits");
    assert_eq!(given, made, "{}: a wrong policy left", case.name);
    Caught::Kept
}

#[test]
fn of_real_programs_nothing_wrong_leaves() {
    let programs = corpus::all_programs();
    nothing_wrong_leaves(programs.into_iter().map(|(_, program)| program).collect());
}

#[test]
fn of_programs_of_real_shapes_nothing_wrong_leaves() {
    let programs = shape::programs().into_iter().map(|(_, program)| program);
    nothing_wrong_leaves(programs.collect());
}

fn nothing_wrong_leaves(mut programs: Vec<Program>) {
    /// Longer programs take too long with many misreadings.
    const MAX_INSNS: usize = 120;
    const TRIES: u64 = 400;
    programs.retain(|program| program.len() <= MAX_INSNS);
    let mut caught: BTreeMap<(Way, Caught), u64> = BTreeMap::new();
    for seed in seeds::selected(0..TRIES) {
        let mut rng = Rng::new(seed);
        let program = rng.choose(&programs);
        let case = &cases_for(program)[..];
        let case = rng.choose(case);
        let reading = *rng.choose(&[Reading::Diagrams, Reading::Gates]);
        let proof = ProofEffort::default();
        let way = WAYS[seed as usize % WAYS.len()];
        let what = match way {
            Way::Optimise => optimised(reading, case, &program.clone().into(), &proof),
            Way::Fuse => {
                let mut stack = Stack::from(program.clone());
                let newest = another(program.endian());
                stack.push(newest).expect("it is for the same machines");
                optimised(reading, case, &stack, &proof)
            }
            Way::Decompile => decompiled_and_judged(reading, case, program, &[]),
            Way::DecompileNarrowed => {
                decompiled_and_judged(reading, case, program, &[Arch::X86_64])
            }
        };
        *caught.entry((way, what)).or_default() += 1;
    }
    println!("{caught:?}");
    for (way, least) in WAYS.into_iter().zip([10, 20, 25, 45]) {
        let of_way = caught
            .iter()
            .filter(|((of, what), _)| *of == way && *what != Caught::Kept);
        let count: u64 = of_way.map(|(_, count)| count).sum();
        assert!(count >= seeds::least(least), "{way:?}: {count}");
    }
}

#[test]
fn of_real_policies_nothing_wrong_is_compiled() {
    nothing_wrong_is_compiled(fuzz_corpus::policies());
}

#[test]
fn of_policies_of_real_shapes_nothing_wrong_is_compiled() {
    nothing_wrong_is_compiled(shape::policies());
}

fn nothing_wrong_is_compiled(policies: Vec<(String, Ruleset)>) {
    /// Longer programs take too long with gates alone.
    const MAX_GATES_INSNS: usize = 60;
    const TRIES: u64 = 150;
    let policies = policies.into_iter().map(|(_, ruleset)| {
        let program = made(&ruleset);
        (ruleset, program)
    });
    let policies: Vec<(Ruleset, Program)> = policies.collect();
    let mut caught: BTreeMap<Caught, u64> = BTreeMap::new();
    for seed in seeds::selected(0..TRIES) {
        let mut rng = Rng::new(seed);
        let (ruleset, right) = rng.choose(&policies);
        let cases = cases_for(right);
        let case = rng.choose(&cases);
        let reading = match right.len() <= MAX_GATES_INSNS && seed % 2 == 0 {
            true => Reading::Gates,
            false => Reading::Diagrams,
        };
        let options = CompileOptions {
            proof: effort(reading),
            ..CompileOptions::default()
        };
        let result = misread(reading, case.misreading, || {
            compile_any_length(ruleset, &options)
        });
        let what = match result {
            Err(caught) => caught,
            Ok(compiled) => {
                let program = compiled.program().expect("it has no variables");
                let is_right = are_same(&Subject::Ruleset(ruleset), &Subject::Program(program));
                assert!(is_right, "{}: a wrong program was compiled", case.name);
                Caught::Kept
            }
        };
        *caught.entry(what).or_default() += 1;
    }
    println!("{caught:?}");
    let count: u64 = caught
        .iter()
        .filter(|(what, _)| **what != Caught::Kept)
        .map(|(_, count)| count)
        .sum();
    assert!(count >= seeds::least(50), "{count}");
}

#[test]
fn gates_that_call_impossible_what_diagrams_name_a_call_for_are_reported() {
    // The calls of the search do not solve the product, and no value is both above 9 and below 9.
    let text = [
        Op::LoadData(16),
        Op::Alu(AluOp::Mul, Operand::K(3)),
        Op::branch(Test::Eq, 7, 0, 1),
        Op::RetImm(0x7fff_0000),
        Op::RetImm(0x0005_0001),
    ];
    let program = Program::new(text.map(Into::into).to_vec(), Endian::Little).expect("valid");
    let subject = Subject::Program(&program);
    let agree = || agreement([&subject, &subject], &Limits::default(), &Stop::default());
    assert!(agree().is_ok());
    // Bits cleared by the mask are never set.
    let masked = Misreading::Op(|op| match op {
        Op::Alu(AluOp::Mul, operand) => Op::Alu(AluOp::And, operand),
        op => op,
    });
    let refusal = with(Reading::Gates, masked, agree);
    let Err(Disagreement::Misread { reading, data }) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(reading, Reading::Gates);
    assert_eq!((data.args[0] as u32).wrapping_mul(3), 7);
}

#[test]
fn diagrams_that_call_impossible_what_calls_do_are_reported() {
    let text = [
        Op::LoadData(16),
        Op::branch(Test::Gt, 9, 0, 1),
        Op::branch(Test::Ge, 9, 0, 3),
        Op::Alu(AluOp::Xor, Operand::K(6)),
        Op::branch(Test::Eq, 1, 0, 1),
        Op::RetImm(0x7fff_0000),
        Op::RetImm(0x0005_0001),
    ];
    let program = Program::new(text.map(Into::into).to_vec(), Endian::Little).expect("valid");
    let subject = Subject::Program(&program);
    let agree = || agreement([&subject, &subject], &Limits::default(), &Stop::default());
    assert!(agree().is_ok());
    let set = Misreading::Op(|op| match op {
        Op::Alu(AluOp::Xor, operand) => Op::Alu(AluOp::Or, operand),
        op => op,
    });
    let refusal = with(Reading::Diagrams, set, agree);
    let Err(Disagreement::Misread { reading, data }) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!((reading, data.args[0] as u32), (Reading::Diagrams, 7));
}
