//! Random rulesets, compiled: the program returns the same as the ruleset.

use tamis_abi::{Action, Arch, ArgIndex, Endian, SeccompData};
use tamis_bpf::cache::is_cacheable;
use tamis_bpf::{Program, interp};
use tamis_compiler::passes::PassCx;
use tamis_compiler::passes::registry::{BYTECODE_PASSES, RULE_PASSES, Selection};
use tamis_compiler::stages;
use tamis_compiler::weights::Weights;
use tamis_compiler::{CompileError, CompileOptions, MAX_DEPTH, compile};
use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};
use tamis_testkit::generate::profile::fitting;
use tamis_testkit::generate::ruleset::{Size, call, ruleset};
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// The program of a ruleset without the proof and without the limit of length.
fn uncompared(ruleset: &Ruleset, endian: Endian) -> Program {
    let layout =
        stages::lay_out(ruleset, &Weights::new(&CompileOptions::default())).into_unproven();
    let graph = stages::emit(&layout.dag, layout.root, endian).into_unproven();
    let program = stages::linearise(&graph).expect("the kernel would take it");
    program.into_unproven()
}

fn assert_agrees(ruleset: &Ruleset, program: &Program, rng: &mut Rng, calls: u32) {
    for _ in 0..calls {
        let data = call(rng, ruleset);
        let expected = ruleset.decide(&data).action.ret();
        let run = interp::run(program, &data);
        assert_eq!(run.ret, expected, "{data:x?}\n{ruleset}");
    }
}

/// A ruleset for x86_64 that denies by default.
fn for_x86_64(rules: Vec<Rule>) -> Ruleset {
    let section = Section {
        arch: Arch::X86_64,
        rules,
        default: Action::errno(1),
    };
    Ruleset::new(vec![section], Action::KILL_PROCESS).expect("one section")
}

fn rule(nr: u32, when: Predicate, action: Action) -> Rule {
    Rule {
        syscalls: IntervalSet::single(nr),
        when,
        action,
        origin: None,
    }
}

fn equals(arg: usize, value: u64) -> Predicate {
    Predicate::compare(Operand::arg(ArgIndex::ALL[arg]), CmpOp::Eq, value)
}

#[test]
fn programs_answer_as_their_rulesets_in_both_byte_orders() {
    for seed in seeds::selected(0..3000) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let ruleset = ruleset(&mut rng, Size::SMALL, endian);
        let program = uncompared(&ruleset, endian);
        assert_agrees(&ruleset, &program, &mut rng, 60);
    }
}

#[test]
fn long_programs_answer_as_their_rulesets() {
    let mut longest = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let ruleset = ruleset(&mut rng, Size::LARGE, Endian::Little);
        let program = uncompared(&ruleset, Endian::Little);
        longest = longest.max(program.len());
        assert_agrees(&ruleset, &program, &mut rng, 1000);
    }
    assert!(
        longest > 4096,
        "jumps farther than 8 bits and programs beyond the limit: {longest}"
    );
}

#[test]
fn the_whole_compiler_accepts_its_own_programs() {
    for seed in seeds::selected(0..1000) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let ruleset = ruleset(&mut rng, Size::SMALL, endian);
        let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
        assert_agrees(&ruleset, compiled.program().unwrap(), &mut rng, 30);
        let again = compile(&ruleset, &CompileOptions::default()).unwrap();
        assert_eq!(
            compiled.program().unwrap(),
            again.program().unwrap(),
            "seed {seed}"
        );
    }
}

#[test]
fn long_lists_of_values_and_any_profile_keep_the_meaning() {
    for seed in seeds::selected(0..500) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let ruleset = ruleset(&mut rng, Size::ARGUMENTS, endian);
        let options = CompileOptions {
            profile: rng.chance(1, 2).then(|| fitting(&mut rng, &ruleset)),
            ..CompileOptions::default()
        };
        let compiled = match compile(&ruleset, &options) {
            Ok(compiled) => compiled,
            Err(CompileError::TooLong { .. }) => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        assert_agrees(&ruleset, compiled.program().unwrap(), &mut rng, 60);
    }
}

#[test]
fn numbers_that_are_allowed_whatever_the_arguments_are_cacheable() {
    for seed in seeds::selected(0..500) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let ruleset = ruleset(&mut rng, Size::SMALL, endian);
        let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
        for section in ruleset.sections() {
            for nr in 0..460 {
                let nr = nr
                    | if section.arch == Arch::X32 {
                        Arch::X32_BIT
                    } else {
                        0
                    };
                let mut about = section
                    .rules
                    .iter()
                    .filter(|rule| rule.syscalls.contains(nr));
                let is_allowed = match about.next() {
                    Some(rule) => rule.when == Predicate::True && rule.action == Action::ALLOW,
                    None => section.default == Action::ALLOW,
                };
                if is_allowed {
                    let audit = section.arch.audit();
                    assert!(
                        is_cacheable(compiled.program().unwrap(), audit, nr),
                        "seed {seed}, {nr}"
                    );
                }
            }
        }
    }
}

#[test]
fn passes_in_any_order_and_with_any_fuel_keep_the_meaning() {
    let names: Vec<&str> = RULE_PASSES
        .iter()
        .map(|pass| pass.info.name)
        .chain(BYTECODE_PASSES.iter().map(|pass| pass.info.name))
        .collect();
    for seed in seeds::selected(0..600) {
        let mut rng = Rng::new(seed);
        let ruleset = ruleset(&mut rng, Size::SMALL, Endian::Little);
        let chosen: Vec<&str> = (0..rng.range(0..=8)).map(|_| *rng.choose(&names)).collect();
        let options = CompileOptions {
            passes: Selection::named(chosen.iter().copied()).unwrap(),
            fuel: rng.chance(1, 2).then(|| rng.range(0..=20)),
            verify_each: rng.chance(1, 8),
            ..CompileOptions::default()
        };
        let compiled = compile(&ruleset, &options).unwrap();
        assert_agrees(&ruleset, compiled.program().unwrap(), &mut rng, 50);
        if let Some(fuel) = options.fuel {
            assert!(compiled.remarks().len() as u64 <= fuel);
        }
    }
}

