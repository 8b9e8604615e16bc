//! Foreign filters and stacks, optimised: the result is equivalent to the input, and never worse.

use tamis_abi::{Action, Arch, ArgIndex, Endian, SeccompData};
use tamis_bpf::cache::Bitmap;
use tamis_bpf::{AluOp, Insn, Op, Operand as BpfOperand, Program, Stack, Test as BpfTest};
use tamis_compiler::{CompileOptions, Objective, compile, compile_any_length};
use tamis_kernel::differential::calls::{Effect, answers};
use tamis_optimize::{Method, Optimised, Rejected, RejectionReason, Split, optimise};
use tamis_rules::{IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};
use tamis_testkit::corpus;
use tamis_testkit::generate::input::Neighbourhood;
use tamis_testkit::generate::program;
use tamis_testkit::generate::ruleset::{Size, call, ruleset};
use tamis_testkit::generate::shape;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip;

const OBJECTIVES: [Objective; 3] = [Objective::Steps, Objective::Ns, Objective::Length];

fn length(programs: &[Program]) -> usize {
    programs.iter().map(Program::len).sum()
}

fn stack_of(programs: &[Program]) -> Stack {
    Stack::new(programs.to_vec()).expect("all are for the same machines")
}

fn optimised(stack: &[Program], objective: Objective, split: Split) -> Optimised {
    let options = CompileOptions {
        objective,
        ..CompileOptions::default()
    };
    optimise(&stack_of(stack), &options, split).expect("no mistake of tamis")
}

/// The result for a task with these filters; a single filter is compared as a function of its own.
fn answer(programs: &[Program], data: &SeccompData) -> u32 {
    match programs {
        [program] => tamis_bpf::interp::run(program, data).ret,
        programs => stack_of(programs).run(data).ret,
    }
}

/// Compares return values near the constants of both sides, and the numbers that the kernel may answer from its
/// bitmap.
fn assert_same(rng: &mut Rng, stack: &[Program], result: &[Program]) {
    let programs: Vec<&Program> = stack.iter().chain(result).collect();
    let neighbourhood = Neighbourhood::from_programs(&programs);
    for _ in 0..200 {
        let data = neighbourhood.draw(rng);
        assert_eq!(answer(stack, &data), answer(result, &data), "{data:x?}");
    }
    let [before, after] = [stack, result].map(stack_of);
    for Bitmap {
        audit_arch,
        numbers,
    } in Bitmap::X86_64_LINUX_6_18
    {
        let lost = (0..numbers).find(|nr| {
            before.is_cacheable(audit_arch, *nr) && !after.is_cacheable(audit_arch, *nr)
        });
        assert_eq!(lost, None, "a number is no longer cached");
    }
}

fn compiled(ruleset: &Ruleset) -> Program {
    let compiled = compile_any_length(ruleset, &CompileOptions::default());
    compiled
        .expect("random rulesets compile")
        .program()
        .unwrap()
        .clone()
}

#[test]
fn random_stacks_become_one_filter_that_answers_alike_and_is_not_worse() {
    let mut fused = 0;
    for seed in seeds::selected(0..150) {
        let mut rng = Rng::new(seed);
        let filters = rng.range(1..=4);
        let stack: Vec<Program> = (0..filters)
            .map(|_| compiled(&ruleset(&mut rng, Size::SMALL, Endian::Little)))
            .collect();
        let objective = *rng.choose(&OBJECTIVES);
        let result = optimised(&stack, objective, Split::Never);
        assert_same(&mut rng, &stack, result.programs());
        assert!(result.programs().len() <= stack.len(), "seed {seed}");
        if objective == Objective::Length {
            assert!(length(result.programs()) <= length(&stack), "seed {seed}");
        }
        fused += usize::from(result.how() == Method::LaidOutAnew && stack.len() > 1);
    }
    println!("{fused} stacks fused");
    assert!(fused > seeds::least(60), "{fused}");
}

