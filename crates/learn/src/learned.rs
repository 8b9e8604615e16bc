//! Learning: from runs to a proved policy.

use std::collections::BTreeSet;
use std::error;
use std::fmt;

use tamis_abi::{Action, Arch, Nr, syscall};
use tamis_diag::{Diagnostic, Sources};
use tamis_export::code;
use tamis_policy::limits::MAX_TARGETS;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis::{self, TamisOptions};
use tamis_profile::Call;
use tamis_prover::{Function, LimitReached, Limits, Space};
use tamis_rules::{IntervalSet, Predicate, Rule, Ruleset, Section};

use crate::answers::judge;
use crate::base::{Base, Restriction, is_within};
use crate::closure;
use crate::condition::{self, Generality};
use crate::evidence::{self, Calls, Run};
use crate::text::{self, Allowed, Basis, Breadth, Contents};
use crate::wider::{self, Widening};

/// Options of [`learn`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// How far the policy goes beyond the evidence.
    pub generality: Generality,
    /// Limit of listed values per argument; arguments with more are allowed with any value. `None` lists all values.
    pub max_values: Option<usize>,
    /// A policy that the learned one must not exceed, with its name.
    pub base: Option<(&'a str, &'a Ruleset)>,
}

/// A learned policy.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The text in the tamis language.
    pub policy: String,
    /// The parsed text.
    pub ruleset: Ruleset,
    /// Recorded calls that the policy denies because the base denies them.
    pub refused: Vec<DeniedCall>,
    /// Where the policy is wider than the evidence; with [`Generality::Calls`] only effects that no filter can see.
    pub wider: Vec<Widening>,
}

/// A recorded call that the policy denies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedCall {
    /// The architecture.
    pub arch: Arch,
    /// The number.
    pub nr: Nr,
    /// The number of recorded calls; if only some arguments are denied, it includes allowed calls.
    pub count: u64,
    /// Whether at least one recorded call is denied for all values of the arguments that were not recorded.
    pub is_certain: bool,
    /// Whether all recorded calls are denied.
    pub is_whole: bool,
    /// Whether the policy allows an older call that programs fall back to.
    pub has_fallback: bool,
}

/// The reason why no policy was learned.
#[derive(Debug)]
#[non_exhaustive]
pub enum LearnError {
    /// No call was recorded.
    NothingSeen,
    /// The base denies all recorded calls.
    NothingLeft,
    /// The base distinguishes too many cases.
    TooManyCases,
    /// The comparison with the base reached a limit.
    Limit(LimitReached),
    /// The policy would exceed a limit of the language.
    TooLarge {
        /// The exceeded limit.
        limit: String,
        /// Whether an argument has more than 64 values, so that [`Options::max_values`] helps.
        has_many_values: bool,
    },
    /// The base's conditions on these calls are too complex to be expressed.
    Inexpressible(Vec<(Arch, Nr)>),
    /// The text has errors, or allows a call that the base denies: a bug of tamis.
    Bug(String),
}

impl fmt::Display for LearnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LearnError::NothingSeen => f.write_str("the profiles have no call that was made"),
            LearnError::NothingLeft => f.write_str("the base denies all that was called"),
            LearnError::TooManyCases => f.write_str("the base distinguishes too many cases"),
            LearnError::Limit(limit) => write!(f, "the base can't be compared: {limit}"),
            LearnError::TooLarge { limit, .. } => {
                write!(f, "the learned policy is beyond a limit: {limit}")
            }
            LearnError::Inexpressible(calls) => {
                let names = calls
                    .iter()
                    .map(|(arch, nr)| format!("{arch} {}", name(*arch, *nr)));
                let names: Vec<String> = names.collect();
                write!(
                    f,
                    "the base's conditions are too complex for these calls: {}",
                    names.join(", ")
                )
            }
            LearnError::Bug(message) => write!(f, "the learned policy is wrong: {message}"),
        }
    }
}

impl error::Error for LearnError {}

impl From<LimitReached> for LearnError {
    fn from(limit: LimitReached) -> LearnError {
        LearnError::Limit(limit)
    }
}