#[test]
fn a_second_run_of_all_passes_changes_nothing() {
    for seed in seeds::selected(0..500) {
        let mut rng = Rng::new(seed);
        let ruleset = ruleset(&mut rng, Size::SMALL, Endian::Little);
        let once =
            stages::run_on_rules(&ruleset, &RULE_PASSES, &mut PassCx::new(None)).into_unproven();
        let mut cx = PassCx::new(None);
        let twice = stages::run_on_rules(&once, &RULE_PASSES, &mut cx).into_unproven();
        assert_eq!(once, twice, "seed {seed}");
        assert_eq!(cx.into_remarks(), []);
    }
}

#[test]
fn wide_lists_compile() {
    const WIDTH: u64 = 10_000;
    let distinct = |make: fn(u64) -> Predicate| (0..WIDTH).map(make).collect();
    let cases: [Vec<Predicate>; 3] = [
        distinct(|index| equals(0, index * 3)),
        distinct(|index| equals((index % 6) as usize, index * 3)),
        distinct(|index| {
            Predicate::Test(Test::Masked {
                operand: Operand::arg(ArgIndex::ALL[0]),
                mask: index * 2 + 5,
                value: 5 & (index * 2 + 5),
            })
        }),
    ];
    for parts in cases {
        for list in [Predicate::Any(parts.clone()), Predicate::All(parts)] {
            let ruleset = for_x86_64(vec![rule(1, list, Action::ALLOW)]);
            let program = uncompared(&ruleset, Endian::Little);
            assert_agrees(&ruleset, &program, &mut Rng::new(1), 200);
        }
    }
}

#[test]
fn deep_nesting_compiles_to_the_limit_and_is_refused_beyond() {
    let nested = |depth: usize| {
        (2..=depth).fold(equals(0, 7), |inner, level| match level % 3 {
            0 => Predicate::Not(Box::new(inner)),
            1 => Predicate::All(vec![equals(1, level as u64), inner]),
            _ => Predicate::Any(vec![inner, equals(2, level as u64)]),
        })
    };
    for depth in [256, MAX_DEPTH] {
        let ruleset = for_x86_64(vec![rule(1, nested(depth), Action::ALLOW)]);
        let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
        assert_agrees(&ruleset, compiled.program().unwrap(), &mut Rng::new(1), 500);
    }
    let too_deep = for_x86_64(vec![rule(1, nested(MAX_DEPTH + 1), Action::ALLOW)]);
    let error = compile(&too_deep, &CompileOptions::default()).unwrap_err();
    assert!(matches!(
        error,
        CompileError::TooDeep {
            arch: Arch::X86_64,
            ..
        }
    ));
}

#[test]
fn ten_thousand_rules_compile() {
    let rules = (0..10_000)
        .map(|index| rule(index * 2, equals(0, u64::from(index % 7)), Action::ALLOW))
        .collect();
    let ruleset = for_x86_64(rules);
    let program = uncompared(&ruleset, Endian::Little);
    assert_agrees(&ruleset, &program, &mut Rng::new(1), 300);
}

#[test]
fn a_program_that_is_too_long_names_the_largest_contributors() {
    let values: IntervalSet<u64> = (0..5000).map(|index| index * 3).collect();
    let set = Test::In {
        operand: Operand::arg(ArgIndex::ALL[1]),
        set: values,
    };
    let ruleset = for_x86_64(vec![
        rule(0, equals(0, 1), Action::ALLOW),
        rule(16, Predicate::Test(set), Action::ALLOW),
    ]);
    let error = compile(&ruleset, &CompileOptions::default()).unwrap_err();
    let CompileError::TooLong {
        given_insns,
        limit_insns: 4096,
        contributors,
    } = error
    else {
        panic!("{error}");
    };
    assert!(given_insns > 4096);
    assert_eq!(contributors[0].syscalls, ["ioctl"]);
    assert!(contributors[0].length_insns > 4096);
}

#[test]
fn byte_orders_do_not_mix() {
    let section = |arch| Section {
        arch,
        rules: Vec::new(),
        default: Action::ALLOW,
    };
    let sections = vec![section(Arch::X86_64), section(Arch::S390x)];
    let ruleset = Ruleset::new(sections, Action::KILL_PROCESS).unwrap();
    let error = compile(&ruleset, &CompileOptions::default()).unwrap_err();
    let expected = CompileError::MixedEndian {
        little: Arch::X86_64,
        big: Arch::S390x,
    };
    assert_eq!(error, expected);
}

#[test]
fn one_architecture_with_one_answer_is_decided_by_architecture_alone() {
    let ruleset = for_x86_64(Vec::new());
    let compiled = compile(&ruleset, &CompileOptions::default()).unwrap();
    // ld [arch]; jeq; ret; ret - but x32 numbers are of a bad architecture: ld [nr]; two borders.
    let data = SeccompData {
        arch: Arch::X86.audit(),
        ..SeccompData::default()
    };
    let run = interp::run(compiled.program().unwrap(), &data);
    assert_eq!((run.ret, run.steps), (Action::KILL_PROCESS.ret(), 3));
}
