//! Identifiers for other languages: from file names and from the names of variables.
//!
//! A name that tamis accepts may be a keyword in another language, or a macro of libc. Such names get a `_`, as do
//! names that are already taken.

use std::fmt;
use std::path::Path;

use super::Language;

/// The name for inputs that give none: standard input, or `---.tamis`.
const FALLBACK: &str = "filter";

/// Whether a text is an identifier in all languages, keywords aside.
fn is_identifier(text: &str) -> bool {
    let is_inner = |c: char| c == '_' || c.is_ascii_alphanumeric();
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_inner)
}

/// The most similar identifier for a text that is not one.
pub fn nearest(language: &Language, text: &str) -> String {
    let nearest = sanitised(text, language);
    match nearest.strip_suffix('_') {
        Some(keyword) => format!("{keyword}_{FALLBACK}"),
        None => nearest,
    }
}

/// The most similar identifier for a text.
fn sanitised(text: &str, language: &Language) -> String {
    let is_inner = |c: char| c.is_ascii_alphanumeric();
    let parts: Vec<&str> = text.split(|c| !is_inner(c)).collect();
    let joined = parts.join("_");
    let trimmed = joined.trim_matches('_');
    let text = match trimmed.chars().next() {
        None => FALLBACK.to_owned(),
        Some(first) if first.is_ascii_digit() => format!("{FALLBACK}_{trimmed}"),
        Some(_) => trimmed.to_owned(),
    };
    free(text, |text| language.reserved.contains(&text))
}

/// The text with enough `_` at its end not to be taken.
pub(super) fn free(mut text: String, taken: impl Fn(&str) -> bool) -> String {
    while taken(&text) {
        text.push('_');
    }
    text
}

/// The reason why a name can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// No item in the language's text has a name.
    Unused {
        /// The language's name for `--emit`.
        language: &'static str,
    },
    /// It is a keyword of the language, or a name in its libraries.
    Reserved {
        /// The name.
        name: String,
        /// The language's name for `--emit`.
        language: &'static str,
    },
    /// It is not an identifier.
    Malformed {
        /// The name.
        name: String,
        /// The item that would have the name.
        named: &'static str,
        /// The most similar identifier.
        nearest: String,
    },
}

impl NameError {
    /// The help of the error.
    pub fn help(&self) -> String {
        match self {
            NameError::Unused { .. } => {
                "omit --name: the file's module already provides a namespace".to_owned()
            }
            NameError::Reserved { name, .. } => format!("try `--name {name}_filter`"),
            NameError::Malformed { nearest, .. } => format!("try `--name {nearest}`"),
        }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Unused { language } => {
                write!(f, "--name has no effect on `--emit {language}`")
            }
            NameError::Reserved { name, language } => {
                write!(
                    f,
                    "`{name}` is a reserved word in the language of `--emit {language}`"
                )
            }
            NameError::Malformed { name, named, .. } => {
                write!(f, "`{name}` is not an identifier, and {named} it")
            }
        }
    }
}

impl std::error::Error for NameError {}

/// The name to use: the given one, else one made from the name of the input.
///
/// # Errors
/// If the given name is not an identifier, or no item of the language has a name.
pub fn identifier(
    language: &Language,
    asked: Option<&str>,
    input: &str,
) -> Result<String, NameError> {
    match (asked, language.named) {
        (Some(_), None) => Err(NameError::Unused {
            language: language.name,
        }),
        (Some(name), Some(_)) if language.reserved.contains(&name) => Err(NameError::Reserved {
            name: name.to_owned(),
            language: language.name,
        }),
        (Some(name), Some(named)) if !is_identifier(name) => Err(NameError::Malformed {
            name: name.to_owned(),
            named,
            nearest: sanitised(name, language),
        }),
        (Some(name), Some(_)) => Ok(name.to_owned()),
        (None, _) => {
            let stem = Path::new(input).file_stem().unwrap_or_default();
            Ok(sanitised(&stem.to_string_lossy(), language))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;

    #[test]
    fn every_input_has_a_name_that_could_be_asked_for() {
        let inputs = [
            "<stdin>",
            "a/my-server.tamis",
            "int.json",
            "range",
            "9p.tamis",
            "---",
            "ä",
            "",
            "errno",
            "container-default",
            "..",
            "x.y.z",
        ];
        for language in ALL {
            for input in inputs {
                let Ok(name) = identifier(language, None, input) else {
                    panic!("{input} has no name");
                };
                assert!(is_identifier(&name), "{input} gives {name}");
                let is_taken = identifier(language, Some(&name), input).is_err();
                assert_eq!(is_taken, language.named.is_none(), "{name}");
            }
        }
    }
}
