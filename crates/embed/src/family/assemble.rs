//! The family of a matrix: the filters of all combinations, without duplicates, with one list of variables, stored
//! together.

use std::collections::HashMap;

use tamis_diag::Diagnostic;
use tamis_policy::code;
use tamis_policy::matrix::Matrix;
use tamis_rules::Variable;
use tamis_session::Error;
use tamis_session::matrix::{CompiledPlan, LoadedMatrix, Plan};

use super::share::Shared;
use super::{Family, FamilyProgram, Member};
use crate::{Language, name};

/// The most values of all variables; a patch stores the index of a half in one byte.
const MAX_VALUES: usize = 127;

/// Makes a family of the filters of a plan.
///
/// # Errors
/// If a variable differs between combinations, or the filters are too large to be stored together.
///
/// # Panics
/// If the plan has no members, or a stored filter differs from the compiled one.
pub fn assemble(
    loaded: &LoadedMatrix,
    plan: &Plan,
    compiled: &CompiledPlan,
) -> Result<Family, Error> {
    let matrix = &loaded.matrix;
    let refuse = |diagnostic| Error::Diagnostics(vec![diagnostic], loaded.sources.clone());
    let filters = &compiled.filters;
    let first = filters
        .first()
        .expect("a matrix has a combination that is not excluded");
    let variables = variables(matrix, plan).map_err(|diagnostic| refuse(*diagnostic))?;
    let mut programs: Vec<FamilyProgram> = Vec::new();
    let mut known = HashMap::new();
    let mut ranges: Vec<Vec<(u64, u64)>> = Vec::new();
    let mut members = vec![None; matrix.combinations_count()];
    for (member, number) in plan.members.iter().zip(&compiled.numbers) {
        let program = FamilyProgram::new(&filters[*number], &member.policy.declared, &variables);
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
        members[matrix.index_of(&member.values)] = Some(Member {
            program,
            ranges: range,
        });
    }
    let insns: Vec<_> = programs
        .iter()
        .map(|program| program.program.insns())
        .collect();
    let shared =
        Shared::from_programs(&insns).ok_or_else(|| refuse(too_large(matrix, programs.len())))?;
    for (index, program) in programs.iter().enumerate() {
        let stored = shared.program(index);
        assert!(
            stored == program.program.insns(),
            "what is stored is what was proved"
        );
    }
    Ok(Family {
        input: loaded.name.clone(),
        archs: plan.members[0].policy.arches(),
        endian: first.endian(),
        options: matrix.options.clone(),
        variables,
        members,
        ranges,
        programs,
        shared: Some(shared),
    })
}

impl Family {
    /// Warnings about options without an effect.
    pub fn idle_options(&self, matrix: &Matrix) -> Vec<Diagnostic> {
        let idle = matrix.options.iter().enumerate();
        let idle = idle.filter(|(axis, _)| self.is_idle(matrix, *axis));
        idle.map(|(_, option)| {
            let message = format!("the option `{}` has no effect", option.name);
            Diagnostic::warning(code::MATRIX_IDLE, message)
                .label(
                    option.name.span,
                    "the filters are the same for all of its values",
                )
                .help("check that the policy uses what the option sets, or delete the option")
        })
        .collect()
    }

    /// Whether combinations that differ only in this option have equal filters, and there are at least two.
    fn is_idle(&self, matrix: &Matrix, axis: usize) -> bool {
        let mut compared = 0;
        let differs = matrix.combinations().any(|mut values| {
            let own = self.member(matrix, &values);
            let value = std::mem::replace(&mut values[axis], 0);
            (0..value).any(|other| {
                values[axis] = other;
                let other = self.member(matrix, &values);
                let both = own.is_some() && other.is_some();
                compared += usize::from(both);
                both && own != other
            })
        });
        compared > 0 && !differs
    }
}

/// The prefix of the names in source code: the given name, else that of the matrix, else that of its file.
///
/// # Errors
/// If the name is not valid in the language.
pub fn identifier(
    language: &Language,
    loaded: &LoadedMatrix,
    given: Option<&str>,
) -> Result<String, Error> {
    let of_matrix = loaded.matrix.name.as_ref();
    if let (None, Some(name), Some(_)) = (given, of_matrix, language.named) {
        return name::identifier(language, Some(&name.value), &loaded.name).map_err(|_| {
            let message = format!(
                "`{name}` is not a valid name in the language of `--emit {}`",
                language.name
            );
            let near = name::nearest(language, &name.value);
            let diagnostic = Diagnostic::error(code::MATRIX_NAME, message)
                .label(name.span, "it is a reserved word, or not an identifier")
                .help(format!("choose another, or use `--name`: `{near}`"));
            Error::Diagnostics(vec![diagnostic], loaded.sources.clone())
        });
    }
    name::identifier(language, given, &loaded.name)
        .map_err(|error| Error::usage(error.to_string(), error.help()))
}

/// The variables of all combinations, each with a range that includes its ranges in all of them.
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
            let same = found.filter(|index| all[*index].width == variable.width);
            let agrees = match same {
                Some(_) => count(&all) == count(declared),
                None => {
                    let continues_set = variable.element.is_some_and(|own| own != 0);
                    found.is_none() && (count(&all) == 0 || continues_set)
                }
            };
            if !agrees {
                let error = disagreement(variable, &member.title, &owners, &all, span);
                return Err(Box::new(error));
            }
            let Some(index) = same else {
                all.push(variable.clone());
                owners.push(&member.title);
                continue;
            };
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

/// The permitted values of a combination's variables, by variable of the family.
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
