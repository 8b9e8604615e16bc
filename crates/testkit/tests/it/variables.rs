//! Run-time variables: one compilation is correct for all their values.

use tamis_abi::{Arch, Endian, SeccompData};
use tamis_bpf::{Op, Operand, Pc, Template, interp};
use tamis_compiler::{CompileOptions, compile};
use tamis_diag::Sources;
use tamis_diag::render::render;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis as policy;
use tamis_prover::{Answer, Limits, Method, Subject, decide};
use tamis_rules::{BindError, Ruleset, VariableWidth};
use tamis_testkit::generate::ruleset::{Size, call, ruleset};
use tamis_testkit::generate::variables::with_variables;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;

/// A random ruleset with at least one variable, the same without, and the values for which they are equal.
fn pair(rng: &mut Rng, endian: Endian) -> (Ruleset, Ruleset, Vec<u64>) {
    loop {
        let constant = ruleset(rng, Size::SMALL, endian);
        let (variable, values) = with_variables(rng, &constant);
        if !values.is_empty() {
            return (variable, constant, values);
        }
    }
}

/// Other values, some of them near the words of a call.
fn other_values(rng: &mut Rng, ruleset: &Ruleset, data: &SeccompData) -> Vec<u64> {
    let variables = ruleset.variables().iter();
    variables
        .map(|variable| {
            let value = match rng.range(0..=2) {
                0 => rng.interesting_u64(),
                1 => *rng.choose(&data.args),
                _ => rng.choose(&data.args).wrapping_add(1),
            };
            match variable.width {
                VariableWidth::U32 => u64::from(value as u32),
                VariableWidth::U64 => value,
            }
        })
        .collect()
}

#[test]
fn a_template_answers_as_its_ruleset_whatever_is_bound() {
    for seed in seeds::selected(0..600) {
        let mut rng = Rng::new(seed);
        let endian = *rng.choose(&[Endian::Little, Endian::Big]);
        let (variable, constant, values) = pair(&mut rng, endian);
        let template = compile(&variable, &CompileOptions::default()).unwrap();
        assert_eq!(variable.bind(&values).unwrap().variables().len(), 0);
        for _ in 0..60 {
            let data = call(&mut rng, &constant);
            let bound = template.bind(&values).unwrap();
            let expected = constant.decide(&data).action.ret();
            assert_eq!(interp::run(&bound, &data).ret, expected, "{seed}");

            let values = other_values(&mut rng, &variable, &data);
            let bound = template.bind(&values).unwrap();
            let expected = variable.bind(&values).unwrap().decide(&data).action.ret();
            assert_eq!(interp::run(&bound, &data).ret, expected, "{seed}");
        }
    }
}

/// A policy with sets of both widths, for which the text has these expressions.
fn about_sets(declarations: &str, fds: &str, areas: &str, mode: &str) -> Ruleset {
    let text = format!(
        "{declarations}default errno(EPERM)\nbad-arch kill-process\n\
         allow read(fd in {fds}), write(!(fd in {fds}), count < 100)\n\
         trap(3) munmap(addr in {areas}), mprotect(start in {areas} || start == 4096)\n\
         allow dup2(oldfd in {fds} && newfd == {mode}), dup3(newfd > {mode}, oldfd in {fds})\n"
    );
    let mut sources = Sources::new();
    let source = sources.add("sets.tamis", text);
    let options = policy::TamisOptions::new(vec![Arch::X86_64, Arch::Aarch64]);
    let parsed = policy::parse(&mut sources, source, &mut NoIncludes, &options);
    let diagnostics = || render(&parsed.diagnostics, &sources, false);
    parsed
        .ruleset
        .clone()
        .unwrap_or_else(|| panic!("{}", diagnostics()))
}

