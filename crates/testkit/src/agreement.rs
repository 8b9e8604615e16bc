//! Properties on which several judges must agree: languages, compiler, optimiser, prover, both evaluators.
//!
//! These are bodies of fuzz targets like those in [`property`](crate::property): functions of bytes that panic if
//! judges contradict each other. Most of the work is done by a [`Campaign`], so that inputs are guided by coverage.

use tamis_abi::{Action, ActionKind, Arch, Endian, Nr, SeccompData, syscall};
use tamis_analysis::dead_code;
use tamis_bpf::coverage::Coverage;
use tamis_bpf::{Program, interp};
use tamis_compiler::passes::registry::BYTECODE_PASSES;
use tamis_compiler::passes::{BytecodePass, PassCx};
use tamis_compiler::stages;
use tamis_compiler::{CompileError, compile};
use tamis_export as export;
use tamis_export::code;
use tamis_export::convert::{Converted, Refusal, Source, convert, read_back};
use tamis_fuzz::{Campaign, Dictionary};
use tamis_policy::systemd::{self, SystemdVersion};
use tamis_prover::{Answer, ComparisonResult, Limits, Scope, Space, Stop, Subject, decide, prove};
use tamis_rules::{Input, Ruleset};
use tamis_vm::Code;
use tamis_vm::threaded::Threaded;

use crate::generate::degenerate;
use crate::generate::mutant::mutant;
use crate::generate::options::options;
use crate::generate::plain::plain;
use crate::generate::program::program;
use crate::generate::ruleset::{Size, call, ruleset};
use crate::languages::{self, Language};
use crate::property::{InputClass, LIMITS};
use crate::rng::Rng;

/// Limits for single places after arithmetic, which are given up early.
const HASTY: Limits = Limits {
    max_gates: 20_000,
    max_conflicts: 100,
    ..LIMITS
};
/// The evaluations of a campaign.
const EVALUATIONS: u64 = 2_000;
/// The number of inputs without a campaign.
const INPUTS: u32 = 200;

/// A ruleset exported to another language is never looser, and equivalent if no loss is reported, judged by the
/// evaluator, which is independent of the proof.
///
/// # Panics
/// If the property does not hold.
pub fn policy_exports(bytes: &[u8]) -> InputClass {
    const LIMITS: Limits = Limits {
        max_nodes: 200_000,
        ..crate::property::LIMITS
    };
    let mut rng = Rng::from_bytes(bytes);
    let exporter = *rng.choose(&export::ALL);
    let meant = match rng.chance(1, 2) {
        true => plain(&mut rng),
        false => ruleset(&mut rng, Size::SMALL, Endian::Little),
    };
    let mut space = Space::new(LIMITS);
    let Ok(function) = space.ruleset(&meant) else {
        return "gave up";
    };
    let sections = meant.sections().iter();
    let releases = [SystemdVersion::OLDEST, SystemdVersion::newest()];
    let source = Source {
        arches: sections.map(|section| section.arch).collect(),
        systemd: systemd::Settings {
            asked: Some(*rng.choose(&releases)),
            installed: None,
        },
        ..Source::named("fuzz")
    };
    let converted = match convert(&mut space, function, exporter, &source) {
        Ok(converted) => converted,
        Err(Refusal::Limit(_)) => return "gave up",
        Err(Refusal::Inexpressible(_)) => return "refused",
        Err(Refusal::Mistake(message)) => panic!("{message}\n{meant}"),
    };
    // Killing the thread and killing the process count as equal.
    let strictness = |action: Action| match action.kind {
        ActionKind::KillThread => Action::precedence(ActionKind::KillProcess.ret()),
        kind => Action::precedence(kind.ret()),
    };
    let is_whole = converted.losses.is_empty();
    for machine in &converted.machines {
        let parsed = read_back(exporter, &converted.text, machine.native, &source.systemd);
        let parsed = parsed.unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..INPUTS {
            let data = call(&mut rng, &meant);
            let [expected, actual] = [&meant, &parsed].map(|ruleset| ruleset.decide(&data).action);
            let is_own = Arch::of_call(data.arch, data.nr);
            let is_own = is_own.is_some_and(|arch| machine.arches.contains(&arch));
            let is_right = match is_whole {
                true => actual == expected,
                false if may_be_unknown(&converted, &data) => {
                    !is_own || !actual.kind.executes() || expected.kind.executes()
                }
                false => !is_own || strictness(actual) <= strictness(expected),
            };
            assert!(
                is_right,
                "{data:x?}: {actual} instead of {expected} in {}\n{meant}\n{}",
                exporter.name, converted.text
            );
        }
    }
    match is_whole {
        true => "the same",
        false => "with losses",
    }
}

