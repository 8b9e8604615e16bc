//! From the filters of all combinations to one family: equal ones once, one list of variables, stored together.

use std::collections::HashMap;

use tamis_abi::{Arch, Endian, Word};
use tamis_compiler::Compiled;
use tamis_diag::{Diagnostic, Sources, code};
use tamis_policy::matrix::Matrix;
use tamis_rules::Variable;

use super::members::Plan;
use crate::cli::Failure;
use tamis_embed::family::share::Shared;
use tamis_embed::family::{FamilyProgram, Member};

/// How many bytes an instruction takes, and the place of a value.
const INSN_BYTES: usize = 8;
const PATCH_BYTES: usize = 4;

/// The most values of all variables, so that the number of a half is a byte.
const MAX_VALUES: usize = 127;

/// The filters of a family.
pub(super) struct Assembled {
    pub(super) archs: Vec<Arch>,
    pub(super) endian: Endian,
    pub(super) variables: Vec<Variable>,
    /// For each combination of the matrix what it has.
    pub(super) members: Vec<Option<Member>>,
    pub(super) ranges: Vec<Vec<(u64, u64)>>,
    pub(super) programs: Vec<FamilyProgram>,
    pub(super) shared: Shared,
    pub(super) sizes: Sizes,
}

/// How much room the filters take: instructions and the places of values, without the table that finds them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Each combination's by itself.
    pub(super) separate_bytes: usize,
    /// Equal ones once.
    pub(super) distinct_bytes: usize,
    /// As they are stored in source code.
    pub(super) shared_bytes: usize,
}

/// Puts the filters together.
pub(super) fn assemble(
    matrix: &Matrix,
    sources: &Sources,
    plan: &Plan,
    numbers: &[usize],
    filters: &[Compiled],
) -> Result<Assembled, Failure> {
    let refuse = |diagnostic| Failure::Diagnostics(vec![diagnostic], sources.clone());
    let first = filters
        .first()
        .expect("a matrix has a combination that is not excluded");
    let variables = variables(matrix, plan).map_err(|diagnostic| refuse(*diagnostic))?;
    let mut programs: Vec<FamilyProgram> = Vec::new();
    let mut known = HashMap::new();
    let mut ranges: Vec<Vec<(u64, u64)>> = Vec::new();
    let mut members = vec![None; matrix.combinations_count()];
    let mut separate_bytes = 0;
    for (member, number) in plan.members.iter().zip(numbers) {
        let program = program(&filters[*number], &member.policy.declared, &variables);
        separate_bytes += bytes(&program);
        let program = *known.entry(program).or_insert_with_key(|program| {
            programs.push(program.clone());
            programs.len() - 1
        });
        let own = own_ranges(&member.policy.declared, &variables);
        let range = ranges
            .iter()
            .position(|known| *known == own)
            .unwrap_or_else(|| {
                ranges.push(own);
                ranges.len() - 1
            });
        let place = place(matrix, &member.values);
        members[place] = Some(Member {
            program,
            ranges: range,
        });
    }
    let insns: Vec<_> = programs
        .iter()
        .map(|program| program.program.insns())
        .collect();
    let shared = Shared::of(&insns).ok_or_else(|| refuse(too_large(matrix, programs.len())))?;
    for (index, program) in programs.iter().enumerate() {
        let stored = shared.program(index);
        assert!(
            stored == program.program.insns(),
            "what is stored is what was proved"
        );
    }
    let patches: usize = programs
        .iter()
        .map(|program| program.patches.len() * PATCH_BYTES)
        .sum();
    let sizes = Sizes {
        separate_bytes,
        distinct_bytes: programs.iter().map(bytes).sum(),
        shared_bytes: shared.bytes() + patches,
    };
    Ok(Assembled {
        archs: plan.members[0].policy.arches(),
        endian: first.endian(),
        variables,
        members,
        ranges,
        programs,
        shared,
        sizes,
    })
}

