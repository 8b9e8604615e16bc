//! What a policy means, by the names of calls: what every language that names calls begins with.

use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, Arch, syscall};
use tamis_diag::code;
use tamis_rules::{IntervalSet, Predicate, Section};

use super::words::list;
use super::{Listing, Loss, Meaning};

/// What calls get, by name.
pub(super) struct Calls<'m> {
    /// What each call gets on the architectures that have it.
    pub(super) named: BTreeMap<&'static str, Vec<Answers<'m>>>,
    /// What numbers without a name get on each architecture.
    unnamed: Vec<Answers<'m>>,
}

/// What a call gets on an architecture.
#[derive(Clone, Debug)]
pub(super) struct Answers<'m> {
    pub(super) arch: Arch,
    /// Just one of the conditions holds; `None` is one that is too long to be said.
    pub(super) outcomes: Vec<(Action, Option<&'m Predicate>)>,
}

/// How the actions of a policy are said in a language.
#[derive(Clone, Copy)]
pub(super) struct Actions {
    /// What a language is called in messages: `OCI profiles`.
    pub(super) plural: &'static str,
    /// The nearest action that it has and that is as strict.
    pub(super) said: fn(Action) -> Action,
}

impl<'m> Calls<'m> {
    /// The calls of these architectures, with the actions that a language has; those that it lacks are
    /// added to the losses.
    pub(super) fn of(
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
                // An older name of a number says the same.
                if syscall::name(listing.arch, nr) != Some(name) {
                    continue;
                }
                let answers = Answers::to(listing, &IntervalSet::single(nr.0));
                for (action, _) in &answers.outcomes {
                    let names = lost.entry(action.ret()).or_default();
                    names.push(name);
                }
                let answers = answers.said(actions.said);
                calls.named.entry(name).or_default().push(answers);
            }
            let others = Section::domain(listing.arch).difference(&named);
            let answers = Answers::to(listing, &others);
            for (action, _) in &answers.outcomes {
                lost.entry(action.ret()).or_default();
            }
            calls.unnamed.push(answers.said(actions.said));
        }
        losses.extend(lost.into_iter().filter_map(|(ret, mut names)| {
            let action = Action::from_ret(ret);
            names.sort_unstable();
            names.dedup();
            actions.loss(action, names)
        }));
        calls
    }

    /// The one answer for numbers without a name, with a loss if there are several.
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

/// These architectures without those of which no call is ever executed, if there are others: names mean
/// their calls, too, and what is said of those would have to be as strict. Runtimes kill them then.
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
    /// Whether no call is ever executed.
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

    /// The same with other actions.
    fn said(mut self, said: fn(Action) -> Action) -> Answers<'m> {
        for (action, _) in &mut self.outcomes {
            *action = said(*action);
        }
        self
    }

    /// The answer, if it is the same for all arguments.
    pub(super) fn whole(&self) -> Option<Action> {
        let (first, _) = *self.outcomes.first()?;
        let is_same = |(action, _): &(Action, _)| *action == first;
        self.outcomes.iter().all(is_same).then_some(first)
    }
}

impl Actions {
    /// What is lost by saying an action in this language, if anything.
    fn loss(self, action: Action, names: Vec<&'static str>) -> Option<Loss> {
        let said = (self.said)(action);
        if said == action {
            return None;
        }
        let what = match names.as_slice() {
            [] => "numbers without a name".to_owned(),
            names => list(names),
        };
        Some(Loss {
            code: code::EXPORT_ACTION,
            message: format!("{} have no action {action}", self.plural),
            kept: format!("{said} for {what}"),
            calls: names,
            arches: Vec::new(),
        })
    }
}

/// The strictest of all answers; killing if there is none.
pub(super) fn strictest(answers: &[Answers<'_>]) -> Action {
    let all = answers.iter().flat_map(|answers| &answers.outcomes);
    let all = all.map(|(action, _)| *action);
    all.min_by_key(|action| (Action::precedence(action.ret()), action.data))
        .unwrap_or(Action::KILL_PROCESS)
}

/// An action without data that mean nothing, and with an errno in a range; what is out of it becomes
/// `EPERM`.
pub(super) fn with_errno_in(action: Action, first: u16, last: u16) -> Action {
    match action.kind {
        ActionKind::Errno if (first..=last).contains(&action.data) => action,
        ActionKind::Errno => Action::errno(1),
        kind => Action::new(kind, 0),
    }
}

/// An answer of the same kind, to make an entry count that says what the default says.
pub(super) fn forced(default: Action) -> Action {
    /// `ENOSYS` nearly everywhere.
    const ENOSYS: u16 = 38;
    match default.kind {
        ActionKind::KillProcess => Action::KILL_THREAD,
        ActionKind::KillThread | ActionKind::Trap => Action::KILL_PROCESS,
        ActionKind::Errno if default.data == ENOSYS => Action::errno(1),
        _ => Action::errno(ENOSYS),
    }
}
