//! The settings of an option's value, and their combination.
//!
//! Files and rules of all values are concatenated, in the order of the options, and so are members of sets. Any other
//! setting exists once: that of a value overrides that of the matrix, and two options can't both set it.

use ::toml::de::DeValue;
use tamis_abi::KernelVersion;
use tamis_diag::{Diagnostic, Span, suggest};

use super::toml::{Entry, Toml, Value};
use super::{Matrix, Name, Placed};
use crate::code;
use crate::oci;
use crate::tamis::ast::{Statement, StatementKind};

/// The most constants, and the most sets, that one value defines.
const MAX_NAMES: usize = 256;

/// Changes to the policy and its compilation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The policy that replaces another.
    pub policy: Option<Name>,
    /// Files in the tamis language with rules before the policy.
    pub includes: Vec<Name>,
    /// Rules in the tamis language before the policy.
    pub rules: Vec<Name>,
    /// Definitions: the name, and the rest of a `let` statement in the tamis language.
    pub lets: Vec<(Name, String)>,
    /// Sets of calls, without `@`, and their members.
    pub sets: Vec<(Name, Vec<Name>)>,
    /// Capabilities of the container, for OCI profiles, by their full names.
    pub capabilities: Option<Placed<Vec<String>>>,
    /// The selected filter of a file with several.
    pub thread: Option<Name>,
    /// The oldest kernel that runs the filter.
    pub kernel: Option<Placed<KernelVersion>>,
    /// Profiles with counts of calls.
    pub profiles: Vec<Name>,
}

/// The keys of settings.
pub(super) const KEYS: [&str; 9] = [
    "policy", "include", "rules", "let", "set", "cap", "thread", "kernel", "profile",
];

impl Settings {
    /// Reads an entry of a table; returns it if it is none of [`KEYS`].
    pub(super) fn take<'v, 't>(
        &mut self,
        entry: Entry<'v, 't>,
        toml: &mut Toml<'_>,
    ) -> Option<Entry<'v, 't>> {
        let (key, value) = entry;
        match key.value.as_str() {
            "policy" => self.policy = toml.text(&key, value).filter(|path| is_path(path, toml)),
            "include" => self.includes = paths(&key, value, toml),
            "rules" => self.rules = rules(&key, value, toml),
            "let" => self.lets = definitions(&key, value, toml),
            "set" => self.sets = sets(&key, value, toml),
            "cap" => self.capabilities = capabilities(&key, value, toml),
            "thread" => self.thread = toml.text(&key, value),
            "kernel" => self.kernel = kernel(&key, value, toml),
            "profile" => self.profiles = paths(&key, value, toml),
            _ => return Some((key, value)),
        }
        None
    }

    /// The settings that can exist only once, with their places.
    pub(super) fn singles(&self) -> Vec<(String, Span)> {
        let definitions = self
            .lets
            .iter()
            .map(|(name, _)| (name.value.clone(), name.span));
        let fixed = [
            ("policy", self.policy.as_ref().map(|name| name.span)),
            ("cap", self.capabilities.as_ref().map(|caps| caps.span)),
            ("thread", self.thread.as_ref().map(|name| name.span)),
            ("kernel", self.kernel.as_ref().map(|kernel| kernel.span)),
        ];
        let fixed = fixed
            .into_iter()
            .filter_map(|(key, span)| Some((key.to_owned(), span?)));
        fixed.chain(definitions).collect()
    }

    /// The place of the first setting that requires a policy in the tamis language.
    pub fn text_span(&self) -> Option<Span> {
        let names = self.lets.iter().map(|(name, _)| name);
        let names = names.chain(self.sets.iter().map(|(name, _)| name));
        let all = names.chain(&self.includes).chain(&self.rules);
        all.map(|name| name.span).min()
    }

    /// Adds the settings of a value.
    fn add(&mut self, other: &Settings) {
        let own = other.clone();
        self.policy = own.policy.or(self.policy.take());
        self.capabilities = own.capabilities.or(self.capabilities.take());
        self.thread = own.thread.or(self.thread.take());
        self.kernel = own.kernel.or(self.kernel.take());
        self.includes.extend(own.includes);
        self.rules.extend(own.rules);
        if !own.profiles.is_empty() {
            self.profiles = own.profiles;
        }
        for (name, text) in own.lets {
            match self.lets.iter_mut().find(|(known, _)| *known == name) {
                Some((_, old)) => *old = text,
                None => self.lets.push((name, text)),
            }
        }
        for (name, members) in own.sets {
            match self.sets.iter_mut().find(|(known, _)| *known == name) {
                Some((_, old)) => old.extend(members),
                None => self.sets.push((name, members)),
            }
        }
    }
}

impl Matrix {
    /// All settings of a combination. It has every set for which some value has members.
    pub fn settings(&self, values: &[usize]) -> Settings {
        let mut all = self.base.clone();
        for (option, value) in self.options.iter().zip(values) {
            all.add(&option.values[*value].settings);
        }
        let every = self.options.iter().flat_map(|option| &option.values);
        for (name, _) in every.flat_map(|value| &value.settings.sets) {
            if !all.sets.iter().any(|(known, _)| known == name) {
                all.sets.push((name.clone(), Vec::new()));
            }
        }
        all
    }

    /// The place of the first setting in the matrix that requires a policy in the tamis language.
    pub fn text_span(&self) -> Option<Span> {
        let every = self.options.iter().flat_map(|option| &option.values);
        let settings = every.map(|value| &value.settings);
        let mut spans = [&self.base].into_iter().chain(settings);
        spans.find_map(Settings::text_span)
    }
}