/// The number of a combination.
pub(super) fn place(matrix: &Matrix, values: &[usize]) -> usize {
    let digits = matrix.options.iter().zip(values);
    digits.fold(0, |place, (option, value)| {
        place * option.values.len() + value
    })
}

fn bytes(program: &FamilyProgram) -> usize {
    program.program.len() * INSN_BYTES + program.patches.len() * PATCH_BYTES
}

/// The variables of all combinations, each with all values that it may have somewhere.
fn variables(matrix: &Matrix, plan: &Plan) -> Result<Vec<Variable>, Box<Diagnostic>> {
    let mut all: Vec<Variable> = Vec::new();
    let span = matrix.options[0].name.span;
    let mut owners: Vec<&str> = Vec::new();
    for member in &plan.members {
        let declared = &member.policy.declared;
        for variable in declared {
            let count =
                |list: &[Variable]| list.iter().filter(|own| own.name == variable.name).count();
            let found = all.iter().position(|own| own.title() == variable.title());
            let Some(index) = found.filter(|index| all[*index].width == variable.width) else {
                if found.is_some() || count(&all) > 0 && variable.element.is_none_or(|own| own == 0)
                {
                    return Err(Box::new(disagreement(
                        variable,
                        &member.title,
                        &owners,
                        &all,
                        span,
                    )));
                }
                all.push(variable.clone());
                owners.push(&member.title);
                continue;
            };
            if count(&all) != count(declared) {
                return Err(Box::new(disagreement(
                    variable,
                    &member.title,
                    &owners,
                    &all,
                    span,
                )));
            }
            let range = &mut all[index].range;
            *range = (range.0.min(variable.range.0), range.1.max(variable.range.1));
        }
    }
    if all.len() > MAX_VALUES {
        let diagnostic = Diagnostic::error(code::MATRIX_LIMIT, "too many variables")
            .label(span, "of the combinations of these options")
            .note(format!(
                "the combinations have {} values to bind; the limit is {MAX_VALUES}",
                all.len()
            ));
        return Err(Box::new(diagnostic));
    }
    Ok(all)
}

/// The error for a variable that differs between combinations.
fn disagreement(
    variable: &Variable,
    title: &str,
    owners: &[&str],
    all: &[Variable],
    span: tamis_diag::Span,
) -> Diagnostic {
    let other = all.iter().position(|own| own.name == variable.name);
    let other = other.map_or("", |index| owners[index]);
    Diagnostic::error(
        code::MATRIX_VARIABLES,
        format!(
            "the variable `{}` is not the same in all combinations",
            variable.name
        ),
    )
    .label(span, "of these options")
    .note(format!(
        "with {title} it has another width or number of values than with {other}"
    ))
    .help("use different names for different variables")
}

/// A filter with its patches as places among the variables of the family.
fn program(filter: &Compiled, declared: &[Variable], all: &[Variable]) -> FamilyProgram {
    let half = |word: Word| {
        let half = word.index() - Word::COUNT;
        let title = declared[half / 2].title();
        let place = all.iter().position(|own| own.title() == title);
        (place.expect("the variables of all have been collected") * 2 + half % 2) as u8
    };
    let template = filter.template();
    let patches = template
        .patches()
        .iter()
        .map(|patch| (patch.pc.0 as u16, half(patch.word)));
    FamilyProgram {
        program: template.unbound().clone(),
        patches: patches.collect(),
    }
}

/// The values that a combination's variables may be bound to, by variable of the family.
fn own_ranges(declared: &[Variable], all: &[Variable]) -> Vec<(u64, u64)> {
    let range = |variable: &Variable| {
        let own = declared.iter().find(|own| own.title() == variable.title());
        own.map_or((0, u64::MAX), |own| own.range)
    };
    all.iter().map(range).collect()
}

fn too_large(matrix: &Matrix, filters: usize) -> Diagnostic {
    Diagnostic::error(
        code::MATRIX_LIMIT,
        "the filters are too large to be stored together",
    )
    .label(
        matrix.options[0].name.span,
        "of the combinations of these options",
    )
    .note(format!("{filters} different filters"))
    .help("make a matrix for each value of one of the options")
}
