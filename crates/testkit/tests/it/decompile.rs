//! The decompiler: its rulesets for real and for random filters are equivalent, also as text.

use tamis_abi::{Action, Arch, ArgIndex, Endian, SeccompData};
use tamis_analysis::{
    CaseLimits, Cases, Differences, Machine, Undecompilable, cases, decompile, differences,
    narrowed,
};
use tamis_diag::Sources;
use tamis_export::tamis::{self as export, Style, TamisExportError};
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis::{self, TamisOptions};
use tamis_prover::{Function, Limits, Space};
use tamis_rules::{CmpOp, Input, IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Values};
use tamis_testkit::corpus;
use tamis_testkit::generate::program;
use tamis_testkit::generate::ruleset::{self as generate, Size};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

const STYLES: [Style; 3] = [Style::Named, Style::Explicit, Style::Literal];

/// The function of a corpus program.
fn corpus_function(space: &mut Space, name: &str) -> Function {
    let function = space.program(&corpus::program(name));
    function.expect("within the limits")
}

/// The function of a policy's text.
#[track_caller]
fn text_function(space: &mut Space, text: &str) -> Function {
    let mut sources = Sources::new();
    let source = sources.add("a.tamis", text);
    let parsed = tamis::parse(
        &mut sources,
        source,
        &mut NoIncludes,
        &TamisOptions::new(Vec::new()),
    );
    let ruleset = parsed
        .ruleset
        .unwrap_or_else(|| panic!("{:#?}\n{text}", parsed.diagnostics));
    space.ruleset(&ruleset).expect("within the limits")
}

/// Exports a ruleset in every style and compares; returns the number of lines in the most readable one.
#[track_caller]
fn assert_text_means(space: &mut Space, ruleset: &Ruleset, function: Function) -> usize {
    for style in STYLES {
        let text = export::policy(ruleset, style).expect("it can be said");
        assert!(
            text_function(space, &text) == function,
            "{style:?}\n{ruleset}\n{text}"
        );
    }
    export::policy(ruleset, Style::Named).map_or(0, |text| text.lines().count())
}

#[test]
fn corpus_programs_decompile_to_equal_policies() {
    let names = corpus::programs();
    for name in names {
        let mut space = Space::new(Limits::default());
        let function = corpus_function(&mut space, &name);
        let ruleset = decompile(&mut space, function, &CaseLimits::default());
        let ruleset = ruleset.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(space.ruleset(&ruleset), Ok(function), "{name}");
        let lines = assert_text_means(&mut space, &ruleset, function);
        println!("{name}: {lines} lines");
    }
}

#[test]
fn a_stack_decompiles_to_one_policy() {
    let names = corpus::files("systemd/stack", ".bpf");
    let mut space = Space::new(Limits::default());
    let functions: Vec<Function> = names
        .iter()
        .map(|name| corpus_function(&mut space, name))
        .collect();
    let stack = space.stack(&functions).expect("within the limits");
    let ruleset = decompile(&mut space, stack, &CaseLimits::default()).expect("it can be said");
    let lines = assert_text_means(&mut space, &ruleset, stack);
    assert!(lines < 100, "{lines} lines for {} filters", names.len());
}

/// Whether the language can express the ruleset: some actions may not have data.
fn is_sayable(ruleset: &Ruleset) -> bool {
    let sections = ruleset.sections().iter();
    let actions = sections.flat_map(|section| {
        section
            .rules
            .iter()
            .map(|rule| rule.action)
            .chain([section.default])
    });
    actions
        .chain([ruleset.bad_arch])
        .all(|action| export::answer(action, Arch::X86_64).is_ok())
}

