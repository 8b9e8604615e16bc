//! Filters in the `config.json` of a container.
//!
//! crun installs a raw program from an annotation; other runtimes compile the profile in `linux.seccomp` with libseccomp.
//! The rest of the text is preserved. The caller makes profile and program, reads the file and writes it.

mod edit;

use std::collections::BTreeSet;

use tamis_bpf::forms::annotation;
use tamis_diag::document::{Array, Value};
use tamis_diag::json::parse_unlimited;
use tamis_session::Error;

/// The member of the program.
const PROGRAM: [&str; 2] = ["annotations", annotation::KEY];
/// The member of the profile.
const PROFILE: [&str; 2] = ["linux", "seccomp"];

/// The form of a filter in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A raw program, in an annotation.
    Program,
    /// A profile for libseccomp.
    Profile,
}

/// The configuration of a container.
#[derive(Clone, Debug)]
pub struct ContainerConfig {
    name: String,
    text: String,
    /// The notes on the original, by form.
    leftovers: [Option<&'static str>; 2],
}

impl ContainerConfig {
    /// The configuration in a text with this name.
    ///
    /// # Errors
    /// If it isn't JSON, or isn't the configuration of a container.
    pub fn parse(name: &str, text: String) -> Result<ContainerConfig, Error> {
        let config = parse_unlimited(&text)
            .map_err(|error| Error::input(format!("{name}: {}", error.in_text(&text))))?;
        if let Some(why) = invalidity(config.root()) {
            return Err(Error::usage(
                format!("{name} is no configuration of a container: {why}"),
                "name the `config.json` of a bundle; `tamis convert POLICY --to oci` writes a profile",
            ));
        }
        let leftovers = [Form::Program, Form::Profile].map(|form| leftover(form, config.root()));
        Ok(ContainerConfig {
            name: name.to_owned(),
            leftovers,
            text,
        })
    }

    /// A note on the part of an earlier policy that remains if only this form is set; `None` if both are.
    pub fn leftover(&self, only: Option<Form>) -> Option<String> {
        self.leftovers[only? as usize].map(str::to_owned)
    }

    /// Sets the profile.
    ///
    /// # Errors
    /// If a member on its path isn't an object, or is read differently by different runtimes.
    pub fn set_profile(&mut self, profile: &serde_json::Value) -> Result<(), Error> {
        self.set(&PROFILE, profile)
    }

    /// Sets the program, in base64.
    ///
    /// # Errors
    /// As for [`set_profile`](Self::set_profile).
    pub fn set_program(&mut self, base64: String) -> Result<(), Error> {
        self.set(&PROGRAM, &serde_json::Value::from(base64))
    }

    fn set(&mut self, path: &[&str], value: &serde_json::Value) -> Result<(), Error> {
        self.text = edit::with_member(&self.text, path, value)
            .map_err(|error| Error::input(format!("{}: {error}", self.name)))?;
        Ok(())
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A profile, or the configuration of a container with one.
#[derive(Clone, Debug)]
pub struct ProfileText {
    name: String,
    text: String,
    /// The path of its entries.
    entries: &'static [&'static str],
    /// The note on a program beside it.
    leftover: Option<&'static str>,
}

impl ProfileText {
    /// The profile in a text with this name, which its front end accepts.
    ///
    /// # Errors
    /// If it isn't JSON.
    pub fn parse(name: &str, text: String) -> Result<ProfileText, Error> {
        let document = parse_unlimited(&text)
            .map_err(|error| Error::input(format!("{name}: {}", error.in_text(&text))))?;
        let entries: &[&str] = match at(document.root(), &PROFILE) {
            Some(_) => &["linux", "seccomp", "syscalls"],
            None => &["syscalls"],
        };
        Ok(ProfileText {
            name: name.to_owned(),
            entries,
            leftover: leftover(Form::Profile, document.root()),
            text,
        })
    }

    /// A note on the program of an annotation, which a change of the profile doesn't reach.
    pub fn leftover(&self) -> Option<&'static str> {
        self.leftover
    }

    /// The text with the allowing entries of another profile, which `tamis-export` wrote for one architecture, after its
    /// own, and an entry for those of the calls, which have no conditions, that it lacks.
    ///
    /// # Errors
    /// If there is no list of entries.
    pub fn with_allowing_entries(
        &self,
        other: &str,
        calls: &BTreeSet<&str>,
    ) -> Result<String, Error> {
        let document =
            parse_unlimited(other).map_err(|error| Error::input(error.in_text(other)))?;
        let entries = at(document.root(), &["syscalls"]).and_then(Value::as_array);
        let entries = entries.into_iter().flat_map(Array::elements);
        let allowing = entries.filter(|entry| {
            let action = at(*entry, &["action"]).and_then(Value::as_text);
            action == Some("SCMP_ACT_ALLOW")
        });
        let mut missing = calls.clone();
        let mut texts = Vec::new();
        for entry in allowing {
            let names = at(entry, &["names"]).and_then(Value::as_array);
            let names = names.into_iter().flat_map(Array::elements);
            for name in names.filter_map(Value::as_text) {
                missing.remove(name);
            }
            texts.push(edit::dedented(other, entry));
        }
        if !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(|name| format!("\"{name}\"")).collect();
            let names = names.join(", ");
            texts.push(format!(
                "{{\n  \"names\": [{names}],\n  \"action\": \"SCMP_ACT_ALLOW\"\n}}"
            ));
        }
        edit::with_elements(&self.text, self.entries, &texts)
            .map_err(|error| Error::input(format!("{}: {error}", self.name)))
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A note on a profile whose calls wait for a supervisor without an address.
pub fn missing_listener(profile: &serde_json::Value) -> Option<&'static str> {
    let notifies = profile.to_string().contains("SCMP_ACT_NOTIFY");
    (notifies && profile["listenerPath"].is_null()).then_some(
        "the policy has the action notify: runtimes need `listenerPath` beside the entries, the socket of a supervisor",
    )
}

/// The reason why an object isn't the configuration of a container.
fn invalidity(config: Value<'_>) -> Option<&'static str> {
    let schema = at(config, &["schema"]).and_then(Value::as_text);
    let version = config.as_object()?.get("ociVersion");
    match version.map(|version| version.value.as_text()) {
        _ if schema.is_some_and(|schema| schema.starts_with("tamis.")) => {
            Some("it is a document of tamis")
        }
        None => Some("`ociVersion` is missing"),
        Some(Some(_)) => None,
        Some(None) => Some("`ociVersion` is no text"),
    }
}

/// The value at a path of members.
fn at<'d>(config: Value<'d>, path: &[&str]) -> Option<Value<'d>> {
    path.iter().try_fold(config, |value, key| {
        Some(value.as_object()?.get(key)?.value)
    })
}

/// The part of an earlier policy that remains if only one form is set.
fn leftover(form: Form, config: Value<'_>) -> Option<&'static str> {
    match form {
        Form::Profile => at(config, &PROGRAM)
            .and_then(Value::as_text)
            .map(|_| "the annotation stays as it was, and crun installs it"),
        Form::Program => at(config, &PROFILE)
            .and_then(Value::as_object)
            .map(|_| "`linux.seccomp` stays as it was, and other runtimes install it"),
    }
}
