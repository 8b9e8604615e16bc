//! The meaning of a policy by names of calls, for all languages with names.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, Arch, syscall};
use tamis_rules::{IntervalSet, Predicate, Section};

use super::{Listing, Loss, Meaning};
use crate::code;
use tamis_diag::words::list;

/// The actions of calls by name.
pub(super) struct Calls<'m> {
    /// The actions of each call on the architectures that have it.
    pub(super) named: BTreeMap<&'static str, Vec<Answers<'m>>>,
    /// The actions of numbers without a name on each architecture.
    unnamed: Vec<Answers<'m>>,
}

/// The actions of a call on an architecture.
#[derive(Clone, Debug)]
pub(super) struct Answers<'m> {
    pub(super) arch: Arch,
    /// Exactly one of the conditions holds; `None` is a condition that is too long to express.
    pub(super) outcomes: Vec<(Action, Option<&'m Predicate>)>,
}

/// The actions of a language.
#[derive(Clone, Copy)]
pub(super) struct Actions {
    /// The language in messages: `OCI profiles`.
    pub(super) plural: &'static str,
    /// The nearest action of the language that is as strict.
    pub(super) nearest_action: fn(Action) -> Action,
}

impl<'m> Calls<'m> {
    /// The calls of these architectures with actions of the language; actions that it lacks are added to the
    /// losses.
    pub(super) fn from_meaning(
        meaning: &'m Meaning,
        arches: &[Arch],
        actions: Actions,
        losses: &mut Vec<Loss>,
    ) -> Calls<'m> {
        let mut calls = Calls {
            named: BTreeMap::new(),
            unnamed: Vec::new(),
        };
        let mut lost: BTreeMap<u32, Vec<&'static str>> = BTreeMap::new();
        let listings = meaning.listings.iter();
        for listing in listings.filter(|listing| arches.contains(&listing.arch)) {
            let mut named: IntervalSet<u32> = IntervalSet::empty();
            for (nr, name) in syscall::all(listing.arch) {
                named = named.union(&IntervalSet::single(nr.0));
                // Skip aliases of the same number.
                if syscall::name(listing.arch, nr) != Some(name) {
                    continue;
                }
                let answers = Answers::to(listing, &IntervalSet::single(nr.0));
                for (action, _) in &answers.outcomes {
                    let names = lost.entry(action.ret()).or_default();
                    names.push(name);
                }
                let answers = answers.with_actions(actions.nearest_action);
                calls.named.entry(name).or_default().push(answers);
            }
            let others = Section::domain(listing.arch).difference(&named);
            let answers = Answers::to(listing, &others);
            for (action, _) in &answers.outcomes {
                lost.entry(action.ret()).or_default();
            }
            calls
                .unnamed
                .push(answers.with_actions(actions.nearest_action));
        }
        losses.extend(lost.into_iter().filter_map(|(ret, mut names)| {
            let action = Action::from_ret(ret);
            names.sort_unstable();
            names.dedup();
            actions.loss(action, names)
        }));
        calls
    }

    /// The action for numbers without a name, with a loss if there are several.
    pub(super) fn default(&self, plural: &str, losses: &mut Vec<Loss>) -> Action {
        let strictest = strictest(&self.unnamed);
        let is_other = |answers: &&Answers| answers.whole() != Some(strictest);
        let odd: Vec<Arch> = self
            .unnamed
            .iter()
            .filter(is_other)
            .map(|a| a.arch)
            .collect();
        if !odd.is_empty() {
            losses.push(Loss {
                code: code::EXPORT_NUMBERS,
                message: format!("{plural} cannot distinguish numbers without a name"),
                kept: format!("all of them get {strictest}, the strictest of their actions"),
                calls: Vec::new(),
                arches: odd,
            });
        }
        strictest
    }
}