/// Learns a policy from runs.
///
/// ```
/// use tamis_abi::{Arch, Nr};
/// use tamis_learn::{Options, Run, learn};
/// let mut profile = tamis_profile::Profile::default();
/// profile.call_mut(Arch::X86_64, Nr(0)).count = 7;
/// let learned = learn(&[Run { name: "first", profile: &profile }], &Options::default()).unwrap();
/// assert!(learned.policy.contains("allow read "));
/// ```
///
/// # Errors
/// See [`LearnError`].
pub fn learn(runs: &[Run<'_>], options: &Options<'_>) -> Result<Learned, LearnError> {
    if runs.iter().any(has_too_many_calls) {
        return Err(LearnError::TooLarge {
            limit: format!("more than {MAX_TARGETS} calls in rules"),
            has_many_values: false,
        });
    }
    let (calls, count) = evidence::calls_of_runs(runs);
    if calls.is_empty() {
        return Err(LearnError::NothingSeen);
    }
    let mut space = Space::new(Limits::default());
    let base = options
        .base
        .map(|(_, ruleset)| space.ruleset(ruleset))
        .transpose()?;
    let needed = needed(&calls, options.generality);
    let (mut wanted, breadth) = seen(&calls, options);
    let mut known = restricted_to(&mut space, base, &wanted, &needed)?;
    if let Some(limit) = &known
        && fall_back(&mut wanted, limit)
    {
        known = restricted_to(&mut space, base, &wanted, &needed)?;
    }
    let (allowed, dropped) = narrowed(wanted, known.as_ref())?;
    if allowed.is_empty() {
        return Err(LearnError::NothingLeft);
    }
    let needed = needed_within(needed, known.as_ref());
    let mut wider: Vec<Widening> = allowed.iter().flat_map(Allowed::wider).collect();
    wider.extend(wider::hidden(&allowed));
    wider.sort_by_key(|wider| (wider.arch, wider.nr));
    let has_many_values = evidence::has_many_values(&calls);
    let too_large = |limit| LearnError::TooLarge {
        limit,
        has_many_values,
    };
    let policy = text::policy(&Contents {
        names: &runs.iter().map(|run| run.name).collect::<Vec<_>>(),
        runs: count,
        made_once: evidence::made_once(&calls),
        base: options.base.map(|(name, _)| name),
        breadth,
        wider: &wider,
        allowed: &allowed,
        needed: &needed,
        dropped: &dropped,
    })
    .map_err(too_large)?;
    let ruleset = meaning(&policy, too_large)?;
    if let Some(base) = base {
        let function = space.ruleset(&ruleset)?;
        if !is_within(&mut space, function, base)? {
            return Err(LearnError::Bug("it allows what the base denies".to_owned()));
        }
    }
    let refused = refused(&calls, &ruleset);
    let certain = refused.iter().find(|refused| refused.is_certain);
    if let (None, Some(first)) = (base, certain) {
        let call = name(first.arch, first.nr);
        return Err(LearnError::Bug(format!("it denies {call}, which was seen")));
    }
    Ok(Learned {
        policy,
        ruleset,
        refused,
        wider,
    })
}

/// Whether a policy that allows all calls of a run would exceed the language's limit; checked before the analysis.
fn has_too_many_calls(run: &Run<'_>) -> bool {
    let calls = run.profile.calls();
    calls.filter(|(_, _, call)| call.made() > 0).count() > MAX_TARGETS
}

/// The allowed calls, and the calls that the base denies entirely.
type NarrowedCalls<'c> = (Vec<Allowed<'c>>, Vec<(Arch, Nr)>);

/// The recorded calls with the conditions that they would have without a base, and the breadth of the whole policy.
fn seen<'c>(calls: &'c Calls, options: &Options<'_>) -> (Vec<Allowed<'c>>, Breadth) {
    let mut breadth = Breadth {
        is_free: options.generality == Generality::Calls,
        ..Breadth::default()
    };
    let allowed = calls.iter().map(|(&(arch, nr), evidence)| {
        let name = syscall::name(arch, nr).unwrap_or_default();
        let condition = condition::from_evidence(arch, name, evidence, options);
        breadth.has_joined_flags |= condition.has_joined_flags;
        breadth.has_products |= condition.has_product;
        Allowed {
            arch,
            nr,
            when: condition.when,
            basis: Basis::Seen(evidence),
            free: condition.free,
            widened_for: None,
        }
    });
    (allowed.collect(), breadth)
}

