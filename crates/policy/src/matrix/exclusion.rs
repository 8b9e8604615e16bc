//! Combinations without a filter.
//!
//! An `[[exclude]]` lists options and values; combinations with all of them are excluded. An exclusion without effect,
//! or a value without any remaining combination, is a probable mistake.

use tamis_diag::{Diagnostic, suggest};

use super::toml::{Toml, Value};
use super::{Exclusion, MAX_COMBINATIONS, Matrix, Name, OptionAxis};
use crate::code;
use ::toml::de::DeValue;

/// Reads the `[[exclude]]` tables.
pub(super) fn exclusions(
    key: &Name,
    value: &Value<'_>,
    options: &[OptionAxis],
    toml: &mut Toml<'_>,
) -> Vec<Exclusion> {
    let DeValue::Array(list) = value.get_ref() else {
        toml.mistyped(key, value, "a list of tables: write `[[exclude]]`");
        return Vec::new();
    };
    if list.len() > MAX_COMBINATIONS {
        toml.sink.report(
            Diagnostic::error(code::MATRIX_LIMIT, "too many exclusions")
                .label(key.span, "")
                .note(format!(
                    "there are {}, and {MAX_COMBINATIONS} are possible",
                    list.len()
                )),
        );
        return Vec::new();
    }
    let exclusions = list
        .iter()
        .filter_map(|table| exclusion(key, table, options, toml));
    exclusions.collect()
}

fn exclusion(
    key: &Name,
    table: &Value<'_>,
    options: &[OptionAxis],
    toml: &mut Toml<'_>,
) -> Option<Exclusion> {
    let mut values = vec![Vec::new(); options.len()];
    let mut span = None;
    let mut is_right = true;
    for (name, value) in toml.table(key, table) {
        let place = name.span.to(toml.span_of(value));
        span = Some(span.map_or(place, |span: tamis_diag::Span| span.to(place)));
        let Some(at) = options.iter().position(|option| option.name == name) else {
            let names = options.iter().map(|option| option.name.value.as_str());
            toml.sink.report(unknown(&name, "option", "", names));
            is_right = false;
            continue;
        };
        for word in words(&name, value, toml) {
            let known = &options[at].values;
            match known.iter().position(|value| value.name == word) {
                Some(value) => values[at].push(value),
                None => {
                    let names = known.iter().map(|value| value.name.value.as_str());
                    toml.sink
                        .report(unknown(&word, "value", &format!(" of `{name}`"), names));
                    is_right = false;
                }
            }
        }
        is_right &= !values[at].is_empty();
    }
    let Some(span) = span else {
        toml.sink.report(
            Diagnostic::error(code::MATRIX_EXCLUSION, "an exclusion without options")
                .label(toml.span_of(table), "this would exclude all combinations"),
        );
        return None;
    };
    is_right.then_some(Exclusion { span, values })
}

/// Names of values: texts, or `true` and `false` of a switch.
fn words(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Vec<Name> {
    let list = match value.get_ref() {
        DeValue::Array(list) => list.iter().collect(),
        _ => vec![value],
    };
    let mut words = Vec::new();
    for element in list {
        let span = toml.span_of(element);
        match element.get_ref() {
            DeValue::Boolean(is_on) => words.push(Name {
                value: is_on.to_string(),
                span,
            }),
            DeValue::Integer(number) => words.push(Name {
                value: number.as_str().to_owned(),
                span,
            }),
            _ => words.extend(toml.text(key, element)),
        }
    }
    words
}

fn unknown<'n>(
    name: &Name,
    what: &str,
    whose: &str,
    known: impl Iterator<Item = &'n str> + Clone,
) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        code::MATRIX_EXCLUSION,
        format!("there is no {what} `{name}`{whose}"),
    )
    .label(name.span, "");
    match suggest::nearest(&name.value, known.clone()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help(format!(
            "there are {}",
            known.collect::<Vec<_>>().join(", ")
        )),
    }
}

/// Reports exclusions without effect and values without any combination.
pub(super) fn check(matrix: &Matrix, toml: &mut Toml<'_>) {
    let mut is_used: Vec<Vec<bool>> = matrix
        .options
        .iter()
        .map(|option| vec![false; option.values.len()])
        .collect();
    let mut excludes = vec![false; matrix.exclusions.len()];
    for values in matrix.combinations() {
        match matrix
            .exclusions
            .iter()
            .position(|exclusion| exclusion.matches(&values))
        {
            Some(first) => excludes[first] = true,
            None => {
                for (used, value) in is_used.iter_mut().zip(&values) {
                    used[*value] = true;
                }
            }
        }
    }
    if is_used.iter().flatten().all(|used| !used) {
        let diagnostic = Diagnostic::error(code::MATRIX_EXCLUSION, "all combinations are excluded");
        toml.sink.report(match matrix.exclusions.last() {
            Some(last) => diagnostic.label(last.span, "the last ones here"),
            None => diagnostic,
        });
        return;
    }
    for (exclusion, _) in matrix
        .exclusions
        .iter()
        .zip(&excludes)
        .filter(|(_, used)| !**used)
    {
        toml.sink.report(
            Diagnostic::warning(code::MATRIX_EXCLUSION, "this exclusion has no effect")
                .label(exclusion.span, "")
                .note("other exclusions already exclude these combinations"),
        );
    }
    for (option, used) in matrix.options.iter().zip(&is_used) {
        for (value, _) in option.values.iter().zip(used).filter(|(_, used)| !**used) {
            let name = &value.name;
            let message = format!(
                "all combinations with `{}={name}` are excluded",
                option.name
            );
            toml.sink.report(
                Diagnostic::warning(code::MATRIX_EXCLUSION, message)
                    .label(name.span, "no filter is made for this value"),
            );
        }
    }
}