/// Whether a path can be written between quotes; reports it if not.
fn is_path(path: &Name, toml: &mut Toml<'_>) -> bool {
    let is_bad = |c: char| c == '"' || c.is_control();
    let is_path = !path.value.is_empty() && !path.value.contains(is_bad);
    if !is_path {
        toml.sink.report(
            Diagnostic::error(code::MATRIX_VALUE, "not a file path")
                .label(path.span, "")
                .note("a path has neither quotes nor line breaks"),
        );
    }
    is_path
}

fn paths(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Vec<Name> {
    let mut paths = toml.texts(key, value);
    paths.retain(|path| is_path(path, toml));
    paths
}

fn rules(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Vec<Name> {
    let mut rules = toml.texts(key, value);
    rules.retain(|text| statements(&text.value, text.span, toml).is_some());
    rules
}

/// The statements of a text in the tamis language; reports the first mistake.
fn statements(text: &str, span: Span, toml: &mut Toml<'_>) -> Option<Vec<Statement>> {
    let mut sources = tamis_diag::Sources::new();
    let source = sources.add("matrix", text);
    let (policy, diagnostics) = crate::tamis::parse_syntax(&sources, source);
    let Some(mistake) = diagnostics.into_iter().find(Diagnostic::is_error) else {
        return Some(policy.statements);
    };
    let what = mistake
        .labels
        .first()
        .map(|label| (sources.snippet(label.span), &label.text));
    let diagnostic = Diagnostic::error(mistake.code, mistake.message.clone()).label(span, "");
    let diagnostic = match what {
        Some((snippet, text)) if !snippet.is_empty() && !text.is_empty() => {
            diagnostic.note(format!("at `{snippet}`: {text}"))
        }
        _ => diagnostic,
    };
    toml.sink.report(diagnostic);
    None
}

fn definitions(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Vec<(Name, String)> {
    let mut definitions = Vec::new();
    for (name, value) in toml.bounded_table(key, value, MAX_NAMES) {
        let Some(text) = definition(&name, value, toml) else {
            continue;
        };
        let is_variable = name.value.contains(|c: char| c.is_ascii_lowercase());
        let rest = match is_variable {
            true => format!(": {text}"),
            false => format!(" = {text}"),
        };
        let Some(statements) = statements(&format!("let {name}{rest}"), name.span, toml) else {
            continue;
        };
        match statements.as_slice() {
            [
                Statement {
                    kind: StatementKind::Let(..) | StatementKind::Variable(_),
                    ..
                },
            ] => {
                definitions.push((name, rest));
            }
            _ => toml.sink.report(
                Diagnostic::error(code::MATRIX_VALUE, format!("`{name}` is more than a value"))
                    .label(name.span, "")
                    .help("rules are given by `rules = \"…\"` or in a file"),
            ),
        }
    }
    definitions
}

/// A value in the syntax of the tamis language.
fn definition(name: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) if !text.contains(['\n', '\r', '#']) => Some(text.to_string()),
        DeValue::Integer(number) => {
            let prefix = match number.radix() {
                2 => "0b",
                8 => "0o",
                16 => "0x",
                _ => "",
            };
            Some(format!("{prefix}{}", number.as_str()))
        }
        DeValue::Array(list) => {
            let elements: Option<Vec<String>> = list
                .iter()
                .map(|element| definition(name, element, toml))
                .collect();
            Some(format!("{{{}}}", elements?.join(", ")))
        }
        _ => {
            toml.mistyped(
                name,
                value,
                "a number, a text on one line, or a list of them",
            );
            None
        }
    }
}

fn sets(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Vec<(Name, Vec<Name>)> {
    let mut sets = Vec::new();
    for (mut name, value) in toml.bounded_table(key, value, MAX_NAMES) {
        if let Some(bare) = name.value.strip_prefix('@') {
            name.value = bare.to_owned();
        }
        let members = toml.texts(&name, value);
        let listed: Vec<&str> = members.iter().map(|member| member.value.as_str()).collect();
        let text = format!("set @{name} = {{{}}}", listed.join(", "));
        if statements(&text, name.span, toml).is_some_and(|statements| statements.len() == 1) {
            sets.push((name, members));
        }
    }
    sets
}

fn capabilities(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Option<Placed<Vec<String>>> {
    let span = toml.span_of(value);
    let mut known = Vec::new();
    for name in toml.texts(key, value) {
        let Some(full) = oci::capability(&name.value) else {
            let message = format!("there is no capability `{name}`");
            let diagnostic = Diagnostic::error(code::MATRIX_VALUE, message).label(name.span, "");
            let upper = name.value.to_ascii_uppercase();
            let typed = upper.strip_prefix("CAP_").unwrap_or(&upper);
            let bare = oci::CAPABILITIES
                .into_iter()
                .filter_map(|known| known.strip_prefix("CAP_"));
            let near = suggest::nearest(typed, bare);
            toml.sink.report(match near {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => diagnostic.help("`man 7 capabilities` lists them"),
            });
            continue;
        };
        known.push(full.to_owned());
    }
    Some(Placed { value: known, span })
}

fn kernel(key: &Name, value: &Value<'_>, toml: &mut Toml<'_>) -> Option<Placed<KernelVersion>> {
    let text = toml.text(key, value)?;
    match text.value.parse() {
        Ok(version) => Some(Placed {
            value: version,
            span: text.span,
        }),
        Err(_) => {
            toml.sink.report(
                Diagnostic::error(code::MATRIX_VALUE, "not a kernel version")
                    .label(text.span, "")
                    .help("write `\"5.15\"`"),
            );
            None
        }
    }
}
