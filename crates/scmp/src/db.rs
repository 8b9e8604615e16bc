//! The rules of a filter on all of its architectures.
//!
//! [`Db::add_rule`] implements `seccomp_rule_add`: a rule for a call is added on every architecture, where the call
//! may have another number, several places or none. If one architecture refuses it, it is added on none.
//! Architectures can be added, removed and taken over from another filter; calls have priorities.
//!
//! A refused rule leaves the architectures as they are, and so does the end of a transaction without changes.

use std::collections::BTreeMap;
use std::error;
use std::fmt;

use tamis_abi::{Action, Arch, ArgIndex, Nr};

use crate::condition::{Condition, Conditions};
use crate::number::{self, NotRewritable, SKIP};
use crate::tree::{Added, CallTree, MAX_RULES, Refusal};

/// The rules of a filter on all of its architectures: libseccomp's `scmp_filter_ctx` without attributes.
///
/// ```
/// use tamis_abi::{Action, Arch};
/// use tamis_scmp::{Db, Errno, Exactness};
/// let mut db: Db<&str> = Db::new(Action::KILL_THREAD, Arch::X86_64, &[Arch::X86]);
/// // 0 is `read` on the native architecture.
/// db.add_rule(Exactness::Adjusted, Action::ALLOW, 0, &[], "first").unwrap();
/// let places: Vec<_> = db.filters().iter().map(|filter| filter.calls().next().unwrap().0.0).collect();
/// assert_eq!(places, [0, 3]);
/// let same = db.add_rule(Exactness::Adjusted, Action::KILL_THREAD, 0, &[], "second");
/// assert_eq!(same.unwrap_err().errno(), Errno::Access);
/// ```
#[derive(Clone, Debug)]
pub struct Db<T> {
    native: Arch,
    default: Action,
    filters: Vec<ArchRules<T>>,
    /// The most rules and conditions that one call has had.
    heaviest: usize,
}

/// The rules on one architecture.
#[derive(Clone, Debug)]
pub struct ArchRules<T> {
    arch: Arch,
    /// By number; pseudo numbers, which are negative, are greater than all others here.
    calls: BTreeMap<u32, Entry<T>>,
}

/// The properties of one call.
#[derive(Clone, Debug)]
struct Entry<T> {
    /// The greatest priority that the caller gave.
    user_priority: u8,
    /// Whether the first rule made the entry, and not a priority: the search tree of the pseudo code counts only
    /// these.
    is_counted: bool,
    rules: Option<Rules<T>>,
}

/// The rules of one call.
#[derive(Clone, Debug)]
struct Rules<T> {
    tree: CallTree<T>,
    /// The rules as added, to rebuild the tree after a refusal.
    added: Vec<AddedRule<T>>,
    /// The count of rules that were added and of their conditions, refused ones included.
    weight: usize,
}

/// A rule as it was added. Most rules have no condition, and there are a thousand of them: [`Conditions`] have a place for
/// each argument.
#[derive(Clone, Debug)]
struct AddedRule<T> {
    conditions: Box<[Condition]>,
    action: Action,
    tag: T,
}

/// A call with rules or a priority.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed<'a, T> {
    /// Its number on this architecture, or a pseudo number.
    pub(crate) number: u32,
    /// The order: the caller's priority, then calls with small trees first.
    pub(crate) priority: u32,
    pub(crate) tree: Option<&'a CallTree<T>>,
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
    /// Two conditions test this argument.
    RepeatedArgument(ArgIndex),
    /// The rule is exact and this architecture lacks the call.
    AbsentCall(Arch),
    /// The rule is exact and has conditions on a call that this architecture multiplexes.
    MultiplexedCall(Arch),
    /// The number has no name on the native architecture, so its number on this other architecture is unknown.
    Untranslatable(Arch),
    /// The number is reserved.
    ReservedNumber,
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

/// Why an architecture, or a filter with architectures, can't be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchError {
    /// The filter has this architecture; libseccomp returns `EEXIST`.
    Exists(Arch),
    /// It has another byte order; libseccomp returns `EDOM`.
    ByteOrder(Arch),
}

