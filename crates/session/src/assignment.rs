//! Options of front ends by name: from the text `NAME=VALUE` to the typed options.
//!
//! An assignment is for one input, whose language must have the option, or for several inputs, at least one of which
//! must be in a language with the option.

use std::path::Path;

use crate::code;
use crate::path_text::PathText;
use tamis_diag::words::joined;
use tamis_diag::{Diagnostic, Sources, suggest};
use tamis_policy::front_end::{FrontEnd, ParseOptions};
use tamis_policy::loader::Loader;
use tamis_policy::option::{self, LanguageOption, OptionError, OptionForm};

use crate::error::Error;
use crate::kind::InputKind;

/// A name and the text of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the option.
    pub name: String,
    /// The value; `None` for a switch without one.
    pub value: Option<String>,
}

/// Options of languages, given by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignments {
    /// The options, in the given order.
    pub list: Vec<Assignment>,
    /// Whether they are for several inputs: each input then uses the options of its language, and
    /// [`check_kinds`](Self::check_kinds) rejects unused ones. Otherwise the language of the input must have all of
    /// them.
    pub is_shared: bool,
}

impl Assignment {
    /// An option with a value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Assignment {
        Assignment {
            name: name.into(),
            value: Some(value.into()),
        }
    }

    /// Reads `NAME=VALUE`, or `NAME` for a switch.
    ///
    /// ```
    /// use tamis_session::Assignment;
    /// assert_eq!(Assignment::parse("dialect=c"), Assignment::new("dialect", "c"));
    /// assert_eq!(Assignment::parse("denylist").value, None);
    /// ```
    pub fn parse(text: &str) -> Assignment {
        match text.split_once('=') {
            Some((name, value)) => Assignment::new(name.trim(), value),
            None => Assignment {
                name: text.trim().to_owned(),
                value: None,
            },
        }
    }

    /// Rejects a name that no language has.
    pub(crate) fn check_name(&self) -> Result<(), Error> {
        match option::from_name(&self.name) {
            Some(_) => Ok(()),
            None => Err(error(unknown(&self.name))),
        }
    }

    /// Resolves a value that is the path of a file relative to a folder.
    #[must_use]
    pub fn relative_to(self, folder: &Path) -> Assignment {
        let declared = option::from_name(&self.name);
        let is_file = declared.is_some_and(|own| matches!(own.form, OptionForm::File { .. }));
        let value = self.value.map(|value| match is_file {
            true => folder.join(value).text(),
            false => value,
        });
        Assignment { value, ..self }
    }
}

impl Assignments {
    /// This list, with all options whose names occur in `list` replaced by those.
    #[must_use]
    pub fn replaced_by(&self, list: &[Assignment]) -> Assignments {
        let is_kept = |old: &&Assignment| !list.iter().any(|new| new.name == old.name);
        let kept = self.list.iter().filter(is_kept);
        Assignments {
            list: kept.chain(list).cloned().collect(),
            is_shared: self.is_shared,
        }
    }

    /// The options for the front end of an input: the typed ones, overridden by the named ones.
    ///
    /// # Errors
    /// If a text is not a value of its option, or an option with one value is given twice.
    pub(crate) fn apply(
        &self,
        front_end: &'static FrontEnd,
        options: &ParseOptions,
        loader: &mut dyn Loader,
    ) -> Result<ParseOptions, Error> {
        let mut options = options.clone();
        for option in front_end.options {
            let named = self.list.iter().filter(|own| own.name == option.name);
            let values: Vec<Option<&str>> = named.map(|own| own.value.as_deref()).collect();
            if values.len() > 1 && !option.is_repeatable() {
                return Err(error(given_twice(option)));
            }
            if values.is_empty() {
                continue;
            }
            // The texts of a list form one value.
            let texts: Option<Vec<&str>> = values.into_iter().collect();
            let text = texts.map(|texts| {
                let texts = texts.into_iter().filter(|text| !text.is_empty());
                texts.collect::<Vec<&str>>().join(",")
            });
            let set = option.set(&mut options, text.as_deref(), loader);
            set.map_err(|mistake| wrong_value(option, text.as_deref(), mistake))?;
        }
        Ok(options)
    }

    /// Rejects options that the language of the only input lacks or, for several inputs, that no language has.
    pub(crate) fn check_input(&self, input: &str, kind: InputKind) -> Result<(), Error> {
        for option in &self.list {
            if self.is_shared {
                option.check_name()?;
            } else if kind.option(&option.name).is_none() {
                return Err(error(unfit(&option.name, input, kind)));
            }
        }
        Ok(())
    }

    /// Rejects options for several inputs that none of them uses.
    ///
    /// # Errors
    /// If there is an unused option.
    pub fn check_kinds(&self, kinds: impl Iterator<Item = InputKind> + Clone) -> Result<(), Error> {
        for Assignment { name, .. } in &self.list {
            if !kinds.clone().any(|kind| kind.option(name).is_some()) {
                return Err(error(unused(name, kinds)));
            }
        }
        Ok(())
    }
}

