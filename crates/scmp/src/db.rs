//! The rules of a filter on all of its architectures.
//!
//! [`Db::add_rule`] implements `seccomp_rule_add`: a rule for a call is added on every architecture, where the call
//! may have another number, several places or none. If one architecture refuses it, it is added on none.

use std::collections::BTreeMap;
use std::error;
use std::fmt;

use tamis_abi::syscall::{self, Name};
use tamis_abi::{Action, Arch, ArgIndex, Nr};

use crate::condition::{Condition, Conditions};
use crate::place::{Place, Resolver};
use crate::tree::{CallTree, MAX_RULES, Refusal};

/// The rules of a filter on all of its architectures: libseccomp's `scmp_filter_ctx` without attributes.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_scmp::{Call, Db, Errno, Exactness};
/// let mut db: Db<&str> = Db::new(Action::KILL_THREAD, Arch::X86_64, &[Arch::X86]);
/// let read = Call::Named("read");
/// db.add_rule(Exactness::Adjusted, Action::ALLOW, read, &[], "first").unwrap();
/// let places: Vec<_> = db.filters().iter().map(|filter| filter.calls().next().unwrap().0.0).collect();
/// assert_eq!(places, [0, 3]);
/// let same = db.add_rule(Exactness::Adjusted, Action::KILL_THREAD, read, &[], "second");
/// assert_eq!(same.unwrap_err().errno(), Errno::Access);
/// ```
#[derive(Clone, Debug)]
pub struct Db<T> {
    native: Arch,
    default: Action,
    filters: Vec<ArchRules<T>>,
}

/// The rules on one architecture.
#[derive(Clone, Debug)]
pub struct ArchRules<T> {
    resolver: Resolver,
    calls: BTreeMap<Slot, Rules<T>>,
}

/// The key of a call's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Number(Nr),
    /// A call that the architecture doesn't have.
    Absent(Name),
}

/// The rules of one call.
#[derive(Clone, Debug)]
struct Rules<T> {
    tree: CallTree<T>,
    /// The rules as added, to rebuild the tree after a refusal.
    added: Vec<(Conditions, Action, T)>,
}

/// The call of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'n> {
    /// The call with this name.
    Named(&'n str),
    /// The call with this number on the native architecture; `u32::MAX`, which tracers write to skip a call, is the
    /// same on all architectures.
    Numbered(Nr),
}

/// Whether a rule may be adjusted to an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// `seccomp_rule_add`: the rule is omitted on an architecture that lacks the call.
    Adjusted,
    /// `seccomp_rule_add_exact`: a missing call, or a second architecture, is an error.
    Exact,
}

/// The reason why a rule was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddError<T> {
    /// The action is the default action.
    DefaultAction,
    /// The rule is exact and there are several architectures.
    SeveralArches,
    /// No architecture has a call of this name.
    UnknownCall,
    /// Two conditions test this argument.
    RepeatedArgument(ArgIndex),
    /// The rule is exact and this architecture lacks the call.
    AbsentCall(Arch),
    /// The rule is exact and has conditions on a call that this architecture multiplexes.
    MultiplexedCall(Arch),
    /// The number has no name on the native architecture, so its number on this other architecture is unknown.
    Untranslatable(Arch),
    /// libseccomp refuses the rule for this call.
    Refused {
        /// The architecture.
        arch: Arch,
        /// The reason.
        refusal: Refusal<T>,
    },
}

/// The error number that libseccomp returns, negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Errno {
    /// `EACCES`
    Access,
    /// `EDOM`
    Domain,
    /// `EEXIST`
    Exists,
    /// `EFAULT`: libseccomp's internal errors.
    Fault,
    /// `EINVAL`
    Invalid,
    /// `ENOMEM`
    NoMemory,
    /// `EOPNOTSUPP`
    NotSupported,
}