/// The restriction of wanted and needed calls by the base.
fn restricted_to(
    space: &mut Space,
    base: Option<Function>,
    wanted: &[Allowed<'_>],
    needed: &ImpliedCalls,
) -> Result<Option<Base>, LearnError> {
    let Some(function) = base else {
        return Ok(None);
    };
    let calls = wanted.iter().map(|call| (call.arch, call.nr));
    let calls = calls
        .chain(needed.iter().flat_map(|(_, calls)| calls).copied())
        .collect();
    let freely = space.ruleset(&ruleset_of(wanted)?)?;
    Ok(Some(Base::compare(space, function, freely, &calls)?))
}

/// Adds the older calls that replace newer ones denied by the base. Returns whether there are any.
fn fall_back(wanted: &mut Vec<Allowed<'_>>, base: &Base) -> bool {
    let denied: Vec<(Arch, Nr)> = wanted
        .iter()
        .map(|call| (call.arch, call.nr))
        .filter(|call| matches!(base.restriction(*call), Restriction::Nothing))
        .collect();
    let mut found = false;
    for (arch, nr) in denied {
        let newer = syscall::name(arch, nr).unwrap_or_default();
        for name in closure::older(newer).unwrap_or_default() {
            let Some(nr) = syscall::number(arch, name) else {
                continue;
            };
            found = true;
            let when = condition::in_place_of_another(arch, name);
            match wanted
                .iter_mut()
                .find(|call| (call.arch, call.nr) == (arch, nr))
            {
                Some(call) if call.when != Predicate::True => {
                    call.widened_for = Some(newer);
                    let before = std::mem::replace(&mut call.when, Predicate::True);
                    call.when = match when {
                        Predicate::True => Predicate::True,
                        when => Predicate::Any(vec![before, when]),
                    };
                }
                Some(_) => {}
                None => wanted.push(Allowed {
                    arch,
                    nr,
                    when,
                    basis: Basis::InsteadOf(newer),
                    free: Vec::new(),
                    widened_for: None,
                }),
            }
        }
    }
    wanted.sort_by_key(|call| (call.arch, call.nr));
    found
}

/// A ruleset that allows only these calls.
fn ruleset_of(allowed: &[Allowed<'_>]) -> Result<Ruleset, LearnError> {
    let mut sections: Vec<Section> = Vec::new();
    for call in allowed {
        if sections
            .last()
            .is_none_or(|section| section.arch != call.arch)
        {
            sections.push(Section {
                arch: call.arch,
                rules: Vec::new(),
                default: Action::KILL_PROCESS,
            });
        }
        if let Some(section) = sections.last_mut() {
            section.rules.push(Rule {
                syscalls: IntervalSet::single(call.nr.0),
                when: call.when.clone(),
                action: Action::ALLOW,
                origin: None,
            });
        }
    }
    // Calls are ordered by architecture.
    Ruleset::new(sections, Action::KILL_PROCESS)
        .map_err(|twice| LearnError::Bug(format!("{} stands twice", twice.0)))
}

/// Restricts the calls to the base's conditions, and separates calls that the base denies entirely.
fn narrowed<'c>(
    calls: Vec<Allowed<'c>>,
    base: Option<&Base>,
) -> Result<NarrowedCalls<'c>, LearnError> {
    let (mut allowed, mut dropped, mut inexpressible) = (Vec::new(), Vec::new(), Vec::new());
    for mut call in calls {
        let place = (call.arch, call.nr);
        match base.map_or(Restriction::Unrestricted, |base| base.restriction(place)) {
            Restriction::Unrestricted => allowed.push(call),
            Restriction::When(more) => {
                call.when = match call.when {
                    Predicate::True => more,
                    when => Predicate::All(vec![when, more]),
                };
                allowed.push(call);
            }
            Restriction::Nothing => dropped.push(place),
            Restriction::Inexpressible => inexpressible.push(place),
        }
    }
    match inexpressible.is_empty() {
        true => Ok((allowed, dropped)),
        false => Err(LearnError::Inexpressible(inexpressible)),
    }
}