impl InputKind {
    /// The option with this name for inputs of this kind.
    pub fn option(self, name: &str) -> Option<&'static LanguageOption> {
        match self {
            InputKind::Policy(front_end) => front_end.option(name),
            _ => None,
        }
    }

    /// The available options, as a sentence.
    fn options_note(self) -> String {
        let names: Vec<String> = match self {
            InputKind::Policy(front_end) => {
                let options = front_end.options.iter();
                options.map(|own| format!("`{}`", own.name)).collect()
            }
            _ => Vec::new(),
        };
        let (plural, names) = (self.plural(), joined(&names, "and"));
        match names.is_empty() {
            true => format!("{plural} have no options"),
            false => format!("{plural} have {names}"),
        }
    }
}

fn error(diagnostic: Diagnostic) -> Error {
    Error::diagnostic(diagnostic, Sources::new())
}

/// The error for an option that the language of the input lacks.
fn unfit(name: &str, input: &str, kind: InputKind) -> Diagnostic {
    let message = format!("{} have no option `{name}`", kind.plural());
    let diagnostic = Diagnostic::error(code::UNKNOWN_OPTION, message)
        .note(format!("{input} is {}", kind.title()))
        .note(kind.options_note());
    let Some(owner) = option::from_name(name) else {
        let own = match kind {
            InputKind::Policy(front_end) => front_end.options,
            _ => &[],
        };
        return suggested(diagnostic, name, own.iter().map(|option| option.name));
    };
    with_owners(diagnostic, owner)
}

/// The error for an option that the language of no input has.
fn unused(name: &str, kinds: impl Iterator<Item = InputKind> + Clone) -> Diagnostic {
    let message = format!("no input is in a language with the option `{name}`");
    let mut diagnostic = Diagnostic::error(code::UNKNOWN_OPTION, message);
    let mut noted: Vec<InputKind> = Vec::new();
    for kind in kinds {
        if !noted.contains(&kind) {
            diagnostic = diagnostic.note(kind.options_note());
            noted.push(kind);
        }
    }
    match option::from_name(name) {
        Some(owner) => with_owners(diagnostic, owner),
        None => unknown(name),
    }
}

/// The error for a name that no language has.
fn unknown(name: &str) -> Diagnostic {
    let message = format!("no language has an option `{name}`");
    let diagnostic = Diagnostic::error(code::UNKNOWN_OPTION, message);
    suggested(diagnostic, name, [].into_iter())
}

/// Command-line options that apply to every language.
const OF_ALL_LANGUAGES: [&str; 5] = ["arch", "from", "include-dir", "kernel", "strict"];

/// Suggests an option with a similar name, of the input's language if possible.
fn suggested(
    diagnostic: Diagnostic,
    name: &str,
    own: impl Iterator<Item = &'static str>,
) -> Diagnostic {
    if OF_ALL_LANGUAGES.contains(&name) {
        return diagnostic.help(format!("it is no option of one language: `--{name}`"));
    }
    let all = || option::all().into_iter().map(|option| option.name);
    match suggest::nearest(name, own).or_else(|| suggest::nearest(name, all())) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help("`tamis tables options` lists the options of all languages"),
    }
}

/// Adds the languages that have an option to the diagnostic.
fn with_owners(diagnostic: Diagnostic, option: &LanguageOption) -> Diagnostic {
    let plurals: Vec<String> = option
        .languages()
        .map(|own| own.plural.to_owned())
        .collect();
    let from: Vec<String> = option
        .languages()
        .map(|own| format!("`--from {}`", own.name))
        .collect();
    let name = option.name;
    diagnostic
        .note(format!(
            "`{name}` is an option of {}",
            joined(&plurals, "and")
        ))
        .help(format!(
            "omit `{name}`, or use {} if the input is one",
            joined(&from, "or")
        ))
}

fn given_twice(option: &LanguageOption) -> Diagnostic {
    let message = format!("the option `{}` is given twice", option.name);
    Diagnostic::error(code::OPTION_VALUE, message).help("omit one of them")
}

fn wrong_value(option: &LanguageOption, value: Option<&str>, mistake: OptionError) -> Error {
    let name = option.name;
    let message = match (&mistake, value) {
        (OptionError::File(reason), Some(path)) => {
            return Error::input(format!("cannot read {path}: {reason}"));
        }
        (OptionError::Value(_), Some(value)) => {
            format!("`{value}` is not a value of the option `{name}`")
        }
        _ => format!("the option `{name}` has no value"),
    };
    let diagnostic = Diagnostic::error(code::OPTION_VALUE, message);
    let form = option.value_form();
    error(match mistake {
        OptionError::Value(reason) => diagnostic.note(reason),
        _ => diagnostic.help(format!("write `{name}={form}`")),
    })
}

#[cfg(test)]
mod tests;