impl<T: Copy + Ord> Db<T> {
    /// A filter without rules, for the native architecture and others.
    pub fn new(default: Action, native: Arch, others: &[Arch]) -> Db<T> {
        let mut arches = vec![native];
        for arch in others {
            if !arches.contains(arch) {
                arches.push(*arch);
            }
        }
        let filters = arches.into_iter().map(ArchRules::new).collect();
        Db {
            native,
            default,
            filters,
        }
    }

    /// The action of a call without a matching rule.
    pub const fn default_action(&self) -> Action {
        self.default
    }

    /// The rules of each architecture, the native one first.
    pub fn filters(&self) -> &[ArchRules<T>] {
        &self.filters
    }

    /// Adds a rule to all architectures: if all conditions hold, the action. Conflicts and resulting rules contain
    /// the tag.
    ///
    /// # Errors
    /// See [`AddError`]; the rule is then added on no architecture.
    pub fn add_rule(
        &mut self,
        exactness: Exactness,
        action: Action,
        call: Call<'_>,
        conditions: &[Condition],
        tag: T,
    ) -> Result<(), AddError<T>> {
        let name = match call {
            Call::Named(text) => Some(Name::find(text).ok_or(AddError::UnknownCall)?),
            Call::Numbered(_) => None,
        };
        if action == self.default {
            return Err(AddError::DefaultAction);
        }
        if exactness == Exactness::Exact && self.filters.len() > 1 {
            return Err(AddError::SeveralArches);
        }
        let conditions = Conditions::new(conditions)
            .map_err(|repeated| AddError::RepeatedArgument(repeated.0))?;
        let mut done = Vec::new();
        for index in 0..self.filters.len() {
            let added = self
                .rules_on(index, call, name, conditions, exactness)
                .and_then(|rules| {
                    rules.into_iter().try_for_each(|(slot, conditions)| {
                        self.filters[index].add(slot, (conditions, action, tag))?;
                        done.push((index, slot));
                        Ok(())
                    })
                });
            if let Err(error) = added {
                for (index, slot) in done.into_iter().rev() {
                    self.filters[index].take_back(slot);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// The places of a rule on one architecture, and its conditions there.
    fn rules_on(
        &self,
        index: usize,
        call: Call<'_>,
        name: Option<Name>,
        conditions: Conditions,
        exactness: Exactness,
    ) -> Result<Vec<(Slot, Conditions)>, AddError<T>> {
        let filter = &self.filters[index];
        let arch = filter.arch();
        let (name, text) = match (call, name) {
            (Call::Named(text), Some(name)) => (name, text),
            (Call::Named(_), None) => return Err(AddError::UnknownCall),
            (Call::Numbered(nr), _) => {
                let text = syscall::name(self.native, nr).filter(|_| nr.0 != u32::MAX);
                match text.and_then(|text| Some((Name::find(text)?, text))) {
                    Some(named) => named,
                    None if nr.0 == u32::MAX || arch == self.native => {
                        return Ok(vec![(Slot::Number(nr), conditions)]);
                    }
                    None => return Err(AddError::Untranslatable(arch)),
                }
            }
        };
        let is_exact = exactness == Exactness::Exact;
        let places: Vec<Place> = filter.resolver.places(name, text).collect();
        let lacks = |place: &Place| *place == Place::Absent;
        if is_exact && places.iter().all(lacks) {
            return Err(AddError::AbsentCall(arch));
        }
        let rule = |place| match place {
            Place::Direct(nr) => Ok((Slot::Number(nr), conditions)),
            Place::Multiplexed { .. } if is_exact && !conditions.is_empty() => {
                Err(AddError::MultiplexedCall(arch))
            }
            Place::Multiplexed { nr, selector } => {
                Ok((Slot::Number(nr), conditions.with_selector(selector)))
            }
            Place::Absent => Ok((Slot::Absent(name), conditions)),
        };
        places.into_iter().map(rule).collect()
    }
}

impl<T: Copy + Ord> ArchRules<T> {
    fn new(arch: Arch) -> ArchRules<T> {
        ArchRules {
            resolver: Resolver::new(arch),
            calls: BTreeMap::new(),
        }
    }

    /// The architecture.
    pub const fn arch(&self) -> Arch {
        self.resolver.arch()
    }

    /// The rules of each number, ascending.
    pub fn calls(&self) -> impl Iterator<Item = (Nr, &CallTree<T>)> {
        self.calls.iter().filter_map(|(slot, rules)| match slot {
            Slot::Number(nr) => Some((*nr, &rules.tree)),
            Slot::Absent(_) => None,
        })
    }

    fn add(&mut self, slot: Slot, rule: (Conditions, Action, T)) -> Result<(), AddError<T>> {
        let arch = self.arch();
        let rules = self.calls.entry(slot).or_insert_with(|| Rules {
            tree: CallTree::new(arch),
            added: Vec::new(),
        });
        rules.added.push(rule);
        let (conditions, action, tag) = rule;
        let result = rules.tree.add(&conditions, action, tag);
        result.map(|_| ()).map_err(|refusal| {
            self.take_back(slot);
            AddError::Refused { arch, refusal }
        })
    }

    /// Rebuilds the tree of a call without the last added rule.
    fn take_back(&mut self, slot: Slot) {
        let arch = self.arch();
        let Some(rules) = self.calls.get_mut(&slot) else {
            return;
        };
        rules.added.pop();
        if rules.added.is_empty() {
            self.calls.remove(&slot);
            return;
        }
        rules.tree = CallTree::new(arch);
        for (conditions, action, tag) in &rules.added {
            let again = rules.tree.add(conditions, *action, *tag);
            assert!(again.is_ok(), "it was added before");
        }
    }
}

impl<T> AddError<T> {
    /// The return value of libseccomp.
    pub const fn errno(&self) -> Errno {
        match self {
            AddError::DefaultAction => Errno::Access,
            AddError::SeveralArches => Errno::NotSupported,
            AddError::UnknownCall
            | AddError::RepeatedArgument(_)
            | AddError::MultiplexedCall(_) => Errno::Invalid,
            AddError::AbsentCall(_) => Errno::Domain,
            AddError::Untranslatable(_) => Errno::Fault,
            AddError::Refused { refusal, .. } => match refusal {
                Refusal::Conflict(_) => Errno::Exists,
                Refusal::TooMany => Errno::NoMemory,
                // libseccomp would loop forever.
                Refusal::Endless => Errno::Fault,
            },
        }
    }
}

impl<T> fmt::Display for AddError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddError::DefaultAction => f.write_str("the action is the default action"),
            AddError::SeveralArches => {
                f.write_str("an exact rule needs a filter with a single architecture")
            }
            AddError::UnknownCall => f.write_str("unknown system call"),
            AddError::RepeatedArgument(arg) => {
                write!(f, "two conditions on argument {}", arg.index())
            }
            AddError::AbsentCall(arch) => write!(f, "{arch} doesn't have the system call"),
            AddError::MultiplexedCall(arch) => write!(
                f,
                "{arch} multiplexes the system call, so an exact rule can't have conditions"
            ),
            AddError::Untranslatable(arch) => write!(
                f,
                "the number has no name on the native architecture, so its number on {arch} is unknown"
            ),
            AddError::Refused { arch, refusal } => match refusal {
                Refusal::Conflict(_) => {
                    write!(f, "an earlier rule on {arch} conflicts with this one")
                }
                Refusal::TooMany => {
                    write!(
                        f,
                        "more than {MAX_RULES} rules for one system call of {arch}"
                    )
                }
                Refusal::Endless => {
                    write!(f, "libseccomp would not return from this rule on {arch}")
                }
            },
        }
    }
}

impl<T: fmt::Debug> error::Error for AddError<T> {}
