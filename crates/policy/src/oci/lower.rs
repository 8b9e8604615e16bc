//! From clauses to the sections of a ruleset.
//!
//! For every architecture each name becomes a number, or nothing. Numbers with the same clauses share one tree and
//! one group of rules, so the hundreds of calls of an allow list are one rule.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tamis_abi::{Action, Arch, Nr, syscall};
use tamis_diag::{Diagnostic, Sources, Span};
use tamis_rules::{IntervalSet, Origin, Rule, Section};
use tamis_scmp::{CallRule, CallTree, Conditions, Place, Refusal, Resolver, TooComplex, tree};

use super::clause::{self, Clause, ClauseId};
use super::looser::{self, Target};
use super::model::Entry;
use super::{Reading, text};
use crate::code;

/// The most tests of clauses and rules in the search for calls with a looser action.
const MAX_SEARCH: usize = 1 << 21;

type Tree = CallTree<ClauseId>;
/// A rule with its clause.
pub(super) type Path = CallRule<ClauseId>;

/// A clause as it applies to one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub(super) clause: ClauseId,
    /// For `socketcall` and `ipc`: the value of argument 0, which replaces the clause's conditions on it.
    pub(super) selector: Option<u32>,
}

/// The names of a profile, resolved for one architecture.
struct Named<'p> {
    /// The clauses of each number, in the order of the profile.
    present: Vec<(u32, Use)>,
    /// Calls that only other architectures have, with their clauses.
    absent: BTreeMap<&'p str, Vec<Use>>,
}