#[test]
fn random_programs_keep_their_meaning_and_never_get_longer() {
    let mut changed = 0;
    for seed in seeds::selected(0..48) {
        let mut rng = Rng::new(seed);
        let program = program::program(&mut rng, 6, Endian::Little);
        let stack = [program];
        let result = optimised(&stack, Objective::Length, Split::Never);
        assert_same(&mut rng, &stack, result.programs());
        assert!(length(result.programs()) <= length(&stack), "seed {seed}");
        changed += usize::from(result.how() != Method::Unchanged);
    }
    println!("{changed} changed");
    assert!(changed > 0);
}

#[test]
fn optimising_again_finds_nothing_worse() {
    for seed in seeds::selected(200..240) {
        let mut rng = Rng::new(seed);
        let stack = [compiled(&ruleset(&mut rng, Size::SMALL, Endian::Little))];
        for objective in OBJECTIVES {
            let once = optimised(&stack, objective, Split::Never);
            let twice = optimised(once.programs(), objective, Split::Never);
            assert!(
                objective != Objective::Length
                    || length(twice.programs()) <= length(once.programs()),
                "seed {seed}"
            );
            assert_same(&mut rng, &stack, twice.programs());
        }
    }
}

#[test]
fn every_program_of_the_corpus_is_laid_out_anew_or_best_already() {
    laid_out_anew_or_best_already(corpus::real_programs());
}

#[test]
fn programs_of_real_shapes_are_laid_out_anew_or_best_already() {
    laid_out_anew_or_best_already(shape::programs());
}

fn laid_out_anew_or_best_already(programs: Vec<(String, Program)>) {
    let mut rng = Rng::new(0);
    for (name, program) in programs.into_iter().step_by(seeds::every(3)) {
        let stack = [program];
        let result = optimised(&stack, Objective::Length, Split::Never);
        let is_unliftable = |it: &Rejected| matches!(it.why, RejectionReason::Unliftable(_));
        assert!(!result.rejected().iter().any(is_unliftable), "{name}");
        assert!(length(result.programs()) <= length(&stack), "{name}");
        assert_same(&mut rng, &stack, result.programs());
    }
}

#[test]
fn the_filters_of_a_hardened_service_become_one() {
    let names = corpus::files("systemd/stack", ".bpf");
    let stack: Vec<Program> = names.iter().map(|name| corpus::program(name)).collect();
    let result = optimised(&stack, Objective::Steps, Split::Never);
    let [program] = result.programs() else {
        panic!("one filter");
    };
    assert!(program.len() <= 250, "{}", program.len());
    let openat = |flags: u64, mode: u64| SeccompData {
        nr: 257,
        arch: Arch::X86_64.audit(),
        args: [0, 0, flags, mode, 0, 0],
        ..SeccompData::default()
    };
    for call in [openat(0, 0), openat(0x40, 0o644), openat(0x40, 0o4755)] {
        let run = tamis_bpf::interp::run(program, &call);
        assert!(run.steps <= 14, "{call:x?}: {} steps", run.steps);
    }
    assert_same(&mut Rng::new(0), &stack, result.programs());
}

fn op(ops: &[Op]) -> Program {
    let insns: Vec<Insn> = ops.iter().copied().map(Insn::from).collect();
    Program::new(insns, Endian::Little).expect("the filter is legal")
}

#[test]
fn a_filter_that_never_looks_at_the_architecture_is_laid_out_anew() {
    const DENY: Op = Op::RetImm(Action::errno(1).ret());
    // A chain that a range test replaces, and a comparison of an argument.
    let mut ops = vec![Op::LoadData(0)];
    ops.extend((0..10).map(|nr| Op::branch(BpfTest::Eq, nr, 13 - nr as u8, 0)));
    ops.extend([
        Op::branch(BpfTest::Eq, 41, 0, 3),
        Op::LoadData(16),
        Op::branch(BpfTest::Eq, 1, 1, 0),
        DENY,
        Op::RetImm(Action::ALLOW.ret()),
    ]);
    let stack = [op(&ops)];
    let result = optimised(&stack, Objective::Steps, Split::Never);
    assert_eq!(result.how(), Method::LaidOutAnew, "{:?}", result.rejected());
    assert!(length(result.programs()) < 9, "{:?}", result.programs());
    assert_same(&mut Rng::new(0), &stack, result.programs());
}