#[test]
fn random_rulesets_survive_decompiling_and_exporting() {
    let mut decompiled = 0;
    let mut exported = 0;
    for seed in seeds::selected(0..300) {
        let mut rng = Rng::new(seed);
        let endian = if seed % 4 == 0 {
            Endian::Big
        } else {
            Endian::Little
        };
        let ruleset = generate::ruleset(&mut rng, Size::SMALL, endian);
        let mut space = Space::new(Limits::default());
        let Ok(function) = space.ruleset(&ruleset) else {
            continue;
        };
        if is_sayable(&ruleset) && !ruleset.sections().is_empty() {
            // The ruleset as generated, with overlapping rules and conditions of any shape.
            assert_text_means(&mut space, &ruleset, function);
            exported += 1;
        }
        match decompile(&mut space, function, &CaseLimits::default()) {
            Ok(again) => {
                assert_eq!(
                    space.ruleset(&again),
                    Ok(function),
                    "seed {seed}\n{ruleset}\n{again}"
                );
                if is_sayable(&again) {
                    assert_text_means(&mut space, &again, function);
                }
                decompiled += 1;
            }
            Err(Undecompilable::Refuted) => panic!("seed {seed}\n{ruleset}"),
            Err(error) => println!("seed {seed}: {error}"),
        }
    }
    println!("{decompiled} decompiled, {exported} exported");
    assert!(
        decompiled > seeds::least(250) && exported > seeds::least(30),
        "{decompiled} {exported}"
    );
}

/// A ruleset made from cases; `None` if one of its conditions is unknown.
fn rebuilt(cases: &Cases) -> Option<Ruleset> {
    let mut bad_arch = Action::KILL_PROCESS;
    let mut sections: Vec<Section> = Vec::new();
    for case in &cases.list {
        let action = Action::from_ret(case.ret);
        let Machine::Known(arch) = case.machine else {
            bad_arch = action;
            continue;
        };
        let rule = Rule {
            syscalls: case.numbers.clone(),
            when: case.when.clone()?,
            action,
            origin: None,
        };
        match sections.last_mut().filter(|section| section.arch == arch) {
            Some(section) => section.rules.push(rule),
            None => sections.push(Section {
                arch,
                rules: vec![rule],
                default: bad_arch,
            }),
        }
    }
    // Cases are disjoint, so their order does not matter.
    for section in &mut sections {
        section.rules.reverse();
    }
    Some(Ruleset::new(sections, bad_arch).expect("cases come by architecture"))
}

#[test]
fn cases_are_disjoint_and_complete() {
    let mut checked = 0;
    for seed in seeds::selected(1000..1200) {
        let mut rng = Rng::new(seed);
        let ruleset = generate::ruleset(&mut rng, Size::SMALL, Endian::Little);
        let mut space = Space::new(Limits::default());
        let function = space.ruleset(&ruleset).expect("within the limits");
        let cases = cases(&mut space, function, &CaseLimits::default()).expect("within the limits");
        if !cases.is_complete {
            continue;
        }
        let Some(again) = rebuilt(&cases) else {
            continue;
        };
        assert_eq!(
            space.ruleset(&again),
            Ok(function),
            "seed {seed}\n{ruleset}\n{again}"
        );
        checked += 1;
        for _ in 0..100 {
            let call = generate::call(&mut rng, &ruleset);
            let ret = space.value(function, &call.into());
            let matching: Vec<u32> = cases
                .list
                .iter()
                .filter(|case| matches(case, &call))
                .map(|case| case.ret)
                .collect();
            assert_eq!(matching, [ret], "seed {seed}: {call:?}\n{ruleset}");
        }
    }
    assert!(checked > seeds::least(150), "{checked}");
}

fn matches(case: &tamis_analysis::Case, call: &SeccompData) -> bool {
    is_of(&case.machine, &case.numbers, case.when.as_ref(), call)
}

fn is_of(
    machine: &Machine,
    numbers: &IntervalSet<u32>,
    when: Option<&Predicate>,
    call: &SeccompData,
) -> bool {
    let is_machine = match machine {
        Machine::Known(arch) => Arch::of_call(call.arch, call.nr) == Some(*arch),
        Machine::Other(audits) => audits.contains(call.arch),
    };
    is_machine
        && numbers.contains(call.nr)
        && when.is_some_and(|when| when.holds(call, &Values::ZERO))
}