/// A number from a few small groups, so that values coincide.
fn near(rng: &mut Rng, is_wide: bool) -> u64 {
    let small = rng.range(0..=3);
    match rng.range(0..=2) {
        0 if is_wide => small << 32 | rng.range(0..=3),
        1 if is_wide => u64::MAX - small,
        1 => u64::from(u32::MAX) - small,
        _ => small,
    }
}

#[test]
fn sets_mean_what_lists_of_their_values_mean() {
    let declarations = "let fds: u32[4]\nlet areas: u64[3]\nlet mode_fd: u32\n";
    let variable = about_sets(declarations, "fds", "areas", "mode_fd");
    let template = compile(&variable, &CompileOptions::default()).unwrap();
    for seed in seeds::selected(0..60) {
        let mut rng = Rng::new(seed);
        // Unused places of a set repeat a value, so repetitions must work.
        let values: Vec<u64> = (0..8)
            .map(|index| near(&mut rng, (4..7).contains(&index)))
            .collect();
        let list = |values: &[u64]| {
            let written: Vec<String> = values.iter().map(u64::to_string).collect();
            format!("{{{}}}", written.join(", "))
        };
        let mode = values[7].to_string();
        let constant = about_sets("", &list(&values[..4]), &list(&values[4..7]), &mode);
        let bound = template.bind(&values).unwrap();
        let (left, right) = (Subject::Ruleset(&constant), Subject::Program(&bound));
        let answer = decide(&left, &right, &Limits::default());
        assert!(
            matches!(answer, Answer::Equal(_)),
            "{seed}: {values:?}: {answer:?}"
        );
    }
}

#[test]
fn only_a_ruleset_without_variables_has_a_program_before_it_is_bound() {
    let mut rng = Rng::new(1);
    let (variable, _, values) = pair(&mut rng, Endian::Little);
    let compiled = compile(&variable, &CompileOptions::default()).unwrap();
    let refusal = compiled.program().unwrap_err();
    let unset = variable.variables()[0].clone();
    assert_eq!(refusal, BindError::Unset { variable: unset });
    let bound = variable.bind(&values).unwrap();
    let compiled = compile(&bound, &CompileOptions::default()).unwrap();
    assert_eq!(compiled.bind(&[]).as_ref().ok(), compiled.program().ok());
}

/// The template with its patches swapped.
fn exchange(template: &Template) -> Template {
    let mut ops: Vec<Op> = (0..template.unbound().len())
        .map(|pc| template.op(Pc(pc)))
        .collect();
    let words = template.patches().iter().rev().map(|patch| patch.word);
    for (patch, other) in template.patches().iter().zip(words) {
        if let Op::Branch { operand, .. } = &mut ops[patch.pc.0] {
            *operand = Operand::Variable(other);
        }
    }
    Template::new(&ops, template.endian()).expect("the kernel would take it")
}

#[test]
fn a_template_of_other_variables_is_told_apart_by_a_call_and_values() {
    let mut told_apart = 0;
    for seed in seeds::selected(0..200) {
        let mut rng = Rng::new(seed);
        let (left, _, _) = pair(&mut rng, Endian::Little);
        let template = compile(&left, &CompileOptions::default()).unwrap();
        let exchanged = exchange(template.template());
        let (given, made) = (Subject::Ruleset(&left), Subject::Template(&exchanged));
        match decide(&given, &made, &Limits::default()) {
            Answer::Different { input, .. } => {
                assert_ne!(given.answer(&input), made.answer(&input));
                let values = &input.variables.as_slice()[..left.variables().len()];
                let bound = left
                    .clone()
                    .bind(values)
                    .map(|bound| bound.decide(&input.data).action.ret());
                assert_eq!(bound, Ok(given.answer(&input)));
                told_apart += 1;
            }
            Answer::Equal(Method::Diagrams { .. } | Method::Gates) => {}
            Answer::Unknown(limit) => panic!("{limit:?}"),
        }
    }
    assert!(told_apart > seeds::least(50), "{told_apart}");
}
