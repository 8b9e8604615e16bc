//! Changes of policies that make a failing check hold: the texts for the search, and the changed policies read again.

use tamis_abi::{Arch, SeccompData};
use tamis_assertions::{Check, Checks, Judge, Mend, PolicyText};
use tamis_policy::loader::{self, Loader};
use tamis_report::place;
use tamis_rules::{Origin, Ruleset};
use tamis_session::files::FileLoader;
use tamis_session::{Input, Loaded, Policy, Side};

use crate::cli::limits::LimitArgs;
use crate::cli::load::{LoadArgs, on_this_machine};
use crate::command::oci::profile_of;

/// The policy that is the only filter of a side, if it has a text that a check of calls concerns.
pub(super) fn changeable<'s>(side: &'s Side, check: &Check) -> Option<&'s Policy> {
    match side.filters() {
        [Loaded::Policy(policy)] if Input::embedded(&policy.name).is_none() => {
            (!check.claim.targets().is_empty()).then_some(policy)
        }
        _ => None,
    }
}

/// The smallest change of a policy that mends a failing check; `None` if none is known within the limits.
pub(super) fn mend(
    judge: &mut Judge<'_>,
    checks: &Checks,
    check: &Check,
    policy: &Policy,
    (load, limits): (&LoadArgs, &LimitArgs),
) -> Option<Mend> {
    let place_in_list =
        |origin: &Origin, call: &SeccompData| place::element_of(origin, call, &policy.sources);
    let text = PolicyText {
        language: policy.kind.name(),
        root: &policy.name,
        sources: &policy.sources,
        place_in_list: &place_in_list,
        allowing: &|calls, arch| allowing_entries(calls, arch, limits),
        read: &|file, text| changed(policy, load, file, text),
    };
    judge.mend(checks, check, &text).ok().flatten()
}

/// The entries of a container profile that allow these calls on an architecture.
fn allowing_entries(calls: &[String], arch: Arch, limits: &LimitArgs) -> Option<Vec<String>> {
    let profile = profile_of(calls, arch, limits).ok()?;
    let profile: serde_json::Value = serde_json::from_str(&profile).ok()?;
    let entries = profile["syscalls"].as_array()?.iter();
    let allowing = entries.filter(|entry| entry["action"] == "SCMP_ACT_ALLOW");
    Some(allowing.map(ToString::to_string).collect())
}

/// The ruleset of a policy with another text of one of its files.
fn changed(policy: &Policy, load: &LoadArgs, file: &str, text: &str) -> Option<Ruleset> {
    let root = policy.sources.iter().next()?;
    let own = match *root.name == *file {
        true => text,
        false => &root.text,
    };
    let input = Input::new(policy.name.as_str(), own);
    let options = on_this_machine(load.keeping_variables().shared_options(), &input);
    let mut loader = Changed {
        files: FileLoader::new(load.include_dirs()),
        file,
        text,
    };
    match tamis_session::load(input, &options, &mut loader).ok()? {
        Loaded::Policy(policy) => Some(policy.ruleset),
        Loaded::Program(_) => None,
    }
}

/// Reads included files, one of them with another text.
struct Changed<'c> {
    files: FileLoader,
    file: &'c str,
    text: &'c str,
}

impl Loader for Changed<'_> {
    fn begin(&mut self, root: &str) {
        self.files.begin(root);
    }

    fn load(&mut self, path: &str, from: &str) -> Result<loader::Loaded, String> {
        let mut loaded = self.files.load(path, from)?;
        if loaded.name == self.file {
            self.text.clone_into(&mut loaded.text);
        }
        Ok(loaded)
    }

    fn load_given(&mut self, path: &str) -> Result<loader::Loaded, String> {
        self.files.load_given(path)
    }
}
