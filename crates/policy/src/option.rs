//! Declarations of a language's options, as data beside the parser.
//!
//! A caller with typed options sets a member of [`ParseOptions`]. A caller with names and texts, such as a command
//! line, finds the declaration by [`FrontEnd::option`](crate::front_end::FrontEnd::option) and sets the same member by
//! [`LanguageOption::set`], the only conversion from texts to values.

use crate::front_end::{self, FrontEnd, ParseOptions};
use crate::loader::{Loaded, Loader};

/// An option of one or more languages. Two options never have the same name.
#[derive(Debug)]
pub struct LanguageOption {
    /// The name: lower case, words separated by `-`.
    pub name: &'static str,
    /// The effect, as a sentence without a full stop.
    pub help: &'static str,
    /// The default.
    pub default: &'static str,
    /// The form of the value, with the function that sets it.
    pub form: OptionForm,
}

/// The form of an option's value, with the function that sets it.
#[derive(Debug)]
pub enum OptionForm {
    /// A switch: on if it has no value, or `true` or `false`.
    Flag(fn(&mut ParseOptions, bool)),
    /// One of a few values.
    Choice(&'static [OptionChoice]),
    /// A text.
    Text {
        /// The placeholder in the help, such as `NAME`.
        placeholder: &'static str,
        /// Sets the value; the error is the reason why the text is invalid.
        set: fn(&mut ParseOptions, &str) -> Result<(), String>,
    },
    /// Texts, separated by commas or in repeated options; an empty text is an empty list.
    List {
        /// The placeholder of one text in the help.
        placeholder: &'static str,
        /// Adds one value, or empties the list before the first; the error is the reason why the text is invalid.
        add: fn(&mut ParseOptions, Option<&str>) -> Result<(), String>,
    },
    /// The path of a file, which the caller's loader reads.
    File {
        /// The placeholder of the path in the help.
        placeholder: &'static str,
        /// Sets the content.
        set: fn(&mut ParseOptions, Loaded),
    },
}

/// One of the values of an option.
#[derive(Debug)]
pub struct OptionChoice {
    /// The name.
    pub name: &'static str,
    /// The meaning, for the help.
    pub help: &'static str,
    /// Sets this value.
    pub set: fn(&mut ParseOptions),
}

/// The reason why an option can't have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// The value is missing.
    Missing,
    /// The text is invalid, for this reason.
    Value(String),
    /// The file can't be read, for this reason.
    File(String),
}

impl LanguageOption {
    /// The form of the value in the help: `FILE`, `c|python`; empty for a switch.
    ///
    /// ```
    /// use tamis_policy::front_end::ALL;
    /// let forms = |language| {
    ///     let language = ALL.into_iter().find(|own| own.name == language).expect("it exists");
    ///     language.options.iter().map(|option| option.value_form()).collect::<Vec<_>>()
    /// };
    /// assert_eq!(forms("firecracker"), ["NAME"]);
    /// assert_eq!(forms("minijail")[0], "c|python");
    /// ```
    pub fn value_form(&self) -> String {
        match &self.form {
            OptionForm::Flag(_) => String::new(),
            OptionForm::Choice(choices) => names(choices).collect::<Vec<_>>().join("|"),
            OptionForm::Text { placeholder, .. } | OptionForm::File { placeholder, .. } => {
                (*placeholder).to_owned()
            }
            OptionForm::List { placeholder, .. } => format!("{placeholder},…"),
        }
    }

    /// Whether the option may be repeated.
    pub fn is_repeatable(&self) -> bool {
        matches!(self.form, OptionForm::List { .. })
    }

    /// The languages with the option.
    pub fn languages(&self) -> impl Iterator<Item = &'static FrontEnd> + '_ {
        let has_it = |front_end: &&FrontEnd| front_end.option(self.name).is_some();
        front_end::ALL.into_iter().filter(has_it)
    }

