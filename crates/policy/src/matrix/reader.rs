//! From the tables of a matrix to the matrix, with all mistakes.

use std::collections::BTreeMap;

use ::toml::de::DeTable;
use tamis_abi::Arch;
use tamis_diag::{Diagnostic, SourceId, Span, suggest};

use super::settings::{KEYS, Settings};
use super::toml::{Entry, Toml, Value};
use super::{
    Effort, Exclusion, Goal, MAX_COMBINATIONS, Matrix, Name, OptionAxis, OptionValue, exclusion,
};
use crate::code;
use crate::sink::Sink;

/// The keys of a matrix, besides [`KEYS`].
const OWN_KEYS: [&str; 7] = [
    "name",
    "arch",
    "objective",
    "effort",
    "include-dir",
    "option",
    "exclude",
];

/// The longest name of an option or value.
const MAX_NAME_CHARS: usize = 64;

/// The most options.
const MAX_OPTIONS: usize = 64;

/// The matrix of a text, with mistakes left out; `None` if there is none.
pub(super) fn matrix(text: &str, source: SourceId, sink: &mut Sink) -> Option<Matrix> {
    let mut toml = Toml { source, sink };
    let tree = toml.parse(text);
    if toml.sink.has_failed() {
        return None;
    }
    let start = toml.span(&(0..0));
    let matrix = tables(&tree, start, &mut toml)?;
    check_settings(&matrix, start, &mut toml);
    if has_room(&matrix, &mut toml) {
        exclusion::check(&matrix, &mut toml);
    }
    Some(matrix)
}

/// Reads the tables.
fn tables(tree: &DeTable<'_>, start: Span, toml: &mut Toml<'_>) -> Option<Matrix> {
    let mut matrix = Matrix {
        source: toml.source,
        name: None,
        arches: Vec::new(),
        objective: None,
        effort: None,
        include_dirs: Vec::new(),
        base: Settings::default(),
        options: Vec::new(),
        exclusions: Vec::new(),
    };
    let mut exclude: Option<Entry<'_, '_>> = None;
    for entry in toml.entries(tree) {
        let Some((key, value)) = matrix.base.take(entry, toml) else {
            continue;
        };
        match key.value.as_str() {
            "name" => matrix.name = toml.text(&key, value),
            "arch" => matrix.arches = arches(&key, value, toml),
            "objective" => matrix.objective = objective(&key, value, toml),
            "effort" => matrix.effort = effort(&key, value, toml),
            "include-dir" => matrix.include_dirs = toml.texts(&key, value),
            "option" => matrix.options = options(&key, value, toml),
            // Options are known only when all of the text has been read.
            "exclude" => exclude = Some((key, value)),
            _ => {
                let known: Vec<&str> = OWN_KEYS.into_iter().chain(KEYS).collect();
                toml.unknown_key(&key, "a matrix", &known);
            }
        }
    }
    if matrix.options.is_empty() {
        if !toml.sink.has_failed() {
            toml.sink.report(
                Diagnostic::error(code::MATRIX_MISSING, "the matrix has no options")
                    .label(start, "")
                    .help(
                        "write `[option.NAME]` and, below it, a line for each value: `none = {}`",
                    ),
            );
        }
        return None;
    }
    if let Some((key, value)) = exclude {
        let exclusions: Vec<Exclusion> = exclusion::exclusions(&key, value, &matrix.options, toml);
        matrix.exclusions = exclusions;
    }
    Some(matrix)
}

fn arches(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Vec<Arch> {
    let mut arches = Vec::new();
    for name in toml.texts(key, value) {
        let Some(arch) = Arch::from_name(&name.value) else {
            let message = format!("there is no architecture `{name}`");
            let diagnostic = Diagnostic::error(code::MATRIX_VALUE, message).label(name.span, "");
            let known =
                Arch::all().flat_map(|arch| arch.aliases().iter().copied().chain([arch.name()]));
            toml.sink
                .report(match suggest::nearest(&name.value, known) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help("`tamis tables arches` lists them"),
                });
            continue;
        };
        if !arches.contains(&arch) {
            arches.push(arch);
        }
    }
    arches
}