/// Whether a call is one that the target doesn't know, and may deny by another action.
fn may_be_unknown(converted: &Converted, data: &SeccompData) -> bool {
    let mut losses = converted.losses.iter();
    let arch = Arch::of_call(data.arch, data.nr);
    let name = arch.and_then(|arch| syscall::name(arch, Nr(data.nr)));
    name.is_none() && losses.any(|loss| loss.code == code::EXPORT_UNKNOWN)
}

/// Every language that can express a ruleset has an equivalent text, judged by prover and evaluator, and the program
/// compiled from one of the texts, with any options, returns the same actions.
///
/// # Panics
/// If the property does not hold.
pub fn policy_languages(bytes: &[u8]) -> InputClass {
    let mut rng = Rng::from_bytes(bytes);
    let is_plain = rng.chance(2, 3);
    let meant = match is_plain {
        true => plain(&mut rng),
        false => ruleset(&mut rng, Size::SMALL, Endian::Little),
    };
    let rendered = |language: &'static Language| {
        let text = (language.print)(&meant)?;
        Some((language, text))
    };
    let texts: Vec<(&Language, String)> = languages::ALL.iter().filter_map(rendered).collect();
    let is_rendered =
        |language: &&Language| texts.iter().any(|(other, _)| other.name == language.name);
    for language in languages::ALL
        .iter()
        .filter(|language| language.has_all_plain)
    {
        assert!(
            !is_plain || is_rendered(&language),
            "{}: {meant}",
            language.name
        );
    }
    for (language, text) in &texts {
        let parsed = parsed(language, text);
        for _ in 0..INPUTS {
            let data = of_own_arch(&meant, call(&mut rng, &meant));
            let [expected, actual] = [&meant, &parsed].map(|ruleset| ruleset.decide(&data).action);
            assert_eq!(
                actual, expected,
                "{}: {data:x?}\n{text}\n{meant}",
                language.name
            );
        }
        let arches = meant.sections().iter().map(|section| section.arch);
        let scope = Scope {
            arches: arches.collect(),
            ..Scope::default()
        };
        let subjects = [&meant, &parsed].map(Subject::Ruleset);
        let report = prove(&subjects[0], &subjects[1], &scope, &LIMITS);
        let is_equal = report.result.is_err() || report.result == Ok(ComparisonResult::Equal);
        assert!(
            is_equal || scope.arches.is_empty(),
            "{}: {report:x?}\n{text}",
            language.name
        );
    }
    let (language, text) = rng.choose(&texts);
    let parsed = parsed(language, text);
    let options = options(&mut rng, &parsed);
    let compiled = match compile(&parsed, &options) {
        Ok(compiled) => compiled,
        Err(CompileError::TooLong { .. } | CompileError::Unproven { .. }) => return "too hard",
        Err(error) => panic!("{error}\n{text}"),
    };
    let filter = Subject::Program(compiled.program().unwrap());
    let policy = Subject::Ruleset(&parsed);
    let mut campaign = Campaign::new([&policy, &filter], rng.next_u64()).expect("short policies");
    assert_eq!(campaign.run(EVALUATIONS), None, "{text}");
    if is_plain { "plain" } else { "any ruleset" }
}

fn parsed(language: &Language, text: &str) -> Ruleset {
    let parsed = language.parse(text);
    parsed.unwrap_or_else(|mistakes| panic!("{}: {mistakes:?}\n{text}", language.name))
}

/// The call, moved to an architecture of the ruleset: languages differ in their actions for other architectures.
fn of_own_arch(ruleset: &Ruleset, data: SeccompData) -> SeccompData {
    let is_own = |data: &SeccompData| {
        let arch = Arch::of_call(data.arch, data.nr);
        ruleset.sections().is_empty() || arch.is_some_and(|arch| ruleset.section(arch).is_some())
    };
    let section = ruleset.sections().first();
    let Some(section) = section.filter(|_| !is_own(&data)) else {
        return data;
    };
    SeccompData {
        nr: if section.arch == Arch::X32 {
            Arch::X32_BIT
        } else {
            0
        },
        arch: section.arch.audit(),
        ..data
    }
}

/// Some bytecode passes in any order, each any number of times, give an equivalent program: prover and campaign
/// confirm this, and neither contradicts the other.
///
/// # Panics
/// If the property does not hold.
pub fn optimiser(bytes: &[u8]) -> InputClass {
    let mut rng = Rng::from_bytes(bytes);
    let given = any_program(&mut rng, Endian::Little);
    let count = rng.range(1..=12);
    let order: Vec<BytecodePass> = (0..count).map(|_| *rng.choose(&BYTECODE_PASSES)).collect();
    let fuel = rng.chance(1, 2).then(|| rng.range(0..=20));
    let made = stages::optimise(&given, &order, &mut PassCx::new(fuel)).into_unproven();
    let [left, right] = [&given, &made].map(Subject::Program);
    let mut campaign = Campaign::new([&left, &right], rng.next_u64()).expect("short programs");
    assert_eq!(campaign.run(EVALUATIONS), None, "{given:?} {made:?}");
    match decide(&left, &right, &LIMITS) {
        Answer::Equal(_) if made == given => "unchanged",
        Answer::Equal(_) => "proved",
        Answer::Unknown(_) => "unknown",
        different @ Answer::Different { .. } => panic!("{different:x?} {given:?} {made:?}"),
    }
}

