//! Changes of policies that make a failing check hold: the texts for the search, and the changed policies read again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tamis_abi::{Arch, Nr, SeccompData, syscall};
use tamis_assertions::{Check, Checks, Judge, Mend, PolicyText, Reading};
use tamis_policy::loader::{self, Loader};
use tamis_report::place;
use tamis_rules::{Origin, Ruleset};
use tamis_session::files::FileLoader;
use tamis_session::{Input, LoadOptions, Loaded, Policy, Side};

use crate::cli::limits::LimitArgs;
use crate::cli::load::{LoadArgs, on_this_machine};
use crate::command::oci::profile_of;

use super::readings::Readings;

/// Results that several checks need.
type Cache<K, V> = RefCell<HashMap<K, V>>;

/// A policy in one of its readings, and the readings of its changed texts.
pub(super) struct ReadSide {
    pub(super) side: Side,
    pub(super) load: LoadArgs,
    /// The rulesets of changed texts, by the file and its text.
    changed: Cache<(String, String), Option<Rc<Ruleset>>>,
}

impl ReadSide {
    pub(super) fn new(side: Side, load: LoadArgs) -> ReadSide {
        ReadSide {
            side,
            load,
            changed: RefCell::default(),
        }
    }

    /// The only filter, if it is a policy.
    fn policy(&self) -> Option<&Policy> {
        match self.side.filters() {
            [Loaded::Policy(policy)] => Some(policy),
            _ => None,
        }
    }
}

/// A reading of the only policy of a side.
struct PolicyReading(Rc<ReadSide>);

impl PolicyReading {
    fn policy(&self) -> &Policy {
        self.0
            .policy()
            .expect("all readings of a policy are policies")
    }
}

impl Reading for PolicyReading {
    fn ruleset(&self) -> &Ruleset {
        &self.policy().ruleset
    }

    fn changed(&self, file: &str, text: &str) -> Option<Rc<Ruleset>> {
        let mut changed = self.0.changed.borrow_mut();
        let own = changed.entry((file.to_owned(), text.to_owned()));
        let read = || changed_ruleset(self.policy(), &self.0.load, file, text).map(Rc::new);
        own.or_insert_with(read).clone()
    }
}

/// Changes of a policy. What several checks need is read and converted once.
pub(super) struct Mender<'m> {
    policy: &'m Policy,
    own: PolicyReading,
    readings: &'m Readings,
    limits: &'m LimitArgs,
    /// The places of names in lists, by the place of the list.
    places: Cache<Origin, HashMap<&'m str, Origin>>,
    /// The entries that allow calls on an architecture.
    entries: Cache<(Vec<String>, Arch), Option<Vec<String>>>,
}

impl<'m> Mender<'m> {
    /// For the policy that is the only filter of a side, if it has a text.
    pub(super) fn new(
        own: &'m Rc<ReadSide>,
        readings: &'m Readings,
        limits: &'m LimitArgs,
    ) -> Option<Mender<'m>> {
        let policy = own.policy()?;
        Input::embedded(&policy.name).is_none().then(|| Mender {
            policy,
            own: PolicyReading(own.clone()),
            readings,
            limits,
            places: RefCell::default(),
            entries: RefCell::default(),
        })
    }

    /// The smallest change that mends a failing check of calls in all tested readings; `None` if none is known within the limits.
    pub(super) fn mend(
        &self,
        judge: &mut Judge<'_>,
        checks: &Checks,
        check: &Check,
    ) -> Option<Mend> {
        let others = |all: Vec<Rc<ReadSide>>| {
            let all = all.into_iter();
            let others = all.filter(|other| !Rc::ptr_eq(other, &self.own.0));
            let reading = |other| Rc::new(PolicyReading(other)) as Rc<dyn Reading>;
            others.map(reading).collect()
        };
        let text = PolicyText {
            language: self.policy.kind.name(),
            root: &self.policy.name,
            sources: &self.policy.sources,
            place_in_list: &|origin, call| self.place_in_list(origin, call),
            allowing: &|calls, arch| self.allowing_entries(calls, arch),
            own: &self.own,
            tested: &|calls| Some(others(self.readings.tested(calls)?)),
            untested: &|calls| Some(others(self.readings.untested(calls)?)),
        };
        judge.mend(checks, check, &text).ok().flatten()
    }

    fn place_in_list(&self, origin: &Origin, call: &SeccompData) -> Option<Origin> {
        let arch = Arch::of_call(call.arch, call.nr)?;
        let name = syscall::name(arch, Nr(call.nr))?;
        let mut places = self.places.borrow_mut();
        if !places.contains_key(origin) {
            let mut of_list = HashMap::new();
            for (name, place) in place::elements(origin, &self.policy.sources) {
                of_list.entry(name).or_insert(place);
            }
            places.insert(origin.clone(), of_list);
        }
        places[origin].get(name).cloned()
    }

    /// The entries of a container profile that allow these calls on an architecture.
    fn allowing_entries(&self, calls: &[String], arch: Arch) -> Option<Vec<String>> {
        let mut entries = self.entries.borrow_mut();
        let own = entries.entry((calls.to_vec(), arch));
        own.or_insert_with(|| allowing_entries(calls, arch, self.limits))
            .clone()
    }
}

/// The entries of a container profile that allow these calls on an architecture.
fn allowing_entries(calls: &[String], arch: Arch, limits: &LimitArgs) -> Option<Vec<String>> {
    let profile = profile_of(calls, arch, limits).ok()?;
    let profile: serde_json::Value = serde_json::from_str(&profile).ok()?;
    let entries = profile["syscalls"].as_array()?.iter();
    let allowing = entries.filter(|entry| entry["action"] == "SCMP_ACT_ALLOW");
    Some(allowing.map(ToString::to_string).collect())
}

/// Whether an entry of a container profile is left without a name, as engines refuse it.
fn has_empty_entry(text: &str) -> bool {
    let lists = text.split("\"names\"").skip(1);
    let inside = lists.filter_map(|rest| rest.trim_start().strip_prefix(':'));
    let mut inside = inside.filter_map(|rest| rest.trim_start().strip_prefix('['));
    inside.any(|rest| rest.trim_start().starts_with(']'))
}

/// The ruleset of a policy with another text of one of its files, in the policy's own language.
fn changed_ruleset(policy: &Policy, load: &LoadArgs, file: &str, text: &str) -> Option<Ruleset> {
    let root = policy.sources.iter().next()?;
    let own = match *root.name == *file {
        true => text,
        false => &root.text,
    };
    if has_empty_entry(own) && !has_empty_entry(&root.text) {
        return None;
    }
    let input = Input::new(policy.name.as_str(), own);
    let options = LoadOptions {
        kind: Some(policy.kind),
        ..load.keeping_variables().shared_options()
    };
    let options = on_this_machine(options, &input);
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