fn objective(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Option<Goal> {
    let text = toml.text(key, value)?;
    match text.value.as_str() {
        "steps" => Some(Goal::Steps),
        "ns" => Some(Goal::Ns),
        "length" => Some(Goal::Length),
        _ => {
            let message = format!("there is no objective `{text}`");
            let diagnostic = Diagnostic::error(code::MATRIX_VALUE, message).label(text.span, "");
            toml.sink
                .report(diagnostic.help("there are `steps`, `ns` and `length`"));
            None
        }
    }
}

fn effort(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Option<Effort> {
    let text = toml.text(key, value)?;
    match text.value.as_str() {
        "full" => Some(Effort::Full),
        "quick" => Some(Effort::Quick),
        _ => {
            let message = format!("there is no effort `{text}`");
            let diagnostic = Diagnostic::error(code::MATRIX_VALUE, message).label(text.span, "");
            toml.sink
                .report(diagnostic.help("there are `full` and `quick`"));
            None
        }
    }
}

fn options(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Vec<OptionAxis> {
    let mut options: Vec<OptionAxis> = Vec::new();
    for (name, value) in toml.bounded_table(key, value, MAX_OPTIONS) {
        if !is_new_name(&name, options.iter().map(|option| &option.name), toml) {
            continue;
        }
        if name.value.starts_with(|c: char| c.is_ascii_digit()) {
            toml.sink.report(
                Diagnostic::error(
                    code::MATRIX_NAME,
                    "the name of an option begins with a letter",
                )
                .label(name.span, ""),
            );
            continue;
        }
        let values = option_values(&name, value, toml);
        match values.as_slice() {
            [] => {
                if !toml.sink.has_failed() {
                    toml.sink.report(
                        Diagnostic::error(
                            code::MATRIX_EMPTY,
                            format!("the option `{name}` has no values"),
                        )
                        .label(name.span, "")
                        .help("give it a line for each value: `none = {}`"),
                    );
                }
                continue;
            }
            [only] => toml.sink.report(
                Diagnostic::warning(
                    code::MATRIX_EMPTY,
                    format!("the option `{name}` has only one value"),
                )
                .label(only.name.span, "")
                .help("add another value, or move its settings to the top"),
            ),
            _ => {}
        }
        options.push(OptionAxis { name, values });
    }
    options
}

fn option_values(option: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Vec<OptionValue> {
    let mut values: Vec<OptionValue> = Vec::new();
    for (name, value) in toml.bounded_table(option, value, MAX_COMBINATIONS) {
        if !is_new_name(&name, values.iter().map(|value| &value.name), toml) {
            continue;
        }
        let mut settings = Settings::default();
        for entry in toml.table(&name, value) {
            if let Some((key, _)) = settings.take(entry, toml) {
                toml.unknown_key(&key, "a value of an option", &KEYS);
            }
        }
        let same = values.iter().find(|value| value.settings == settings);
        if let (Some(same), false) = (same, toml.sink.has_failed()) {
            let message = format!("`{}` and `{name}` are the same", same.name);
            toml.sink.report(
                Diagnostic::warning(code::MATRIX_SAME, message)
                    .label(name.span, "this value")
                    .label(same.name.span, "both have the same settings"),
            );
        }
        values.push(OptionValue { name, settings });
    }
    values
}

/// Whether an option or value can have a name beside these; reports a duplicate.
fn is_new_name<'n>(
    name: &Name,
    mut others: impl Iterator<Item = &'n Name>,
    toml: &mut Toml<'_>,
) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let is_outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let text = &name.value;
    let is_name = text.starts_with(is_outer)
        && text.ends_with(is_outer)
        && text.chars().all(is_inner)
        && !["--", "__", "-_", "_-"]
            .iter()
            .any(|pair| text.contains(pair))
        && text.len() <= MAX_NAME_CHARS;
    if !is_name {
        toml.sink.report(
            Diagnostic::error(code::MATRIX_NAME, format!("`{name}` is not a valid name"))
                .label(name.span, "")
                .note("names consist of lower-case letters, digits, and single `-` or `_` between them"),
        );
        return false;
    }
    let plain = |text: &str| text.replace('-', "_");
    let Some(same) = others.find(|other| plain(&other.value) == plain(text)) else {
        return true;
    };
    let message = format!("`{same}` and `{name}` have the same identifier in generated code");
    toml.sink.report(
        Diagnostic::error(code::MATRIX_NAME, message)
            .label(name.span, "choose another name")
            .label(same.span, "first used here"),
    );
    false
}

/// Whether the number of combinations is within the limit; reports an excess.
fn has_room(matrix: &Matrix, toml: &mut Toml<'_>) -> bool {
    let counts = matrix.options.iter().map(|option| option.values.len());
    let count = counts.fold(1_usize, usize::saturating_mul);
    if count <= MAX_COMBINATIONS {
        return true;
    }
    let counts: Vec<String> = matrix
        .options
        .iter()
        .map(|option| format!("{} ({})", option.name, option.values.len()))
        .collect();
    toml.sink.report(
        Diagnostic::error(code::MATRIX_LIMIT, "too many combinations")
            .label(matrix.options[0].name.span, "of this option with the others")
            .note(format!(
                "there are {count}, of {}; the limit is {MAX_COMBINATIONS}, including excluded ones",
                counts.join(", ")
            ))
            .help("make a matrix for each value of one of the options"),
    );
    false
}

/// Reports settings that are repeated, or not set by all values.
fn check_settings(matrix: &Matrix, start: Span, toml: &mut Toml<'_>) {
    let mut owners: BTreeMap<String, (&OptionAxis, Span)> = BTreeMap::new();
    for option in &matrix.options {
        for value in &option.values {
            for (what, span) in value.settings.singles() {
                match owners.get(&what) {
                    None => drop(owners.insert(what, (option, span))),
                    Some((owner, _)) if owner.name == option.name => {}
                    Some((owner, earlier)) => toml.sink.report(
                        Diagnostic::error(
                            code::MATRIX_TWICE,
                            format!("`{}` and `{}` both set `{what}`", owner.name, option.name),
                        )
                        .label(span, "set again")
                        .label(*earlier, "first set here")
                        .note("two options set this key"),
                    ),
                }
            }
        }
    }
    let base = matrix.base.singles();
    for (what, (option, span)) in owners {
        let sets = |value: &&OptionValue| {
            let mut singles = value.settings.singles().into_iter();
            !singles.any(|(own, _)| own == what)
        };
        let needs_value = what == "policy" || !["cap", "thread", "kernel"].contains(&what.as_str());
        let Some(value) = option.values.iter().find(sets) else {
            continue;
        };
        if needs_value && !base.iter().any(|(own, _)| *own == what) {
            let table = if what == "policy" {
                "`policy = …`"
            } else {
                "`[let]`"
            };
            toml.sink.report(
                Diagnostic::error(
                    code::MATRIX_UNSET,
                    format!("`{what}` isn't set by `{}={}`", option.name, value.name),
                )
                .label(value.name.span, "this value does not set it")
                .label(span, "set here")
                .help(format!(
                    "set a default in {table} at the top, and override it here"
                )),
            );
        }
    }
    let every = matrix.options.iter().flat_map(|option| &option.values);
    let sets_policy = every.clone().any(|value| value.settings.policy.is_some());
    if matrix.base.policy.is_none() && !sets_policy {
        toml.sink.report(
            Diagnostic::error(code::MATRIX_MISSING, "the matrix names no policy")
                .label(start, "")
                .help("write `policy = \"FILE\"` at the top"),
        );
    }
}