/// Lowers the entries of a profile for several architectures.
pub(super) struct Lowering<'p> {
    sources: &'p Sources,
    entries: Vec<&'p Entry<'p>>,
    clauses: Vec<Clause<'p>>,
    /// The clauses of each entry.
    ranges: Vec<std::ops::Range<u32>>,
    reading: Reading,
    /// Clauses reported to have no effect on some architecture.
    idle: BTreeSet<ClauseId>,
    /// Clauses reported as granted although their conditions don't hold.
    looser: BTreeSet<Option<ClauseId>>,
    /// The remaining tests of clauses and rules in that search.
    search: usize,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<'p> Lowering<'p> {
    pub(super) fn new(
        sources: &'p Sources,
        entries: Vec<&'p Entry<'p>>,
        reading: Reading,
    ) -> Lowering<'p> {
        let mut diagnostics = Vec::new();
        let (clauses, ranges) = clause::clauses(&entries, reading, &mut diagnostics);
        Lowering {
            sources,
            entries,
            clauses,
            ranges,
            reading,
            idle: BTreeSet::new(),
            looser: BTreeSet::new(),
            search: MAX_SEARCH,
            diagnostics,
        }
    }

    /// The rules of one architecture.
    pub(super) fn section(&mut self, arch: Arch, default: Action) -> Section {
        let named = self.resolve(arch);
        if self.reading == Reading::Libseccomp {
            self.check_absent(arch, named.absent);
        }
        let mut rules = Vec::new();
        let mut previous: Option<(Vec<Path>, IntervalSet<u32>)> = None;
        for (uses, numbers) in groups(named.present) {
            let target = Target {
                arch,
                nr: numbers[0],
                default,
            };
            let Some(paths) = self.paths(target, &uses) else {
                continue;
            };
            let numbers: IntervalSet<u32> = numbers.into_iter().collect();
            match &mut previous {
                Some((same, known)) if *same == paths => *known = known.union(&numbers),
                _ => {
                    let done = previous.replace((paths, numbers));
                    self.emit(done, &mut rules);
                }
            }
        }
        self.emit(previous, &mut rules);
        Section {
            arch,
            rules,
            default,
        }
    }

    /// The rules of one architecture, where each clause is that of a profile of its own: libseccomp merges none.
    pub(super) fn separate_rules(&mut self, arch: Arch, default: Action) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (uses, numbers) in groups(self.resolve(arch).present) {
            let target = Target {
                arch,
                nr: numbers[0],
                default,
            };
            let numbers: IntervalSet<u32> = numbers.into_iter().collect();
            for used in uses {
                let paths = self.paths(target, &[used]);
                let group = paths.map(|paths| (paths, numbers.clone()));
                self.emit(group, &mut rules);
            }
        }
        rules
    }

    fn emit(&self, group: Option<(Vec<Path>, IntervalSet<u32>)>, rules: &mut Vec<Rule>) {
        let Some((paths, numbers)) = group else {
            return;
        };
        rules.extend(paths.into_iter().map(|path| Rule {
            syscalls: numbers.clone(),
            when: path.when,
            action: path.action,
            origin: Some(self.origin(path.tag)),
        }));
    }

    /// Resolves the names of all entries for an architecture.
    fn resolve(&self, arch: Arch) -> Named<'p> {
        let resolver = Resolver::new(arch);
        let names = self.entries.iter().map(|entry| entry.names.len());
        let mut present = Vec::with_capacity(names.sum());
        let mut absent: BTreeMap<&'p str, Vec<Use>> = BTreeMap::new();
        for (entry, range) in self.entries.iter().zip(&self.ranges) {
            for name in &entry.names {
                let Some(known) = name.known else { continue };
                for place in resolver.places(known, name.text) {
                    let (nr, selector) = match place {
                        Place::Direct(nr) => (Some(nr), None),
                        Place::Multiplexed { nr, selector } => (Some(nr), Some(selector)),
                        Place::Absent => (None, None),
                    };
                    let uses = clause::ids(range).map(|clause| Use { clause, selector });
                    match nr {
                        Some(Nr(nr)) => present.extend(uses.map(|used| (nr, used))),
                        None => absent.entry(name.text).or_default().extend(uses),
                    }
                }
            }
        }
        Named { present, absent }
    }

    /// Reports conflicting rules for calls that an architecture doesn't have.
    ///
    /// libseccomp keeps rules for these as well, under negative numbers that no program tests, and rejects
    /// conflicts between them, except for multiplexed calls.
    fn check_absent(&mut self, arch: Arch, absent: BTreeMap<&str, Vec<Use>>) {
        for (name, uses) in absent {
            if let Err((refusal, clause)) = self.tree(arch, &uses) {
                let call = format!("`{name}`, which {arch} doesn't have");
                let diagnostic = self.refusal(refusal, clause, arch, &call);
                self.diagnostics.push(diagnostic);
            }
        }
    }

    /// The rule that is added to libseccomp for a clause.
    fn rule(&self, used: &Use) -> (Conditions, Action) {
        let clause = &self.clauses[used.clause.0 as usize];
        let conditions = match used.selector {
            None => clause.conditions,
            Some(selector) => clause.conditions.with_selector(selector),
        };
        (conditions, clause.action())
    }

    /// The tree of these clauses, or the clause that cannot be added and the reason.
    fn tree(&self, arch: Arch, uses: &[Use]) -> Result<Tree, (Refusal<ClauseId>, ClauseId)> {
        let mut tree = Tree::new(arch);
        for used in uses {
            let (conditions, action) = self.rule(used);
            tree.add(&conditions, action, used.clause)
                .map_err(|refusal| (refusal, used.clause))?;
        }
        Ok(tree)
    }

    /// The rules for numbers with these clauses; `None` after an error.
    fn paths(&mut self, target: Target, uses: &[Use]) -> Option<Vec<Path>> {
        let (arch, example) = (target.arch, target.nr);
        if self.reading == Reading::Text {
            return Some(text::rules(arch, uses, &self.clauses));
        }
        let tree = match self.tree(arch, uses) {
            Ok(tree) => tree,
            Err((refusal, clause)) => {
                let call = call_name(arch, example);
                let diagnostic = self.refusal(refusal, clause, arch, &call);
                self.diagnostics.push(diagnostic);
                return None;
            }
        };
        match tree.rules() {
            Ok(paths) => {
                self.warn_about_idle(uses, &paths, arch, example);
                self.warn_about_looser(uses, &paths, target);
                Some(paths)
            }
            Err(TooComplex) => {
                let clause = uses.last().map_or(ClauseId(0), |used| used.clause);
                let call = call_name(arch, example);
                let message = format!("too many combinations of conditions on {call}");
                let diagnostic = Diagnostic::error(code::OCI_TOO_COMPLEX, message)
                    .label(self.place(clause), "the last entry for it");
                self.diagnostics.push(diagnostic);
                None
            }
        }
    }

    fn refusal(
        &self,
        refusal: Refusal<ClauseId>,
        new: ClauseId,
        arch: Arch,
        call: &str,
    ) -> Diagnostic {
        match refusal {
            Refusal::Conflict(old) => {
                let action = self.clauses[old.0 as usize].action();
                let message = format!("two entries for {call} contradict each other");
                Diagnostic::error(code::OCI_CONFLICT, message)
                    .label(self.place(new), "this entry cannot be added")
                    .label(
                        self.place(old),
                        format!("this entry already has the action {action}"),
                    )
                    .note("libseccomp rejects such a pair (EEXIST): the container would not start")
                    .help("delete one of them, or give both the same action")
            }
            Refusal::TooMany => {
                let message = format!("more than {} entries for {call}", tree::MAX_RULES);
                Diagnostic::error(code::OCI_TOO_COMPLEX, message)
                    .label(self.place(new), "this is one too many")
                    .note("no program within the kernel's limit could distinguish them")
            }
            Refusal::Endless => {
                let message = format!("libseccomp cannot take this entry for {call} on {arch}");
                Diagnostic::error(code::OCI_ENDLESS, message)
                    .label(self.place(new), "libseccomp would never return from adding this")
                    .note(
                        "an earlier entry for the same call has an inequality followed by a condition on a \
                         later argument",
                    )
                    .help("put the inequality on the argument with the highest index")
            }
        }
    }

    /// Warns about clauses without any rule.
    fn warn_about_idle(&mut self, uses: &[Use], paths: &[Path], arch: Arch, example: u32) {
        let Some(winner) = paths.first() else { return };
        let clauses: BTreeSet<ClauseId> = paths.iter().map(|path| path.tag).collect();
        let actions: HashSet<Action> = paths.iter().map(|path| path.action).collect();
        for used in uses {
            let action = self.clauses[used.clause.0 as usize].action();
            let counts = clauses.contains(&used.clause) || actions.contains(&action);
            if counts || !self.idle.insert(used.clause) {
                continue;
            }
            let message = format!("this entry has no effect on {}", call_name(arch, example));
            let diagnostic = Diagnostic::warning(code::OCI_NO_EFFECT, message)
                .label(
                    self.place_of(used.clause, arch, example),
                    format!("would return {action}"),
                )
                .label(
                    self.place_of(winner.tag, arch, example),
                    format!("returns {} instead", winner.action),
                );
            self.diagnostics.push(diagnostic);
        }
    }

    /// Warns about calls that the rules treat less strictly than the clauses, with an example.
    fn warn_about_looser(&mut self, uses: &[Use], paths: &[Path], target: Target) {
        let clauses: Vec<(Conditions, Action)> = uses.iter().map(|used| self.rule(used)).collect();
        let Some(grant) = looser::find(target, &clauses, paths, &mut self.search) else {
            return;
        };
        if !self.looser.insert(grant.tag) {
            return;
        }
        let call = call_name(target.arch, target.nr);
        let message = format!("libseccomp grants more of {call} than the entries say");
        let clause = grant.tag.or(uses.first().map(|used| used.clause));
        let help = "`--text` takes the entries as they are written; runtimes don't";
        let label = match grant.tag {
            Some(_) => "this entry is applied where its conditions don't hold",
            None => "the default is applied where this entry or another holds",
        };
        let conditions = clauses.iter().flat_map(|(conditions, _)| conditions.iter());
        let last = conditions
            .map(|condition| condition.arg.index())
            .max()
            .unwrap_or(0);
        let args: Vec<String> = grant.args[..=last]
            .iter()
            .map(|arg| format!("{arg:#x}"))
            .collect();
        let note = format!(
            "{call} with the arguments ({}) gets {}, and the entries say {}",
            args.join(", "),
            grant.action,
            grant.said
        );
        let diagnostic = Diagnostic::warning(code::OCI_LOOSER, message);
        let diagnostic = match clause {
            Some(clause) => diagnostic.label(self.place_of(clause, target.arch, target.nr), label),
            None => diagnostic,
        };
        self.diagnostics.push(diagnostic.note(note).help(help));
    }

    /// The span of a clause: its condition if that is the whole clause, otherwise the first name.
    fn place(&self, clause: ClauseId) -> Span {
        let clause = &self.clauses[clause.0 as usize];
        match clause.alternative {
            Some(condition) => condition.span,
            None => clause
                .entry
                .names
                .first()
                .map_or(clause.entry.span, |name| name.span),
        }
    }

    /// The place of a call among the names of a clause's entry, or that of the clause if it has conditions.
    fn place_of(&self, clause: ClauseId, arch: Arch, nr: u32) -> Span {
        let Clause {
            entry, alternative, ..
        } = &self.clauses[clause.0 as usize];
        let name = syscall::name(arch, syscall::Nr(nr)).filter(|_| alternative.is_none());
        let mut names = entry.names.iter();
        let named = name.and_then(|call| names.find(|name| name.text == call));
        named.map_or_else(|| self.place(clause), |name| name.span)
    }

    fn origin(&self, clause: ClauseId) -> Origin {
        crate::origin(self.sources, self.place(clause))
    }
}

/// The numbers, grouped by their clauses.
fn groups(mut uses: Vec<(u32, Use)>) -> BTreeMap<Vec<Use>, Vec<u32>> {
    uses.sort_by_key(|(nr, _)| *nr);
    let mut groups: BTreeMap<Vec<Use>, Vec<u32>> = BTreeMap::new();
    let mut key: Vec<Use> = Vec::new();
    for same_nr in uses.chunk_by(|(a, _), (b, _)| a == b) {
        key.clear();
        key.extend(same_nr.iter().map(|(_, used)| *used));
        match groups.get_mut(&key) {
            Some(numbers) => numbers.push(same_nr[0].0),
            None => {
                groups.insert(key.clone(), vec![same_nr[0].0]);
            }
        }
    }
    groups
}

fn call_name(arch: Arch, nr: u32) -> String {
    match syscall::name(arch, syscall::Nr(nr)) {
        Some(name) => format!("`{name}`"),
        None => format!("number {nr} of {arch}"),
    }
}
