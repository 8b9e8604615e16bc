//! Explanations of denied calls: the rule that decided, and the smallest change of the policy that allows them.

use std::collections::{BTreeMap, BTreeSet};

use tamis_abi::{Action, Arch, ArgIndex, Nr, SeccompData, errno, syscall};
use tamis_bpf::{Program, Stack, interp};
use tamis_diag::Sources;
use tamis_diag::escape::on_one_line;
use tamis_diag::words::list;
use tamis_prover::{Answer, Limits, Subject, decide};
use tamis_report::addition::{self, Addition, Denial};
use tamis_report::denied::{AdditionEntry, DeniedEntry, essence};
use tamis_report::entry::counted;
use tamis_report::explain;
use tamis_rules::{Cause, IntervalSet, OperandSource, Predicate, Rule, Ruleset, Section, Test};
use tamis_session::{Input, InputKind, Policy};

mod notify;
mod records;

pub use notify::notifying;
pub use records::{Recorded, recorded};

/// Loads the text of a changed policy, with the options of the original; `None` if it has errors.
pub type Reload<'r> = dyn Fn(Input, InputKind) -> Option<Policy> + 'r;

/// The most kinds of denied calls that are kept, which bounds the memory for programs that try all numbers.
const MAX_KINDS: usize = 1000;
/// The most calls of a kind that are shown, if they differ in memory contents.
const MAX_SHOWN: usize = 4;

/// Denied calls, counted by kind: calls of a kind differ only in addresses and the like.
#[derive(Debug, Default)]
pub struct Denials {
    kinds: BTreeMap<Key, Kind>,
    /// The number of calls whose kinds are not kept.
    others: u64,
}

/// The key of a kind: the call without varying arguments, the action, and the place of the rule.
type Key = (u32, u32, [u64; 6], u32, Option<(u32, u32)>);

/// Calls of one kind.
#[derive(Debug)]
struct Kind {
    first: SeccompData,
    action: Action,
    count: u64,
    /// Some of the calls with memory contents.
    shown: Vec<String>,
    /// Whether there are more different ones.
    has_more: bool,
}

/// The filter that denied a call.
pub struct Decider<'p> {
    /// The policy of the filter.
    pub policy: &'p Policy,
    /// Whether the other filters allow the call.
    pub is_alone: bool,
}

impl<'p> Decider<'p> {
    /// The filter of a stack that denied a call, if it has a policy.
    pub fn in_stack(
        stack: &Stack,
        policies: &'p [Option<Policy>],
        data: &SeccompData,
    ) -> Option<Decider<'p>> {
        let filter = stack.run(data).decided_by?;
        let denies = |filter: &&Program| {
            let action = Action::from_ret(interp::run(filter, data).ret);
            !action.kind.executes()
        };
        let denying = stack.programs().iter().filter(denies);
        Some(Decider {
            policy: policies.get(filter)?.as_ref()?,
            is_alone: denying.count() == 1,
        })
    }
}

impl Denials {
    /// Counts a call that the filter of this policy denied. The function formats it with memory contents.
    pub fn add(
        &mut self,
        data: &SeccompData,
        action: Action,
        policy: Option<&Policy>,
        show: impl FnOnce() -> Option<String>,
    ) {
        let place = policy.and_then(|policy| match policy.ruleset.decide(data).cause {
            Cause::Rule(_, rule) => rule
                .origin
                .as_ref()
                .map(|origin| (origin.line, origin.column)),
            Cause::Default(_) | Cause::BadArch => None,
        });
        let key = essence(data);
        let key = (key.arch, key.nr, key.args, action.ret(), place);
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&key) {
            self.others = self.others.saturating_add(1);
            return;
        }
        let kind = self.kinds.entry(key).or_insert(Kind {
            first: *data,
            action,
            count: 0,
            shown: Vec::new(),
            has_more: false,
        });
        kind.count = kind.count.saturating_add(1);
        if !kind.has_more
            && let Some(text) = show()
            && !kind.shown.contains(&text)
        {
            match kind.shown.len() < MAX_SHOWN {
                true => kind.shown.push(text),
                false => kind.has_more = true,
            }
        }
    }

    /// The report's entries, the most frequent first.
    pub fn entries<'p>(
        &self,
        decider: impl Fn(&SeccompData) -> Option<Decider<'p>>,
        reload: &Reload<'_>,
    ) -> Vec<DeniedEntry> {
        let mut kinds: Vec<&Kind> = self.kinds.values().collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
        let entry = |kind: &Kind| {
            let data = &kind.first;
            let decider = decider(data);
            let reason = decider.as_ref().map(|Decider { policy, .. }| {
                explain::reason(&policy.name, &policy.ruleset, &policy.sources, data)
            });
            let tried = match &decider {
                None => Err("no policy is known that denies it".to_owned()),
                Some(decider) if !decider.is_alone => {
                    Err("another filter denies the call, too".to_owned())
                }
                Some(decider) => allowing(decider.policy, data, true, reload),
            };
            let mut entry = DeniedEntry {
                reason,
                has_more_others: kind.has_more,
                ..DeniedEntry::new(data, kind.action, kind.count)
            };
            if let [first, others @ ..] = kind.shown.as_slice() {
                entry.call.clone_from(first);
                entry.others = others.to_vec();
            }
            entry.with_addition(tried)
        };
        let mut entries: Vec<DeniedEntry> = kinds.into_iter().map(entry).collect();
        // Calls that differ only in unconstrained arguments have the same change.
        let mut shown = BTreeSet::new();
        for entry in &mut entries {
            let diff = entry.addition.as_ref().map(|addition| &addition.diff);
            if diff.is_some_and(|diff| !shown.insert(diff.clone())) {
                entry.addition = None;
                entry.no_addition = Some("a change above allows it, too".to_owned());
            }
        }
        entries
    }

    /// A note about calls that are not among the entries.
    pub fn note(&self) -> Option<String> {
        let calls = counted(self.others, "more denied call");
        (self.others > 0).then(|| format!("{calls}, of more than {MAX_KINDS} kinds"))
    }
}