/// These architectures without idle ones, which never execute a call, unless all are idle. A name applies to the calls
/// of every architecture, so the rules for the others would have to be as strict. Runtimes kill calls of omitted
/// architectures.
pub(super) fn without_idle(
    meaning: &Meaning,
    arches: Vec<Arch>,
    losses: &mut Vec<Loss>,
) -> Vec<Arch> {
    let is_idle = |arch: &Arch| {
        let mut own = meaning
            .listings
            .iter()
            .filter(|listing| listing.arch == *arch);
        own.all(Listing::is_idle)
    };
    let (idle, busy): (Vec<Arch>, Vec<Arch>) = arches.iter().copied().partition(is_idle);
    if idle.is_empty() || busy.is_empty() {
        return arches;
    }
    let names: Vec<&str> = idle.iter().map(|arch| arch.name()).collect();
    losses.push(Loss {
        code: code::EXPORT_ARCHES,
        message: format!("no call of {} is executed", list(&names)),
        kept: "the architecture is omitted, so its calls get kill_thread".to_owned(),
        calls: Vec::new(),
        arches: idle,
    });
    busy
}

impl Listing {
    /// Whether a call is never executed.
    fn is_idle(&self) -> bool {
        let mut outcomes = self.groups.iter().flat_map(|group| &group.outcomes);
        outcomes.all(|outcome| {
            use ActionKind::{Errno, KillProcess, KillThread, Trap};
            matches!(outcome.action.kind, KillProcess | KillThread | Trap | Errno)
        })
    }
}

impl<'m> Answers<'m> {
    fn to(listing: &'m Listing, numbers: &IntervalSet<u32>) -> Answers<'m> {
        let mut outcomes: Vec<(Action, Option<&Predicate>)> = Vec::new();
        for group in &listing.groups {
            if group.numbers.intersection(numbers).is_empty() {
                continue;
            }
            for outcome in &group.outcomes {
                outcomes.push((outcome.action, outcome.when.as_ref()));
            }
        }
        Answers {
            arch: listing.arch,
            outcomes,
        }
    }

    /// The same with the nearest actions of a language.
    fn with_actions(mut self, nearest_action: fn(Action) -> Action) -> Answers<'m> {
        for (action, _) in &mut self.outcomes {
            *action = nearest_action(*action);
        }
        self
    }

    /// The action, if it is the same for all arguments.
    pub(super) fn whole(&self) -> Option<Action> {
        let (first, _) = *self.outcomes.first()?;
        let is_same = |(action, _): &(Action, _)| *action == first;
        self.outcomes.iter().all(is_same).then_some(first)
    }
}

impl Actions {
    /// The loss of replacing an action by the language's, if any.
    fn loss(self, action: Action, names: Vec<&'static str>) -> Option<Loss> {
        let nearest = (self.nearest_action)(action);
        if nearest == action {
            return None;
        }
        let what = match names.as_slice() {
            [] => "numbers without a name".to_owned(),
            names => list(names),
        };
        Some(Loss {
            code: code::EXPORT_ACTION,
            message: format!("{} have no action {action}", self.plural),
            kept: format!("{nearest} for {what}"),
            calls: names,
            arches: Vec::new(),
        })
    }
}

/// The strictest of all actions; kill if there is none.
pub(super) fn strictest(answers: &[Answers<'_>]) -> Action {
    let all = answers.iter().flat_map(|answers| &answers.outcomes);
    let all = all.map(|(action, _)| *action);
    all.min_by_key(|action| (Action::precedence(action.ret()), action.data))
        .unwrap_or(Action::KILL_PROCESS)
}

/// An action without unused data, and with an errno in the range; other errnos become `EPERM`.
pub(super) fn with_errno_in(action: Action, first: u16, last: u16) -> Action {
    match action.kind {
        ActionKind::Errno if (first..=last).contains(&action.data) => action,
        ActionKind::Errno => Action::errno(1),
        kind => Action::new(kind, 0),
    }
}

/// Another action of the same kind, so that an entry with the default's action takes effect.
pub(super) fn forced(default: Action) -> Action {
    /// `ENOSYS` on nearly all architectures.
    const ENOSYS: u16 = 38;
    match default.kind {
        ActionKind::KillProcess => Action::KILL_THREAD,
        ActionKind::KillThread | ActionKind::Trap => Action::KILL_PROCESS,
        ActionKind::Errno if default.data == ENOSYS => Action::errno(1),
        _ => Action::errno(ENOSYS),
    }
}