/// Calls that were not recorded, by the reason why they are allowed.
pub(crate) type ImpliedCalls = Vec<(String, Vec<(Arch, Nr)>)>;

/// The calls that are allowed without having been recorded, each for one reason.
fn needed(calls: &Calls, generality: Generality) -> ImpliedCalls {
    let arches: BTreeSet<Arch> = calls.keys().map(|(arch, _)| *arch).collect();
    let mut reasons: Vec<(String, Vec<&str>)> = closure::NEEDED
        .iter()
        .map(|(reason, names)| ((*reason).to_owned(), names.to_vec()))
        .collect();
    if generality == Generality::Groups {
        let made = calls
            .keys()
            .filter_map(|(arch, nr)| syscall::name(*arch, *nr));
        for (group, mut names) in closure::groups(&made.collect()) {
            // Newer calls with a fallback stay denied.
            names.retain(|name| closure::older(name).is_none());
            reasons.push((format!("Others of {group}"), names));
        }
    }
    let mut named = BTreeSet::new();
    let mut needed = ImpliedCalls::new();
    for (reason, names) in reasons {
        let places = arches
            .iter()
            .flat_map(|arch| names.iter().map(move |name| (arch, name)));
        let places = places.filter_map(|(arch, name)| Some((*arch, syscall::number(*arch, name)?)));
        let new = places.filter(|call| !calls.contains_key(call) && named.insert(*call));
        let new: Vec<(Arch, Nr)> = new.collect();
        if !new.is_empty() {
            needed.push((reason, new));
        }
    }
    needed
}

/// The needed calls that the base allows with all arguments.
fn needed_within(mut needed: ImpliedCalls, base: Option<&Base>) -> ImpliedCalls {
    if let Some(base) = base {
        for (_, calls) in &mut needed {
            calls.retain(|call| base.allows(*call));
        }
        needed.retain(|(_, calls)| !calls.is_empty());
    }
    needed
}

/// Parses the text of the policy.
fn meaning(policy: &str, too_large: impl Fn(String) -> LearnError) -> Result<Ruleset, LearnError> {
    let mut sources = Sources::new();
    let source = sources.add("<learned>", policy);
    let options = TamisOptions::new(Vec::new());
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    parsed.ruleset.ok_or_else(|| {
        let mut diagnostics = parsed.diagnostics.iter();
        if let Some(limit) = diagnostics.find(|diagnostic| diagnostic.code == code::TAMIS_LIMIT) {
            return too_large(limit.message.clone());
        }
        let describe = |diagnostic: &Diagnostic| {
            let place = diagnostic
                .labels
                .first()
                .map(|label| sources.snippet(label.span));
            format!("{}: {}", diagnostic.message, place.unwrap_or_default())
        };
        let first = parsed.diagnostics.first().map(describe);
        LearnError::Bug(first.unwrap_or_default())
    })
}

/// The recorded calls that the policy denies or may deny.
fn refused(calls: &Calls, ruleset: &Ruleset) -> Vec<DeniedCall> {
    let mut refused = Vec::new();
    for (&(arch, nr), evidence) in calls {
        let judgement = judge(ruleset, arch, nr, &evidence.call);
        if judgement.denial.is_some() {
            refused.push(DeniedCall {
                arch,
                nr,
                count: evidence.made(),
                is_certain: judgement.is_certain,
                is_whole: judgement.is_whole,
                has_fallback: judgement.is_whole && falls_back(arch, nr, ruleset),
            });
        }
    }
    refused
}

/// Whether the policy allows, with some arguments, an older call that programs fall back to.
fn falls_back(arch: Arch, nr: Nr, ruleset: &Ruleset) -> bool {
    let older = closure::older(&name(arch, nr)).unwrap_or_default();
    let mut numbers = older.iter().filter_map(|name| syscall::number(arch, name));
    numbers.any(|nr| !judge(ruleset, arch, nr, &Call::default()).is_whole)
}

/// The name of a call, or its number.
pub(crate) fn name(arch: Arch, nr: Nr) -> String {
    syscall::name(arch, nr).map_or_else(|| format!("{}", nr.0), str::to_owned)
}