#[test]
fn differences_are_where_the_answers_differ() {
    let mut found = 0;
    for seed in seeds::selected(2000..2250) {
        let mut rng = Rng::new(seed);
        let left = generate::ruleset(&mut rng, Size::SMALL, Endian::Little);
        let right = changed(&mut rng, &left);
        let mut space = Space::new(Limits::default());
        let functions = [&left, &right].map(|side| space.ruleset(side).expect("within the limits"));
        let [left_function, right_function] = functions;
        let Differences { list, is_complete } = differences(
            &mut space,
            left_function,
            right_function,
            &CaseLimits::default(),
        )
        .expect("within the limits");
        assert_eq!(
            list.is_empty(),
            left_function == right_function,
            "seed {seed}"
        );
        for difference in &list {
            assert_ne!(difference.left_ret, difference.right_ret);
            let Some(Input { data: example, .. }) = &difference.example else {
                continue;
            };
            assert_eq!(
                left.decide(example).action.ret(),
                difference.left_ret,
                "seed {seed}"
            );
            assert_eq!(
                right.decide(example).action.ret(),
                difference.right_ret,
                "seed {seed}"
            );
            if difference.when.is_some() {
                let when = difference.when.as_ref();
                assert!(is_of(
                    &difference.machine,
                    &difference.numbers,
                    when,
                    example
                ));
            }
            found += 1;
        }
        let all_told = is_complete && list.iter().all(|difference| difference.when.is_some());
        for _ in 0..if all_told { 200 } else { 0 } {
            let call = generate::call(&mut rng, &left);
            let answers = (
                left.decide(&call).action.ret(),
                right.decide(&call).action.ret(),
            );
            let told: Vec<(u32, u32)> = list
                .iter()
                .filter(|it| is_of(&it.machine, &it.numbers, it.when.as_ref(), &call))
                .map(|it| (it.left_ret, it.right_ret))
                .collect();
            let expected = if answers.0 == answers.1 {
                vec![]
            } else {
                vec![answers]
            };
            assert_eq!(told, expected, "seed {seed}: {call:?}");
        }
    }
    assert!(found > seeds::least(100), "{found}");
}

#[test]
fn a_long_condition_is_not_written_out_for_every_call() {
    let policy = |tests: u64| {
        let values = (0..tests).map(|value| {
            Predicate::compare(
                Operand::arg(ArgIndex::ALL[0]),
                CmpOp::Eq,
                value << 33 | value,
            )
        });
        let everything = Rule {
            syscalls: IntervalSet::full(),
            when: Predicate::Any(values.collect()),
            action: Action::ALLOW,
            origin: None,
        };
        let section = Section {
            arch: Arch::X86_64,
            rules: vec![everything],
            default: Action::errno(1),
        };
        let ruleset = Ruleset::new(vec![section], Action::KILL_PROCESS).expect("one section");
        export::policy(&ruleset, Style::Named)
    };
    assert_eq!(policy(500), Err(TamisExportError::TooLong));
    let short = policy(5).expect("it can be said");
    assert!(short.len() < 2 * export::MAX_CONDITIONS_BYTES);
}

/// The ruleset without one of its rules.
fn changed(rng: &mut Rng, ruleset: &Ruleset) -> Ruleset {
    let mut sections = ruleset.sections().to_vec();
    let section = rng.index(sections.len());
    let rules = &mut sections[section].rules;
    if !rules.is_empty() {
        rules.remove(rng.index(rules.len()));
    }
    Ruleset::new(sections, ruleset.bad_arch).expect("the same architectures")
}

#[test]
fn random_programs_decompile_equal_or_say_why_not() {
    const MAX_TEXT_BYTES: usize = 1000;
    let limits = Limits {
        max_nodes: 200_000,
        ..Limits::default()
    };
    let (mut decompiled, mut refused) = (0, 0);
    for seed in seeds::selected(0..100) {
        let mut rng = Rng::new(seed);
        let program = program::program(&mut rng, 30, Endian::Little);
        let mut space = Space::new(limits);
        let Ok(function) = space.program(&program) else {
            continue;
        };
        // These programs do not test the architecture.
        let Ok(narrowed) = narrowed(&mut space, function, &[Arch::X86_64, Arch::X86], 0) else {
            continue;
        };
        match decompile(&mut space, narrowed, &CaseLimits::default()) {
            Ok(ruleset) => {
                assert_eq!(space.ruleset(&ruleset), Ok(narrowed), "seed {seed}");
                // A long condition repeated for each of hundreds of calls takes minutes to parse.
                if is_sayable(&ruleset) && ruleset.to_string().len() < MAX_TEXT_BYTES {
                    assert_text_means(&mut space, &ruleset, narrowed);
                }
                decompiled += 1;
            }
            Err(Undecompilable::Refuted) => panic!("seed {seed}"),
            Err(_) => refused += 1,
        }
    }
    println!("{decompiled} decompiled, {refused} refused");
    assert!(decompiled > seeds::least(30));
}
