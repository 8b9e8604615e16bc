//! Entries of an OCI profile that libseccomp rejects.
//!
//! libseccomp keeps one tree for each number of an architecture and rejects rules that contradict earlier ones in it. A
//! call that can also be made through `socketcall` or `ipc` adds each of its rules to the tree of this multiplexer as
//! well. There the number of the call replaces a condition on argument 0, so rules that exclude each other in the
//! call's own tree may not do so in the multiplexer's. The trees are built here as in the front end, from all entries
//! in their final order. The exporter chooses another form for a rejected call.

use std::collections::BTreeMap;

use tamis_abi::syscall::{self, Name};
use tamis_abi::{Action, Arch};
use tamis_scmp::{CallTree, Conditions, Place, Resolver};

use super::oci::Entry;

/// The multiplexers.
pub(super) const MULTIPLEXERS: [&str; 2] = ["socketcall", "ipc"];

/// A rejected entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The call of the entry.
    pub(super) name: &'static str,
    /// The multiplexer, if the entry is rejected in its tree.
    pub(super) shared: Option<Shared>,
}

/// A multiplexer's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shared {
    /// The multiplexer.
    pub(super) multiplexer: &'static str,
    /// The least strict action of the calls through it.
    pub(super) loosest: Action,
}

/// The tree of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(u32),
    /// A call that the architecture lacks: libseccomp still rejects contradictions.
    Absent(&'static str),
}

/// A tree with the properties of its rules.
struct Tree {
    rules: CallTree<()>,
    count: usize,
    /// The name of the last rule.
    last: &'static str,
    /// The name of the first rejected rule.
    refused: Option<&'static str>,
    /// The least strict action of the calls with this number.
    loosest: Option<Action>,
}

/// The first rejected entry of each tree; empty if libseccomp accepts the whole profile.
pub(super) fn refused(arches: &[Arch], entries: &[Entry]) -> Vec<Refused> {
    arches
        .iter()
        .flat_map(|arch| refused_on(*arch, entries))
        .collect()
}

fn refused_on(arch: Arch, entries: &[Entry]) -> Vec<Refused> {
    let resolver = Resolver::new(arch);
    let mut trees: BTreeMap<Key, Tree> = BTreeMap::new();
    for entry in entries {
        let conditions = entry.rule_conditions();
        for name in &entry.names {
            let places = Name::find(name).map(|known| resolver.places(known, name));
            for place in places.into_iter().flatten() {
                let (key, conditions) = match place {
                    Place::Direct(nr) => (Key::Number(nr.0), conditions),
                    Place::Multiplexed { nr, selector } => {
                        let selected = conditions.map(|all| all.with_selector(selector));
                        (Key::Number(nr.0), selected)
                    }
                    Place::Absent => (Key::Absent(name), conditions),
                };
                let tree = trees.entry(key).or_insert_with(|| Tree::new(arch, name));
                tree.add(name, conditions, entry.action);
                if matches!(place, Place::Multiplexed { .. }) {
                    tree.note_action(entry.action);
                }
            }
        }
    }
    let refused = trees.into_iter().filter_map(|(key, tree)| {
        let name = tree.refused()?;
        let multiplexer = match key {
            Key::Number(nr) => syscall::name(arch, syscall::Nr(nr)),
            Key::Absent(_) => None,
        };
        let multiplexer = multiplexer.filter(|name| MULTIPLEXERS.contains(name));
        let shared = multiplexer.zip(tree.loosest);
        let shared = shared.map(|(multiplexer, loosest)| Shared {
            multiplexer,
            loosest,
        });
        Some(Refused { name, shared })
    });
    refused.collect()
}

impl Tree {
    fn new(arch: Arch, name: &'static str) -> Tree {
        Tree {
            rules: CallTree::new(arch),
            count: 0,
            last: name,
            refused: None,
            loosest: None,
        }
    }

    /// Adds a rule, unless one was rejected; `None` for conditions that no rule can have.
    fn add(&mut self, name: &'static str, conditions: Option<Conditions>, action: Action) {
        if self.refused.is_some() {
            return;
        }
        (self.count, self.last) = (self.count + 1, name);
        let added = conditions.map(|conditions| self.rules.add(&conditions, action, ()));
        if !matches!(added, Some(Ok(_))) {
            self.refused = Some(name);
        }
    }

    /// Records an action of a call with the tree's number.
    fn note_action(&mut self, action: Action) {
        let all = self.loosest.into_iter().chain([action]);
        self.loosest = all.max_by_key(|action| Action::precedence(action.ret()));
    }

    /// The name of the rejected rule: the last one if only the whole is too complex.
    fn refused(&self) -> Option<&'static str> {
        let is_too_complex = || self.count > 1 && self.rules.rules().is_err();
        self.refused
            .or_else(|| is_too_complex().then_some(self.last))
    }
}