    /// Sets the value from a text, which replaces the previous value or all values of a list; `None` means an option
    /// without a value.
    ///
    /// ```
    /// use tamis_abi::Arch;
    /// use tamis_policy::front_end::{ALL, ParseOptions};
    /// use tamis_policy::{loader::NoIncludes, minijail, option};
    ///
    /// let mut options = ParseOptions::new(Arch::X86_64);
    /// let dialect = option::from_name("dialect").expect("minijail has it");
    /// dialect.set(&mut options, Some("c"), &mut NoIncludes).expect("a value");
    /// assert_eq!(options.minijail.dialect, Some(minijail::Dialect::C));
    /// assert!(dialect.set(&mut options, Some("d"), &mut NoIncludes).is_err());
    /// ```
    ///
    /// # Errors
    /// If the text is no value of the option, or its file can't be read.
    pub fn set(
        &self,
        options: &mut ParseOptions,
        value: Option<&str>,
        loader: &mut dyn Loader,
    ) -> Result<(), OptionError> {
        match (&self.form, value) {
            (OptionForm::Flag(set), None | Some("true")) => set(options, true),
            (OptionForm::Flag(set), Some("false")) => set(options, false),
            (OptionForm::Flag(_), Some(_)) => {
                let reason = "a switch is `true` or `false`".to_owned();
                return Err(OptionError::Value(reason));
            }
            (_, None) => return Err(OptionError::Missing),
            (OptionForm::Choice(choices), Some(text)) => {
                let found = choices.iter().find(|choice| choice.name == text);
                let known = || {
                    format!(
                        "there are {}",
                        names(choices).collect::<Vec<_>>().join(", ")
                    )
                };
                let choice = found.ok_or_else(|| OptionError::Value(known()))?;
                (choice.set)(options);
            }
            (OptionForm::Text { set, .. }, Some(text)) => {
                set(options, text).map_err(OptionError::Value)?;
            }
            (OptionForm::List { add, .. }, Some(text)) => {
                add(options, None).map_err(OptionError::Value)?;
                for item in text.split(',').filter(|_| !text.is_empty()) {
                    add(options, Some(item.trim())).map_err(OptionError::Value)?;
                }
            }
            (OptionForm::File { set, .. }, Some(path)) => {
                set(options, loader.load_given(path).map_err(OptionError::File)?);
            }
        }
        Ok(())
    }
}

fn names(choices: &'static [OptionChoice]) -> impl Iterator<Item = &'static str> {
    choices.iter().map(|choice| choice.name)
}

/// The options of all languages, each once, in the order of the languages.
pub fn all() -> Vec<&'static LanguageOption> {
    let mut all: Vec<&LanguageOption> = Vec::new();
    for option in front_end::ALL.into_iter().flat_map(|own| own.options) {
        if !all.iter().any(|known| known.name == option.name) {
            all.push(option);
        }
    }
    all
}

/// The option with this name in any language.
pub fn from_name(name: &str) -> Option<&'static LanguageOption> {
    let mut languages = front_end::ALL.into_iter();
    languages.find_map(|front_end| front_end.option(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::NoIncludes;
    use tamis_abi::Arch;

    #[test]
    fn an_option_of_several_languages_is_one_declaration() {
        for front_end in front_end::ALL {
            for option in front_end.options {
                let first = from_name(option.name).expect("it is one of all");
                assert!(std::ptr::eq(first, *option), "{}", option.name);
            }
        }
    }

    #[test]
    fn every_choice_and_switch_has_an_effect_or_is_the_default() {
        for option in all() {
            let values: Vec<&str> = match &option.form {
                OptionForm::Flag(_) => vec!["true", "false"],
                OptionForm::Choice(choices) => names(choices).collect(),
                _ => continue,
            };
            let with = |value| {
                let mut options = ParseOptions::new(Arch::X86_64);
                let set = option.set(&mut options, Some(value), &mut NoIncludes);
                assert_eq!(set, Ok(()), "{}={value}", option.name);
                options
            };
            let set: Vec<ParseOptions> = values.into_iter().map(with).collect();
            for (index, one) in set.iter().enumerate() {
                assert!(!set[..index].contains(one), "{}", option.name);
            }
        }
    }

    #[test]
    fn a_list_can_be_empty() {
        let mut options = ParseOptions::new(Arch::X86_64);
        let capabilities = from_name("cap").expect("profiles have it");
        let mut set = |value| capabilities.set(&mut options, Some(value), &mut NoIncludes);
        assert_eq!(set(""), Ok(()));
        assert!(matches!(set("SYS_ADMN"), Err(OptionError::Value(_))));
        assert_eq!(options.oci.capabilities, Some(Vec::new()));
        let mut set = |value| capabilities.set(&mut options, Some(value), &mut NoIncludes);
        assert_eq!(set("SYS_ADMIN, CAP_CHOWN"), Ok(()));
        let names = ["CAP_SYS_ADMIN", "CAP_CHOWN"].map(str::to_owned).to_vec();
        assert_eq!(options.oci.capabilities, Some(names));
    }
}
