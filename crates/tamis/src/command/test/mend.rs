//! Changes of policies that make a failing check hold: the texts for the search, and the changed policies read again.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tamis_abi::{Arch, Nr, SeccompData, syscall};
use tamis_assertions::{Check, Checks, Edit, Judge, Mend, PolicyText};
use tamis_policy::loader::{self, Loader};
use tamis_report::place;
use tamis_rules::{Origin, Ruleset};
use tamis_session::files::FileLoader;
use tamis_session::{Input, LoadOptions, Loaded, Policy, Side};

use crate::cli::limits::LimitArgs;
use crate::cli::load::{LoadArgs, on_this_machine};
use crate::command::oci::profile_of;

/// Results that several checks need.
type Cache<K, V> = RefCell<HashMap<K, V>>;

/// Changes of the policy of one reading. What several checks need is read and converted once.
pub(super) struct Mender<'m> {
    policy: &'m Policy,
    load: &'m LoadArgs,
    limits: &'m LimitArgs,
    /// The places of names in lists, by the place of the list.
    places: Cache<Origin, HashMap<&'m str, Origin>>,
    /// The entries that allow calls on an architecture.
    entries: Cache<(Vec<String>, Arch), Option<Vec<String>>>,
    /// The calls in entries of a container profile that hold in some readings only.
    conditional: OnceCell<HashSet<String>>,
    /// The rulesets of changed texts, by the file and its text.
    changed: Cache<(String, String), Option<Rc<Ruleset>>>,
}

impl<'m> Mender<'m> {
    /// For the policy that is the only filter of a side, if it has a text.
    pub(super) fn new(
        side: &'m Side,
        load: &'m LoadArgs,
        limits: &'m LimitArgs,
    ) -> Option<Mender<'m>> {
        let [Loaded::Policy(policy)] = side.filters() else {
            return None;
        };
        Input::embedded(&policy.name).is_none().then(|| Mender {
            policy,
            load,
            limits,
            places: RefCell::default(),
            entries: RefCell::default(),
            conditional: OnceCell::new(),
            changed: RefCell::default(),
        })
    }

    /// The smallest change that mends a failing check of calls; `None` if none is known within the limits.
    ///
    /// A change is proved in this reading. It does the same in all others unless an entry that holds in some of them
    /// names one of its calls, so such a change is not offered.
    pub(super) fn mend(
        &self,
        judge: &mut Judge<'_>,
        checks: &Checks,
        check: &Check,
    ) -> Option<Mend> {
        let text = PolicyText {
            language: self.policy.kind.name(),
            root: &self.policy.name,
            sources: &self.policy.sources,
            place_in_list: &|origin, call| self.place_in_list(origin, call),
            allowing: &|calls, arch| self.allowing_entries(calls, arch),
            read: &|file, text| self.changed(file, text),
        };
        let mend = judge.mend(checks, check, &text).ok().flatten()?;
        let conditional = self
            .conditional
            .get_or_init(|| conditional_calls(self.policy));
        let is_conditional = |edit: &Edit| {
            let mut words = edit.text.split('"');
            words.any(|word| conditional.contains(word))
        };
        (!mend.edits.iter().any(is_conditional)).then_some(mend)
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

    /// The ruleset of the policy with another text of one of its files.
    fn changed(&self, file: &str, text: &str) -> Option<Rc<Ruleset>> {
        let mut changed = self.changed.borrow_mut();
        let own = changed.entry((file.to_owned(), text.to_owned()));
        own.or_insert_with(|| changed_ruleset(self.policy, self.load, file, text).map(Rc::new))
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

/// The names of calls in the entries of a container profile that depend on capabilities, architectures or kernels.
fn conditional_calls(policy: &Policy) -> HashSet<String> {
    let root = policy.sources.iter().next();
    let text = root.map_or("", |source| &source.text);
    let profile: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let entries = profile["syscalls"].as_array();
    let is_conditional = |entry: &&serde_json::Value| {
        let conditions = ["includes", "excludes"].map(|member| entry[member].as_object());
        let mut members = conditions
            .into_iter()
            .flatten()
            .flat_map(serde_json::Map::values);
        members
            .any(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
    };
    let names = entries.into_iter().flatten().filter(is_conditional);
    let names = names.flat_map(|entry| {
        let list = entry["names"].as_array().into_iter().flatten();
        list.chain([&entry["name"]])
            .filter_map(|name| name.as_str())
    });
    names.map(str::to_owned).collect()
}

/// Whether an entry of a container profile is left without a name, as engines refuse it.
fn has_empty_entry(text: &str) -> bool {
    let dense: String = text.split_whitespace().collect();
    dense.contains("\"names\":[]")
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
