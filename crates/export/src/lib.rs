//! Exporting: from a policy's meaning to a text in another language.
//!
//! A policy's meaning is listed call by call, as a [`Meaning`]. Each exporter is one file with an entry in [`ALL`].
//! A feature that its language can't express is a [`Loss`] with its replacement, which is intended to be no less
//! strict. Writers prove nothing and are not trusted: `convert` parses the text with [`Exporter::front_end`], compares it
//! with the policy, and exports again with a longer [`RuleForm`] for the calls that differ.
//!
//! [`tamis::policy`] prints rulesets in the tamis language, for people and for policies that are learned.

#![forbid(unsafe_code)]

mod acceptance;
mod alternatives;
mod calls;
pub mod code;
#[cfg(feature = "convert")]
pub mod convert;
mod families;
mod kept;
mod oci;
pub mod pfc;
mod spo;
mod switches;
mod systemd;
pub mod tamis;

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch};
use tamis_diag::Code;
use tamis_diag::Diagnostic;
use tamis_rules::{IntervalSet, Predicate, Ruleset};

use tamis_policy::front_end::FrontEnd;
use tamis_policy::systemd::SystemdVersion;

/// All exporters, in the order of the help.
pub static ALL: [&Exporter; 4] = [
    &tamis::exporter::EXPORTER,
    &oci::EXPORTER,
    &spo::EXPORTER,
    &systemd::EXPORTER,
];

/// An exporter for a language.
#[derive(Debug)]
pub struct Exporter {
    /// The name for `--to`: that of the front end that parses the text unchanged.
    pub name: &'static str,
    /// The plural of its texts at the beginning of a sentence: `OCI profiles`.
    pub plural: &'static str,
    /// A short description for the help.
    pub about: &'static str,
    /// The front end that parses the text.
    pub front_end: &'static FrontEnd,
    /// Whether a text has installation flags and the supervisor's socket.
    pub takes_installation: bool,
    /// Whether a text is written from the rules of a policy instead of call by call.
    pub writes_rules: bool,
    /// Whether a text applies to the same architectures on every machine.
    pub states_arches: bool,
    /// Writes a policy.
    pub write: fn(&Meaning, &ExportOptions<'_>) -> Result<Export, Box<Diagnostic>>,
}

/// The meaning of a policy, call by call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// One listing for each architecture with rules.
    pub listings: Vec<Listing>,
    /// The action of calls of other architectures.
    pub bad_arch: Action,
    /// The same as a ruleset, in its shortest form; `None` if a condition is too long.
    pub ruleset: Option<Ruleset>,
}

/// The actions of the calls of an architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The architecture.
    pub arch: Arch,
    /// A partition of all its numbers.
    pub groups: Vec<Group>,
}

/// Numbers with the same outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The numbers.
    pub numbers: IntervalSet<u32>,
    /// The outcomes; exactly one of the conditions holds for each call.
    pub outcomes: Vec<ConditionalAction>,
}

/// The action of some calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionalAction {
    /// The action.
    pub action: Action,
    /// The condition; `None` if it is too long to express.
    pub when: Option<Predicate>,
}

/// The form of a call's rules, for a second export if the text was parsed with another meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleForm {
    /// The shortest form.
    #[default]
    Short,
    /// A longer form that avoids ambiguities of the short one.
    Explicit,
    /// One action for all arguments and architectures: the strictest.
    Whole,
    /// The same, with another action of the same kind if the entry takes effect only with that.
    Forced,
}

impl RuleForm {
    /// The next form, if there is one.
    pub const fn next(self) -> Option<RuleForm> {
        match self {
            RuleForm::Short => Some(RuleForm::Explicit),
            RuleForm::Explicit => Some(RuleForm::Whole),
            RuleForm::Whole => Some(RuleForm::Forced),
            RuleForm::Forced => None,
        }
    }
}

/// Options of an export.
#[derive(Clone, Copy, Debug)]
pub struct ExportOptions<'a> {
    /// The name of the policy, for resources with names and for comments.
    pub name: &'a str,
    /// The flags for installing the filter.
    pub flags: &'a [String],
    /// The socket of the supervisor.
    pub listener_path: Option<&'a str>,
    /// Metadata for the supervisor.
    pub listener_metadata: Option<&'a str>,
    /// The release of systemd that reads the text, for units.
    pub systemd: SystemdVersion,
    /// The origins of calls, as comments above their rules, for languages with comments.
    pub notes: &'a BTreeMap<&'static str, String>,
    /// Calls that an earlier export expressed wrongly, with the form to use.
    pub forms: &'a BTreeMap<&'static str, RuleForm>,
}

impl ExportOptions<'_> {
    /// The form for a call.
    fn form_for(&self, call: &str) -> RuleForm {
        self.forms.get(call).copied().unwrap_or_default()
    }
}

/// A policy in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The text.
    pub text: String,
    /// The kinds of machines for the text; each parses it for its architectures.
    pub machines: Vec<Machine>,
    /// The action of calls of other architectures.
    pub bad_arch: Action,
    /// The features that could not be expressed.
    pub losses: Vec<Loss>,
}

/// A kind of machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its architecture.
    pub native: Arch,
    /// The architectures of its calls that the text decides, including the native one.
    pub arches: Vec<Arch>,
}

/// A feature that a language can't express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The kind.
    pub code: Code,
    /// The feature: a lower-case fragment.
    pub message: String,
    /// The replacement.
    pub kept: String,
    /// The affected calls; empty if it affects no particular calls.
    pub calls: Vec<&'static str>,
    /// The affected architectures; empty for all.
    pub arches: Vec<Arch>,
}

/// The exporter with a name.
pub fn find(name: &str) -> Option<&'static Exporter> {
    ALL.into_iter().find(|exporter| exporter.name == name)
}