#[test]
fn what_cannot_be_lifted_is_cleaned_up() {
    // An errno from an argument: too many return values for a ruleset; and one removable instruction.
    let stack = [op(&[
        Op::LoadData(0),
        Op::branch(BpfTest::Eq, 5, 0, 0),
        Op::LoadData(16),
        Op::Alu(AluOp::And, BpfOperand::K(0xfff)),
        Op::Alu(AluOp::Or, BpfOperand::K(Action::errno(0).ret())),
        Op::RetA,
    ])];
    let result = optimised(&stack, Objective::Steps, Split::Never);
    assert_eq!(result.how(), Method::Passes);
    let [anew, redispatched] = result.rejected() else {
        panic!("both other ways are rejected");
    };
    assert_eq!(anew.how, Method::LaidOutAnew);
    assert!(matches!(anew.why, RejectionReason::Unliftable(_)), "{anew}");
    assert_eq!(redispatched.how, Method::Redispatched);
    assert!(
        matches!(redispatched.why, RejectionReason::NotBetter(_)),
        "{redispatched}"
    );
    assert_same(&mut Rng::new(0), &stack, result.programs());
}

const NR: u32 = 0;
const ARCH: u32 = 4;
const ARG0_LOW: u32 = 16;
const ALLOW: Op = Op::RetImm(Action::ALLOW.ret());
const DENY: Op = Op::RetImm(Action::errno(1).ret());

/// A program that first tests 40 numbers in turn, which are allowed.
fn behind_a_chain(rest: &[Op]) -> Program {
    let mut ops = vec![Op::LoadData(NR)];
    for nr in 0..40 {
        ops.extend([Op::branch(BpfTest::Eq, nr, 0, 1), ALLOW]);
    }
    ops.extend(rest);
    op(&ops)
}

/// The most steps of a call with a number in the chain.
fn most_steps(program: &Program) -> u32 {
    let steps = (0..40).map(|nr| {
        let data = SeccompData {
            nr,
            arch: Arch::X86_64.audit(),
            ..SeccompData::default()
        };
        tamis_bpf::interp::run(program, &data).steps
    });
    steps.max().unwrap_or(0)
}

#[test]
fn calls_are_found_anew_where_no_ruleset_says_what_is_done_with_them() {
    let unsayable = [
        // A number compared with an argument.
        vec![
            Op::Tax,
            Op::LoadData(ARG0_LOW),
            Op::Branch {
                test: BpfTest::Eq,
                operand: BpfOperand::X,
                jt: 0,
                jf: 1,
            },
            ALLOW,
            DENY,
        ],
        // Actions that depend on the number on architectures without a name.
        vec![
            Op::LoadData(ARCH),
            Op::branch(BpfTest::Eq, Arch::X86_64.audit(), 0, 1),
            DENY,
            Op::LoadData(NR),
            Op::branch(BpfTest::Ge, 1000, 0, 1),
            DENY,
            Op::RetImm(Action::KILL_PROCESS.ret()),
        ],
        // A computed return value.
        vec![
            Op::branch(BpfTest::Eq, 41, 0, 3),
            Op::LoadData(ARG0_LOW),
            Op::Alu(AluOp::And, BpfOperand::K(0xfff)),
            Op::RetA,
            DENY,
        ],
    ];
    for rest in unsayable {
        let stack = [behind_a_chain(&rest)];
        let result = optimised(&stack, Objective::Steps, Split::Never);
        assert_eq!(
            result.how(),
            Method::Redispatched,
            "{:?}",
            result.rejected()
        );
        let [Rejected { how, why }] = result.rejected() else {
            panic!("one way goes further");
        };
        assert_eq!(*how, Method::LaidOutAnew);
        assert!(matches!(why, RejectionReason::Unliftable(_)), "{why}");
        let [program] = result.programs() else {
            panic!("one program");
        };
        assert!(most_steps(program) <= 6, "{}", most_steps(program));
        assert!(program.len() < 20, "{}", program.len());
        assert_same(&mut Rng::new(0), &stack, result.programs());
    }
}