impl ArchError {
    /// The return value of libseccomp.
    pub const fn errno(self) -> Errno {
        match self {
            ArchError::Exists(_) => Errno::Exists,
            ArchError::ByteOrder(_) => Errno::Domain,
        }
    }
}

/// The part of a priority that depends on the size of a call's tree.
const CHAIN_PRIORITY: u32 = 0xffff;

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
            heaviest: 0,
        }
    }

    /// The action of a call without a matching rule.
    pub const fn default_action(&self) -> Action {
        self.default
    }

    /// The rules of each architecture, in the order in which they were added.
    pub fn filters(&self) -> &[ArchRules<T>] {
        &self.filters
    }

    /// The most rules, each with its conditions, that a call has had on an architecture: the memory for adding a rule
    /// grows with it.
    pub const fn heaviest_call(&self) -> usize {
        self.heaviest
    }

    /// The rules of an architecture.
    pub fn filter(&self, arch: Arch) -> Option<&ArchRules<T>> {
        self.filters.iter().find(|filter| filter.arch == arch)
    }

    /// Adds an architecture without rules, `seccomp_arch_add`.
    ///
    /// # Errors
    /// If it exists or has another byte order than the first.
    pub fn add_arch(&mut self, arch: Arch) -> Result<(), ArchError> {
        if self.filter(arch).is_some() {
            return Err(ArchError::Exists(arch));
        }
        if self
            .filters
            .first()
            .is_some_and(|first| first.arch.endian() != arch.endian())
        {
            return Err(ArchError::ByteOrder(arch));
        }
        self.filters.push(ArchRules::new(arch));
        Ok(())
    }

    /// Removes an architecture and its rules, `seccomp_arch_remove`; false if the filter doesn't have it.
    pub fn remove_arch(&mut self, arch: Arch) -> bool {
        let before = self.filters.len();
        self.filters.retain(|filter| filter.arch != arch);
        self.filters.len() < before
    }

    /// Whether [`merge`](Self::merge) can take over the architectures of another filter.
    ///
    /// # Errors
    /// If both have an architecture, or byte orders differ.
    pub fn check_merge(&self, other: &Db<T>) -> Result<(), ArchError> {
        let (Some(first), Some(theirs)) = (self.filters.first(), other.filters.first()) else {
            return Ok(());
        };
        if first.arch.endian() != theirs.arch.endian() {
            return Err(ArchError::ByteOrder(theirs.arch));
        }
        let common = other
            .filters
            .iter()
            .find(|filter| self.filter(filter.arch).is_some());
        common.map_or(Ok(()), |filter| Err(ArchError::Exists(filter.arch)))
    }

    /// Takes over the architectures of another filter, with their rules: `seccomp_merge`.
    ///
    /// # Errors
    /// As [`check_merge`](Self::check_merge).
    pub fn merge(&mut self, other: Db<T>) -> Result<(), ArchError> {
        self.check_merge(&other)?;
        self.filters.extend(other.filters);
        self.heaviest = self.heaviest.max(other.heaviest);
        Ok(())
    }

    /// Gives a call, a number on the native architecture, a priority on all architectures unless it has a greater
    /// one: `seccomp_syscall_priority`.
    ///
    /// # Errors
    /// If the number is unknown on an architecture; the others then have the priority.
    pub fn set_priority(&mut self, call: i32, priority: u8) -> Result<(), AddError<T>> {
        let mut result = Ok(());
        let native = self.native;
        for filter in &mut self.filters {
            let number = translate(native, filter.arch, call).and_then(|number| {
                match number::rewrite(filter.arch, number) {
                    Ok(number) => Ok(Some(number)),
                    Err(NotRewritable::Absent) => Ok(None),
                    Err(NotRewritable::Reserved) => Err(AddError::ReservedNumber),
                }
            });
            match number {
                Ok(Some(number)) => filter.raise_priority(number, priority),
                Ok(None) => {}
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    /// Forgets all priorities, as libseccomp does when it returns to an earlier state.
    pub fn forget_priorities(&mut self) {
        for filter in &mut self.filters {
            filter.calls.retain(|_, entry| entry.rules.is_some());
            for entry in filter.calls.values_mut() {
                entry.user_priority = 0;
                entry.is_counted = true;
            }
        }
    }

    /// Adds a rule to all architectures: if all conditions hold, the action. The call is a number on the native
    /// architecture, see [`number`]. Conflicts and resulting rules contain the tag.
    ///
    /// # Errors
    /// See [`AddError`]; the rule is then added on no architecture.
    pub fn add_rule(
        &mut self,
        exactness: Exactness,
        action: Action,
        call: i32,
        conditions: &[Condition],
        tag: T,
    ) -> Result<(), AddError<T>> {
        if action == self.default {
            return Err(AddError::DefaultAction);
        }
        if exactness == Exactness::Exact && self.filters.len() > 1 {
            return Err(AddError::SeveralArches);
        }
        let conditions = Conditions::new(conditions)
            .map_err(|repeated| AddError::RepeatedArgument(repeated.0))?;
        let native = self.native;
        let mut done = Vec::new();
        let heaviest = &mut self.heaviest;
        for (index, filter) in self.filters.iter_mut().enumerate() {
            let added =
                places(native, filter.arch, call, &conditions, exactness).and_then(|rules| {
                    rules
                        .into_iter()
                        .flatten()
                        .try_for_each(|(number, conditions)| {
                            let weight = filter.add(number, (conditions, action, tag))?;
                            *heaviest = weight.max(*heaviest);
                            done.push((index, number));
                            Ok(())
                        })
                });
            if let Err(error) = added {
                for (index, number) in done.into_iter().rev() {
                    self.filters[index].take_back(number);
                }
                self.forget_priorities();
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The number of a call on another architecture than the native one.
fn translate<T>(native: Arch, arch: Arch, call: i32) -> Result<i32, AddError<T>> {
    if call == SKIP || arch == native {
        return Ok(call);
    }
    number::translate(native, arch, call).ok_or(AddError::Untranslatable(arch))
}

/// The numbers under which a rule is kept on one architecture, at most two, and its conditions there.
fn places<T>(
    native: Arch,
    arch: Arch,
    call: i32,
    conditions: &Conditions,
    exactness: Exactness,
) -> Result<[Option<(i32, Conditions)>; 2], AddError<T>> {
    let is_exact = exactness == Exactness::Exact;
    let number = translate(native, arch, call)?;
    let unchanged = Some((number, *conditions));
    if number == SKIP {
        return Ok([unchanged, None]);
    }
    if !number::has_multiplexers(arch) {
        return match number < SKIP && is_exact {
            true => Err(AddError::AbsentCall(arch)),
            false => Ok([unchanged, None]),
        };
    }
    match number::multiplexed(arch, number) {
        Some(_) if is_exact && !conditions.is_empty() => Err(AddError::MultiplexedCall(arch)),
        Some(Err(number::Unassigned)) => Err(AddError::Untranslatable(arch)),
        Some(Ok(to)) => {
            let selected = conditions.with_selector(to.selector);
            Ok([
                Some((to.multiplexer, selected)),
                Some((to.direct, *conditions)),
            ])
        }
        None if number >= 0 => Ok([unchanged, None]),
        None if is_exact => Err(AddError::AbsentCall(arch)),
        None => Ok([None, None]),
    }
}

impl<T: Copy + Ord> ArchRules<T> {
    fn new(arch: Arch) -> ArchRules<T> {
        ArchRules {
            arch,
            calls: BTreeMap::new(),
        }
    }

    /// The architecture.
    pub const fn arch(&self) -> Arch {
        self.arch
    }

    /// The rules of each number that a program tests, ascending.
    pub fn calls(&self) -> impl Iterator<Item = (Nr, &CallTree<T>)> {
        let tested = self.calls.iter().filter(|(number, _)| is_tested(**number));
        tested.filter_map(|(number, entry)| Some((Nr(*number), &entry.rules.as_ref()?.tree)))
    }

    /// The priorities that the caller gave to numbers that a program tests.
    pub fn user_priorities(&self) -> impl Iterator<Item = (Nr, u8)> {
        let given = self
            .calls
            .iter()
            .filter(|(_, entry)| entry.user_priority > 0);
        let tested = given.filter(|(number, _)| is_tested(**number));
        tested.map(|(number, entry)| (Nr(*number), entry.user_priority))
    }

    /// All calls with rules or a priority, ascending, pseudo numbers last.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Listed<'_, T>> {
        self.calls.iter().map(|(number, entry)| {
            let tree = entry.rules.as_ref().map(|rules| &rules.tree);
            let size = tree.map_or(CHAIN_PRIORITY, |tree| tree.node_count() as u32);
            Listed {
                number: *number,
                priority: u32::from(entry.user_priority) << 16
                    | CHAIN_PRIORITY.wrapping_sub(size) & CHAIN_PRIORITY,
                tree,
            }
        })
    }

    /// The count of calls that the search tree of the pseudo code is made for.
    pub(crate) fn counted_calls(&self) -> usize {
        self.calls.values().filter(|entry| entry.is_counted).count()
    }

    fn raise_priority(&mut self, number: i32, priority: u8) {
        let entry = self.calls.entry(number as u32).or_insert(Entry {
            user_priority: 0,
            is_counted: false,
            rules: None,
        });
        entry.user_priority = entry.user_priority.max(priority);
    }

    /// Returns the count of rules and conditions of the call.
    fn add(&mut self, number: i32, rule: (Conditions, Action, T)) -> Result<usize, AddError<T>> {
        let arch = self.arch;
        let entry = self.calls.entry(number as u32).or_insert_with(|| Entry {
            user_priority: 0,
            is_counted: true,
            rules: None,
        });
        let rules = entry.rules.get_or_insert_with(|| Rules {
            tree: CallTree::of_any_size(arch),
            added: Vec::new(),
            weight: 0,
        });
        let (conditions, action, tag) = rule;
        let added = AddedRule {
            conditions: conditions.iter().copied().collect(),
            action,
            tag,
        };
        rules.weight += 1 + added.conditions.len();
        if rules.added.is_empty() {
            // Most calls have one rule; a vector that grows has places for four.
            rules.added.reserve_exact(1);
        }
        rules.added.push(added);
        let weight = rules.weight;
        match rules.tree.add(&conditions, action, tag) {
            Ok(Added::Replaced) => entry.user_priority = 0,
            Ok(_) => {}
            Err(refusal) => {
                self.take_back(number);
                return Err(AddError::Refused { arch, refusal });
            }
        }
        Ok(weight)
    }

    /// Rebuilds the tree of a call without the last added rule.
    fn take_back(&mut self, number: i32) {
        let Some(entry) = self.calls.get_mut(&(number as u32)) else {
            return;
        };
        let Some(rules) = &mut entry.rules else {
            return;
        };
        rules.added.pop();
        if rules.added.is_empty() {
            self.calls.remove(&(number as u32));
            return;
        }
        rules.tree = CallTree::of_any_size(self.arch);
        for added in &rules.added {
            let conditions = Conditions::new(&added.conditions);
            let conditions = conditions.expect("they were conditions of one rule");
            let again = rules.tree.add(&conditions, added.action, added.tag);
            assert!(again.is_ok(), "it was added before");
        }
    }
}

/// Whether a program tests a number: it isn't a pseudo number.
pub(crate) const fn is_tested(number: u32) -> bool {
    number <= i32::MAX as u32 || number == SKIP as u32
}

impl<T> AddError<T> {
    /// The return value of libseccomp.
    pub const fn errno(&self) -> Errno {
        match self {
            AddError::DefaultAction => Errno::Access,
            AddError::SeveralArches => Errno::NotSupported,
            AddError::ReservedNumber
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
            AddError::ReservedNumber => f.write_str("the number is reserved"),
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
