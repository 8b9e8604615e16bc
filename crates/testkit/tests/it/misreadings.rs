//! What if the prover misreads a program? Whatever it takes an instruction for, nothing wrong leaves.
//!
//! Each misreading is put into one of the prover's two readings, and everything that lifts, fuses, decompiles
//! or compiles works with it. What a filter does is said here by the interpreter, and by the prover once it
//! reads right again. A release build has no misreadings (`tamis_prover::misreading`).
#![cfg(debug_assertions)]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tamis_abi::{Action, Arch, Endian, Word};
use tamis_analysis::{CaseLimits, decompile};
use tamis_bpf::{Op, Program, Stack, Template, Test};
use tamis_compiler::foreign::{How, Split, optimise};
use tamis_compiler::judge::{compiled, judge};
use tamis_compiler::{CompileError, CompileOptions, ProofEffort, compile_any_length};
use tamis_prover::misreading::{Misreading, Reading, with};
use tamis_prover::{
    Answer, Equality, Limits, Space, Stop, Subject, decide, equality_by_diagrams, equality_by_gates,
};
use tamis_rules::Ruleset;
use tamis_testkit::corpus;
use tamis_testkit::misreadings::{self, Case};

/// What became of a filter under a misreading, where nothing wrong has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Caught {
    /// A call is answered otherwise, says the interpreter.
    Call,
    /// The prover contradicts the interpreter.
    Misread,
    /// A compiled program has an instruction that isn't made.
    Instruction,
    /// The prover noticed that its witness is none.
    Panic,
    /// It could not be confirmed.
    Rejected,
    /// Nothing came of it that is wrong.
    Kept,
}

/// No diagram fits: gates decide.
fn gates_only() -> ProofEffort {
    ProofEffort {
        limits: Limits {
            max_nodes: 2,
            ..Limits::default()
        },
        stop: Stop::default(),
    }
}

/// The effort with which a reading has the say.
fn effort(reading: Reading) -> ProofEffort {
    match reading {
        Reading::Diagrams => ProofEffort::default(),
        Reading::Gates => gates_only(),
    }
}

/// Runs something with a misreading; a panic is the prover's own assertion.
fn misread<T>(
    reading: Reading,
    misreading: Misreading,
    body: impl FnOnce() -> Result<T, CompileError>,
) -> Result<T, Caught> {
    let outcome = catch_unwind(AssertUnwindSafe(|| with(reading, misreading, body)));
    match outcome {
        Err(_) => Err(Caught::Panic),
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

/// The ruleset that filters are taken for, if there is one.
fn decompiled(filter: &Subject<'_>) -> Option<Ruleset> {
    let mut space = Space::new(Limits::default());
    let function = space.subject(filter).ok()?;
    decompile(&mut space, function, &CaseLimits::default()).ok()
}

/// Whether two subjects are the same, by a prover that reads right.
fn are_same(left: &Subject<'_>, right: &Subject<'_>) -> bool {
    match decide(left, right, &Limits::default()) {
        Answer::Equal(_) => true,
        Answer::Different { .. } => false,
        Answer::Unknown(limit) => panic!("{limit}"),
    }
}

/// A program that does what a ruleset says.
fn made(ruleset: &Ruleset) -> Program {
    let made = compile_any_length(ruleset, &CompileOptions::default());
    made.expect("it compiles")
        .program()
        .expect("it has no variables")
        .clone()
}

/// What comes of optimising filters with a misreading. Nothing wrong does.
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

/// What comes of judging something wrong that the misread filters are equal to.
fn judged(reading: Reading, case: &Case, given: &Subject<'_>, wrong: &Subject<'_>) -> Caught {
    let proof = effort(reading);
    match misread(reading, case.misreading, || judge(given, wrong, &proof)) {
        Err(caught) => caught,
        Ok(judged) => panic!("{}: a wrong result left: {judged}", case.name),
    }
}

/// What the table says of one misreading in one reading.
struct Row {
    /// Whether the misreading alone, without a second judge, would let a wrong program and a wrong ruleset leave.
    would_leave: [bool; 2],
    optimise: Caught,
    fuse: Caught,
    decompile: Caught,
    /// Nothing is compiled from a stack.
    compile: Option<Caught>,
}

/// Whether a reading alone takes what was made for what was given.
fn is_taken_for(reading: Reading, case: &Case, given: &Subject<'_>, made: &Subject<'_>) -> bool {
    let (limits, stop) = (Limits::default(), Stop::default());
    let equality = with(reading, case.misreading, || match reading {
        Reading::Diagrams => equality_by_diagrams(given, made, &limits, &stop),
        Reading::Gates => equality_by_gates(given, made, &limits, &stop),
    });
    equality == Ok(Equality::Equal)
}

/// A filter to be fused with another: it forbids one number.
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

/// What becomes of filters that a misreading takes for something else.
fn made_and_judged(reading: Reading, case: &Case, filters: &Stack) -> (bool, Caught) {
    let given = Subject::programs(filters.programs());
    let given = Subject::whole(&given);
    // Both readings get the same things wrong, so diagrams tell what a misread filter is taken for.
    let wrong = with(Reading::Diagrams, case.misreading, || decompiled(&given));
    let wrong = wrong.unwrap_or_else(|| panic!("{} is taken for no ruleset", case.name));
    let program = made(&wrong);
    let made = Subject::Program(&program);
    let would_leave = is_taken_for(reading, case, &given, &made);
    let caught = match reading {
        Reading::Diagrams => optimised(reading, case, filters, &ProofEffort::default()),
        Reading::Gates => {
            optimised(reading, case, filters, &gates_only());
            // Gates lift nothing; what they would wave through is put to the judge as it is.
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
    let decompile = judged(reading, case, &given, &wrong_subject);
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
    for [program, ruleset] in rows.iter().map(|row| row.would_leave) {
        assert!(
            ruleset,
            "a misread filter is the ruleset that it is taken for"
        );
        let _ = program;
    }
    // Without the judge most of them would have left as programs too; the others use what compiled programs use.
    let wrong = rows.iter().filter(|row| row.would_leave[0]).count();
    assert!(wrong >= 50, "{wrong}");
    // Where a wrong program would have left, it was caught, not just never made.
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
    assert_eq!(right.how(), How::LaidOutAnew);
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

#[test]
fn of_real_programs_nothing_wrong_leaves() {
    let Some(files) = corpus::files("", ".bpf") else {
        return;
    };
    /// Longer ones take too long to try with every misreading.
    const MAX_INSNS: usize = 120;
    let mut tally: BTreeMap<Caught, usize> = BTreeMap::new();
    let programs = files.iter().filter_map(|file| {
        let program = corpus::program(file).expect("the listed file is there");
        (program.len() <= MAX_INSNS).then_some(program)
    });
    for program in programs.step_by(9) {
        for case in misreadings::all() {
            let Misreading::Op(map) = case.misreading else {
                continue;
            };
            if program.ops().all(|op| map(op) == op) {
                continue;
            }
            let case = Case {
                filters: program.clone().into(),
                ..case
            };
            for reading in [Reading::Diagrams, Reading::Gates] {
                let proof = ProofEffort::default();
                let caught = optimised(reading, &case, &case.filters, &proof);
                *tally.entry(caught).or_default() += 1;
            }
        }
    }
    println!("{tally:?}");
    let caught: usize = tally.values().sum();
    assert!(caught > 50, "{caught}");
}