/// A policy with this number of calls, each with many values of its own.
fn large_ruleset(calls: u32) -> Ruleset {
    let mut rng = Rng::new(7);
    let rules = (0..calls).map(|nr| {
        let values = (0..300).map(|_| rng.next_u32()).map(u64::from);
        let set = values.collect::<IntervalSet<u64>>();
        let operand = Operand::arg_low(ArgIndex::ALL[1]);
        Rule {
            syscalls: IntervalSet::single(nr),
            when: Predicate::Test(Test::In { operand, set }),
            action: Action::ALLOW,
            origin: None,
        }
    });
    let section = Section {
        arch: Arch::X86_64,
        rules: rules.collect(),
        default: Action::errno(1),
    };
    Ruleset::new(vec![section], Action::KILL_PROCESS).expect("one section")
}

#[test]
fn what_is_too_long_becomes_a_stack_that_fits() {
    let ruleset = large_ruleset(24);
    assert!(compile(&ruleset, &CompileOptions::default()).is_err());
    let stack = [compiled(&ruleset)];
    let whole = optimised(&stack, Objective::Steps, Split::Never);
    assert!(!whole.after().is_installable);
    let parts = optimised(&stack, Objective::Steps, Split::IfTooLong);
    assert_eq!(parts.how(), Method::Split, "{:?}", parts.rejected());
    assert!(parts.programs().len() > 1 && parts.after().is_installable);
    let mut rng = Rng::new(0);
    for _ in 0..2000 {
        let data = call(&mut rng, &ruleset);
        let expected = ruleset.decide(&data).action.ret();
        assert_eq!(answer(parts.programs(), &data), expected, "{data:x?}");
    }
}

/// The number of `seccomp` on x86_64, which filters must allow so that further ones can be installed.
const SECCOMP_NR: u32 = 317;
/// Numbers from here on have no system call.
const FIRST_IDLE_NR: u32 = 0x1_f000;
const IDLE_NUMBERS: u32 = 8;

/// A random ruleset about a few numbers without a system call.
fn harmless(rng: &mut Rng) -> Ruleset {
    let random = ruleset(rng, Size::SMALL, Endian::Little);
    let mut rules = vec![Rule {
        syscalls: IntervalSet::single(SECCOMP_NR),
        when: Predicate::True,
        action: Action::ALLOW,
        origin: None,
    }];
    for section in random.sections() {
        rules.extend(section.rules.iter().map(|rule| Rule {
            syscalls: IntervalSet::single(FIRST_IDLE_NR + rng.next_u32() % IDLE_NUMBERS),
            ..rule.clone()
        }));
    }
    let section = Section {
        arch: Arch::X86_64,
        rules,
        default: Action::errno(rng.range(1..=30) as u16),
    };
    Ruleset::new(vec![section], Action::KILL_PROCESS).expect("one section")
}

#[test]
fn the_running_kernel_answers_alike_for_the_stack_and_for_what_became_of_it() {
    skip::unless_kernel();
    for seed in seeds::selected(0..48) {
        let mut rng = Rng::new(seed);
        let rulesets: Vec<Ruleset> = (0..rng.range(2..=4)).map(|_| harmless(&mut rng)).collect();
        let stack: Vec<Program> = rulesets.iter().map(compiled).collect();
        let result = optimised(&stack, Objective::Steps, Split::Never);
        let calls: Vec<SeccompData> = (0..150)
            .map(|_| SeccompData {
                nr: FIRST_IDLE_NR + rng.next_u32() % (IDLE_NUMBERS + 1),
                arch: Arch::X86_64.audit(),
                ..call(&mut rng, &rulesets[0])
            })
            .collect();
        let insns: Vec<&[Insn]> = result.programs().iter().map(Program::insns).collect();
        for seen in answers(&insns, &calls).expect("the kernel can be asked") {
            let expected = answer(&stack, &seen.call);
            assert_eq!(Effect::of_ret(expected), seen.outcome, "{:x?}", seen.call);
        }
    }
}