/// The change of a policy that allows a denied call, or all calls of its number, or the reason why there is none.
///
/// The change is proved to allow the stated calls and no others. If a change that names argument values would allow
/// more, as in a profile for architectures with other argument positions, all calls of the number are allowed.
///
/// # Errors
/// The reason, as a clause.
pub fn allowing(
    policy: &Policy,
    data: &SeccompData,
    has_args: bool,
    reload: &Reload<'_>,
) -> Result<AdditionEntry, String> {
    let decision = policy.ruleset.decide(data);
    let rule = match decision.cause {
        Cause::Rule(..) if is_enosys(data, decision.action) => {
            return Err(
                "the rule says that the call doesn't exist, so that another one is made".to_owned(),
            );
        }
        Cause::Rule(_, rule) => match &rule.origin {
            None => return Err("the rule has no place in a text".to_owned()),
            Some(origin) if *origin.file != *policy.name => {
                let file = on_one_line(&origin.file);
                return Err(format!("the rule is in the included file {file}"));
            }
            Some(origin) => Some(origin),
        },
        Cause::Default(_) => None,
        Cause::BadArch => return Err("the policy is for other architectures".to_owned()),
    };
    let Some(text) = source_text(&policy.sources, &policy.name) else {
        return Err("the policy's text isn't known".to_owned());
    };
    let tested = tested(&policy.ruleset, data);
    let with = |has_args| {
        let denial = Denial {
            data,
            has_args,
            rule,
            tested: &tested,
        };
        let addition = addition::propose(policy.kind.name(), &text, &denial)?;
        addition_entry(&addition, &text, policy, data, reload)
    };
    match has_args {
        true => with(true).or_else(|_| with(false)),
        false => with(false),
    }
}

/// The arguments that the rules for a call test.
fn tested(ruleset: &Ruleset, data: &SeccompData) -> Vec<ArgIndex> {
    let arch = Arch::of_call(data.arch, data.nr);
    let section = arch.and_then(|arch| ruleset.section(arch));
    let rules = section.iter().flat_map(|section| &section.rules);
    let own = rules.filter(|rule| rule.syscalls.contains(data.nr));
    let nested = own.flat_map(|rule| rule.when.nested());
    let tests = nested.filter_map(|(predicate, _)| match predicate {
        Predicate::Test(test) => Some(test),
        _ => None,
    });
    let sources = tests.flat_map(Test::operands).map(|operand| operand.source);
    let indices = sources.filter_map(|source| match source {
        OperandSource::Arg(index) => Some(index),
        _ => None,
    });
    indices.collect()
}

/// The entry for a change, if the changed text allows the call.
fn addition_entry(
    addition: &Addition,
    text: &str,
    policy: &Policy,
    data: &SeccompData,
    reload: &Reload<'_>,
) -> Result<AdditionEntry, String> {
    let input = Input::new(policy.name.as_str(), addition.apply(text));
    let changed = reload(input, policy.kind);
    let Some(changed) = changed.filter(|it| it.ruleset.decide(data).action.kind.executes()) else {
        return Err("the line that was tried doesn't allow it".to_owned());
    };
    let others = opened_besides(&policy.ruleset, &changed.ruleset, addition)?;
    let opens = match others.is_empty() {
        true => addition.opens.clone(),
        false => format!(
            "{}, and calls that are made through {}",
            addition.opens,
            list(&others)
        ),
    };
    Ok(AdditionEntry {
        diff: addition.diff(&policy.name, text),
        opens,
    })
}

fn is_enosys(data: &SeccompData, action: Action) -> bool {
    let arch = Arch::of_call(data.arch, data.nr);
    arch.is_some_and(|arch| action == Action::errno(errno::enosys(arch)))
}

fn source_text(sources: &Sources, name: &str) -> Option<String> {
    let source = sources.iter().find(|source| *source.name == *name)?;
    Some(source.text.to_string())
}

