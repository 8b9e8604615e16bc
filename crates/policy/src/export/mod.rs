//! Exporting: from a policy's meaning to a text in a language that other programs read.
//!
//! What a policy means is taken call by call, as a [`Meaning`]; each exporter is one file with an entry in
//! [`ALL`], and writes what its language can say. What that cannot say is a [`Loss`], with what is said
//! instead: never anything looser on purpose. Nothing is proved here. Whoever calls an exporter reads the
//! text back with [`Exporter::front_end`], compares, and asks again with more [`Care`] for the calls that
//! differ.

mod alternatives;
mod calls;
mod oci;
pub mod pfc;
mod spo;
mod systemd;
mod tamis;
pub mod words;

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch};
use tamis_diag::Diagnostic;
use tamis_diag::code::Code;
use tamis_rules::{IntervalSet, Predicate, Ruleset};

use crate::front_end::FrontEnd;

/// All exporters, in the order of the help.
pub static ALL: [&Exporter; 4] = [
    &tamis::EXPORTER,
    &oci::EXPORTER,
    &spo::EXPORTER,
    &systemd::EXPORTER,
];

/// A language that policies are written in for others.
#[derive(Debug)]
pub struct Exporter {
    /// What `--to` calls it: the name of the front end that reads it, if that reads the text as it is.
    pub name: &'static str,
    /// What several texts are called, to begin a sentence: `OCI profiles`.
    pub plural: &'static str,
    /// What it is, in a few words, for the help.
    pub about: &'static str,
    /// What reads the text.
    pub front_end: &'static FrontEnd,
    /// Whether a text says with which flags a filter is installed, and where its supervisor listens.
    pub takes_installation: bool,
    /// Whether a text is about its architectures alone, on whatever machine it is read.
    pub states_arches: bool,
    /// Writes a policy.
    pub write: fn(&Meaning, &ExportOptions<'_>) -> Result<Export, Box<Diagnostic>>,
}

/// What a policy means, call by call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// One listing for each architecture that the policy has rules for.
    pub listings: Vec<Listing>,
    /// What calls of other architectures get.
    pub bad_arch: Action,
    /// The same as a ruleset, as brief as it can be said; `None` if some condition is too long for one.
    pub ruleset: Option<Ruleset>,
}

/// What the calls of an architecture get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The architecture.
    pub arch: Arch,
    /// All its numbers, each in one group.
    pub groups: Vec<Group>,
}

/// Numbers that get the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The numbers.
    pub numbers: IntervalSet<u32>,
    /// What they get; just one of the conditions holds for any call.
    pub outcomes: Vec<Outcome>,
}

/// What some calls get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The answer.
    pub action: Action,
    /// Which calls; `None` if the condition is too long to be said.
    pub when: Option<Predicate>,
}

/// How exactly a call may be written, when the text turned out to be read in another way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Care {
    /// As shortly as it can be.
    #[default]
    Short,
    /// At length, where the short form might be taken for something else.
    Explicit,
    /// As one answer for all arguments and architectures: the strictest.
    Whole,
    /// The same, with another answer of the same kind if that is what makes the entry count.
    Forced,
}

impl Care {
    /// The next more careful way, if there is one.
    pub const fn next(self) -> Option<Care> {
        match self {
            Care::Short => Some(Care::Explicit),
            Care::Explicit => Some(Care::Whole),
            Care::Whole => Some(Care::Forced),
            Care::Forced => None,
        }
    }
}

/// Options of an export.
#[derive(Clone, Copy, Debug)]
pub struct ExportOptions<'a> {
    /// What the text is about: a name for resources that have one, and for comments.
    pub name: &'a str,
    /// The flags that the filter is to be installed with.
    pub flags: &'a [String],
    /// The socket of the supervisor.
    pub listener_path: Option<&'a str>,
    /// Metadata for the supervisor.
    pub listener_metadata: Option<&'a str>,
    /// Calls that an earlier export expressed wrongly.
    pub care: &'a BTreeMap<&'static str, Care>,
}

impl ExportOptions<'_> {
    /// How careful to be with a call.
    fn care_for(&self, call: &str) -> Care {
        self.care.get(call).copied().unwrap_or_default()
    }
}

/// A policy in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The text.
    pub text: String,
    /// The machines that the text is for; each of them reads it for its architectures.
    pub machines: Vec<Machine>,
    /// What calls of other architectures get.
    pub bad_arch: Action,
    /// What could not be said.
    pub losses: Vec<Loss>,
}

/// A kind of machine that a text is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its architecture.
    pub native: Arch,
    /// The architectures of calls that it can make and the text decides, that one among them.
    pub arches: Vec<Arch>,
}

/// Something that a language can't say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The kind.
    pub code: Code,
    /// What can't be said: a lower-case fragment.
    pub message: String,
    /// The replacement.
    pub kept: String,
    /// The calls that it is about; none if it is about something else.
    pub calls: Vec<&'static str>,
    /// The architectures that it is about; none if it is about all.
    pub arches: Vec<Arch>,
}

/// The exporter with a name.
pub fn find(name: &str) -> Option<&'static Exporter> {
    ALL.into_iter().find(|exporter| exporter.name == name)
}