fn any_program(rng: &mut Rng, endian: Endian) -> Program {
    let body_insns = rng.range(1..=40) as usize;
    if endian == Endian::Little && rng.chance(1, 4) {
        return degenerate::program(rng, body_insns);
    }
    let mut program = program(rng, body_insns, endian);
    for _ in 0..rng.range(0..=3) {
        program = mutant(rng, &program).unwrap_or(program);
    }
    program
}

/// The prover's function of a program has the interpreter's values, no input reaches places that it calls dead, and
/// its witnesses reach their places.
///
/// # Panics
/// If the property does not hold.
pub fn prover_interpreter(bytes: &[u8]) -> InputClass {
    let mut rng = Rng::from_bytes(bytes);
    let endian = *rng.choose(&[Endian::Little, Endian::Big]);
    let program = any_program(&mut rng, endian);
    let subject = Subject::Program(&program);
    let mut campaign = Campaign::new([&subject; 2], rng.next_u64()).expect("a short program");
    assert_eq!(campaign.run_waiting(&Stop::default()), None);
    let reached = |campaign: &Campaign<'_>| campaign.coverage()[0].taken_outcomes;
    let before = reached(&campaign);
    assert_eq!(campaign.prove_coverage(&HASTY, &Stop::default()), Ok(()));
    let stated = campaign.coverage().swap_remove(0);
    // Places proved unreachable remain so in later runs.
    assert_eq!(campaign.run(EVALUATIONS), None);
    let after = campaign.coverage().swap_remove(0);
    assert_eq!(
        after.impossible_outcomes, stated.impossible_outcomes,
        "{program:?}"
    );
    assert_eq!(
        after.impossible_insns, stated.impossible_insns,
        "{program:?}"
    );
    let inputs: Vec<SeccompData> = campaign.kept().collect();
    let mut space = Space::new(LIMITS);
    if let Ok(function) = space.program(&program) {
        for data in &inputs {
            let run = interp::run(&program, data);
            assert_eq!(
                space.value(function, &Input::from(*data)),
                run.ret,
                "{data:x?} {program:?}"
            );
        }
    }
    if let Ok(dead) = dead_code(&mut Space::new(LIMITS), &program) {
        let mut coverage = Coverage::new(&program);
        for data in &inputs {
            coverage.add(data);
        }
        let unexecuted: Vec<_> = coverage.unexecuted().collect();
        let is_unexecuted = |pc| unexecuted.contains(pc);
        assert!(dead.unexecuted.iter().all(is_unexecuted), "{program:?}");
        let unseen: Vec<_> = coverage.unseen_outcomes().collect();
        for (pc, always) in dead.one_way {
            assert!(unseen.contains(&(pc, !always)), "{pc:?} {program:?}");
        }
    }
    match () {
        () if !after.is_complete() => "open",
        () if stated.taken_outcomes > before => "completed by the prover",
        () => "complete",
    }
}

/// The fast evaluator returns the same as the reference, and reports new coverage whenever the reference reaches
/// something new.
///
/// # Panics
/// If the property does not hold.
pub fn evaluators(bytes: &[u8]) -> InputClass {
    let mut rng = Rng::from_bytes(bytes);
    let endian = *rng.choose(&[Endian::Little, Endian::Big]);
    let program = any_program(&mut rng, endian);
    let dictionary = Dictionary::from_programs([&program]);
    let inputs = (0..INPUTS).map(|_| dictionary.draw(&mut rng)).collect();
    assert_evaluators(&program, inputs);
    "compared"
}

/// Runs inputs in all evaluators.
///
/// # Panics
/// If they disagree.
pub fn assert_evaluators(program: &Program, inputs: Vec<SeccompData>) {
    let code = Code::of_program(program);
    let threaded = Threaded::seccomp(program).ok();
    let mut seen = code.nothing_seen();
    let mut coverage = Coverage::new(program);
    let mut unseen = coverage.unseen_outcomes().count();
    for data in inputs {
        let before = seen.count();
        let ret = code.run(&data.image(Endian::Little), &mut seen);
        let run = coverage.add(&data);
        assert_eq!(ret, run.ret, "{data:x?} {program:?}");
        let threaded = threaded.as_ref();
        let ret = threaded.map(|threaded| threaded.run(&data.image(program.endian())));
        assert_eq!(ret.unwrap_or(run.ret), run.ret, "{data:x?} {program:?}");
        let left = coverage.unseen_outcomes().count();
        let is_noted = left == unseen || seen.count() > before;
        assert!(is_noted, "{data:x?} {program:?}");
        unseen = left;
    }
}