/// Multiplexers whose calls a change allows in addition to the stated ones.
fn opened_besides(
    before: &Ruleset,
    after: &Ruleset,
    addition: &Addition,
) -> Result<Vec<&'static str>, String> {
    let arches = before.sections().iter().map(|section| section.arch);
    let multiplexers: BTreeSet<&'static str> = arches
        .filter_map(|arch| syscall::name(arch, syscall::multiplexed(arch, addition.name())?.nr))
        .collect();
    let multiplexers: Vec<&'static str> = multiplexers.into_iter().collect();
    // With all calls of these names allowed on both sides there must be no difference.
    let compared = |others: &[&str]| {
        let sides = [before, after].map(|ruleset| with_allowed(ruleset, addition, others));
        let [before, after] = sides.each_ref().map(Subject::Ruleset);
        decide(&before, &after, &Limits::default())
    };
    let answer = match compared(&[]) {
        Answer::Equal(_) => return Ok(Vec::new()),
        answer if multiplexers.is_empty() => answer,
        _ => compared(&multiplexers),
    };
    match answer {
        Answer::Equal(_) => Ok(multiplexers),
        Answer::Different { .. } => {
            Err("the line that was tried changes other calls, too".to_owned())
        }
        Answer::Unknown(_) => {
            Err("what else the line that was tried changes is too hard to prove".to_owned())
        }
    }
}

/// The ruleset with the stated calls of a change allowed, and all calls of these names.
fn with_allowed(ruleset: &Ruleset, addition: &Addition, others: &[&str]) -> Ruleset {
    let rule = |nr: Nr, when: Predicate| Rule {
        syscalls: IntervalSet::single(nr.0),
        when,
        action: Action::ALLOW,
        origin: None,
    };
    let section = |section: &Section| {
        let others = others
            .iter()
            .filter_map(|name| syscall::number(section.arch, name));
        let others = others.map(|nr| (nr, Predicate::True));
        let opened = addition.opened(section.arch).into_iter().chain(others);
        let first = opened.map(|(nr, when)| rule(nr, when));
        Section {
            rules: first.chain(section.rules.iter().cloned()).collect(),
            ..section.clone()
        }
    };
    let sections = ruleset.sections().iter().map(section).collect();
    let allowed =
        Ruleset::new(sections, ruleset.bad_arch).expect("no architecture twice, as before");
    allowed.with_variables(ruleset.variables().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_abi::call;
    use tamis_policy::loader::NoIncludes;
    use tamis_session::{LoadOptions, load};

    fn reload(input: Input, kind: InputKind) -> Option<Policy> {
        let mut options = LoadOptions::new(Arch::X86_64);
        options.kind = Some(kind);
        let loaded = load(input, &options, &mut NoIncludes).ok()?;
        loaded.into_policy("write a policy").ok()
    }

    fn policy(name: &str, text: &str) -> Policy {
        let kind = InputKind::named("tamis").expect("a kind");
        reload(Input::new(name, text.to_owned()), kind).expect("a policy")
    }

    /// The entry for these calls.
    fn denied_entry(policy: &Policy, texts: &[&str]) -> DeniedEntry {
        let data = call::parse("x86_64 mkdir(0x1000, 0o755)", Arch::X86_64).expect("a call");
        let mut denials = Denials::default();
        for text in texts {
            let text = Some((*text).to_owned());
            denials.add(&data, Action::errno(1), Some(policy), || text);
        }
        let decider = |_: &SeccompData| {
            Some(Decider {
                policy,
                is_alone: true,
            })
        };
        let mut entries = denials.entries(decider, &reload);
        entries.pop().expect("an entry")
    }

    #[test]
    fn it_is_said_if_more_texts_were_denied_than_are_kept() {
        let policy = policy(
            "a.tamis",
            "arch x86_64\ndefault allow\nerrno(EPERM) mkdir\n",
        );
        let four = ["a", "b", "c", "d", "a"];
        let entry = denied_entry(&policy, &four);
        assert!(!entry.has_more_others && !entry.to_string().contains("and others"));
        let five = [&four[..], &["e"], &four].concat();
        let entry = denied_entry(&policy, &five);
        assert_eq!(entry.others, ["b", "c", "d"]);
        assert!(entry.has_more_others);
        let text = entry.to_string();
        assert!(text.contains("  also d\n  and others\n"), "{text}");
    }

    #[test]
    fn a_name_with_a_line_feed_makes_no_lines() {
        for text in [
            "arch x86_64\ndefault allow\nerrno(EPERM) mkdir\n",
            "arch x86_64\ndefault errno(EPERM)\nallow read\n",
        ] {
            let policy = policy("a\nb.tamis", text);
            let entry = denied_entry(&policy, &["a"]);
            let reason = entry.reason.expect("a reason");
            assert!(
                reason.contains("a\\nb.tamis") && reason.lines().count() == 1,
                "{reason}"
            );
            let diff = entry.addition.expect("a change").diff;
            let head: Vec<&str> = diff.lines().take(3).collect();
            assert_eq!(head[..2], ["--- a\\nb.tamis", "+++ a\\nb.tamis"]);
            assert!(head[2].starts_with("@@ "), "{diff}");
        }
    }
}
