//! Conversion of policies to other languages, with proof.
//!
//! An exporter writes the expressible part of a policy. Here the text is
//! parsed again as on each target machine, and the prover compares it with the policy. Calls that differ are exported
//! again in a longer form, until the text is at most stricter than the policy. If that is not possible, there is no
//! text.
//!
//! ```
//! use tamis_abi::Arch;
//! use tamis_export::convert::{Source, convert};
//! use tamis_policy::{loader::NoIncludes, tamis};
//! use tamis_prover::{ComparisonResult, Limits, Space};
//!
//! let mut sources = tamis_diag::Sources::new();
//! let policy = "bad-arch kill-thread\ndefault errno(EPERM)\nallow read, write(fd < 3)\n";
//! let root = sources.add("a.tamis", policy);
//! let options = tamis::TamisOptions::new(vec![Arch::X86_64]);
//! let parsed = tamis::parse(&mut sources, root, &mut NoIncludes, &options);
//! let mut space = Space::new(Limits::default());
//! let function = space.ruleset(&parsed.ruleset.expect("no mistakes")).expect("it is small");
//! let oci = tamis_export::find("oci").expect("it is registered");
//! let converted = convert(&mut space, function, oci, &Source::named("a")).expect("it can be said");
//! assert_eq!(converted.comparison, ComparisonResult::Equal);
//! assert!(converted.losses.is_empty());
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::code;
use crate::{
    ConditionalAction, Export, ExportOptions, Exporter, Group, Listing, Loss, Machine, Meaning,
    RuleForm,
};
use tamis_abi::{Action, ActionKind, Arch, Nr, Word, syscall};
use tamis_analysis::{
    CaseLimits, Difference, Machine as Place, Undecompilable, cases, decompile, differences_of,
    with_word, without_complex_calls,
};
use tamis_diag::words::list;
use tamis_diag::{Diagnostic, Sources};
use tamis_policy::front_end;
use tamis_policy::installation::Installation;
use tamis_policy::loader::NoIncludes;
use tamis_policy::systemd;
use tamis_prover::{
    Answer, ComparisonResult, Function, LimitReached, Limits, Scope, Space, Stop, Subject,
    decide_by_gates,
};
use tamis_rules::{Predicate, Ruleset, Section};

/// Properties of a policy in addition to its meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The name of the result, for languages with names.
    pub name: String,
    /// The architectures of the policy, even if their calls are treated like those of others; architectures that
    /// are treated differently are found without this list.
    pub arches: Vec<Arch>,
    /// Its installation requirements.
    pub installation: Installation,
    /// The origins of calls, as comments above their rules, for languages with comments.
    pub notes: BTreeMap<&'static str, String>,
    /// The release of systemd that reads a unit; the newest known if it isn't given.
    pub systemd: systemd::Settings,
}

impl Source {
    /// A policy with only a name.
    pub fn named(name: &str) -> Source {
        Source {
            name: name.to_owned(),
            ..Source::default()
        }
    }
}

/// A policy in another language, never looser than it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The text.
    pub text: String,
    /// The machines for the text.
    pub machines: Vec<Machine>,
    /// The properties that could not be expressed; if empty, the text was proved equivalent to the policy.
    pub losses: Vec<Loss>,
    /// The comparison of the text with the policy, for calls of the machines' architectures.
    pub comparison: ComparisonResult,
    /// The calls that differ: the policy's action on the left, the text's on the right.
    pub differences: Vec<Difference>,
    /// Whether the list of differences is complete.
    pub is_complete: bool,
    /// The calls that the policy executes, perhaps for some arguments alone, and the text for none; without those of
    /// architectures that the text leaves out as a whole.
    pub lost: BTreeSet<(Arch, &'static str)>,
}

/// The reason why there is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A limit of the prover was reached.
    Limit(LimitReached),
    /// The language cannot express the policy.
    Inexpressible(Box<Diagnostic>),
    /// The exported text is rejected by its own front end, or is looser than the policy in every
    /// [`RuleForm`]: a bug of the exporter.
    Mistake(String),
}

impl From<LimitReached> for Refusal {
    fn from(limit: LimitReached) -> Refusal {
        Refusal::Limit(limit)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Limit(limit) => limit.fmt(f),
            Refusal::Inexpressible(diagnostic) => f.write_str(&diagnostic.message),
            Refusal::Mistake(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Refusal {}

/// Exports a function to another language.
///
/// # Errors
/// If the language cannot express it, not even more strictly, or a limit of the prover was reached.
pub fn convert(
    space: &mut Space,
    function: Function,
    exporter: &Exporter,
    source: &Source,
) -> Result<Converted, Refusal> {
    let meaning = meaning(space, function, &source.arches)?;
    let mut forms: BTreeMap<&'static str, RuleForm> = BTreeMap::new();
    loop {
        let export_options = ExportOptions {
            name: &source.name,
            flags: &source.installation.flags,
            listener_path: source.installation.listener_path.as_deref(),
            listener_metadata: source.installation.listener_metadata.as_deref(),
            systemd: source.systemd.assumed().version,
            notes: &source.notes,
            forms: &forms,
        };
        let export = (exporter.write)(&meaning, &export_options).map_err(Refusal::Inexpressible)?;
        let found = compare(space, function, &meaning, exporter, &export, source)?;
        let more = next_forms(&found.differences, &export.losses, &forms);
        if more.is_empty() {
            return finish(&meaning, exporter, source, export, found);
        }
        forms.extend(more);
    }
}

/// Exports a policy whose diagrams exceed the limits because conditions pair the bits of two arguments. A language with
/// such conditions gets them, and gates prove the text equal. In others these calls get the strictest of their actions.
///
/// # Errors
/// As [`convert`], and if no call is too complex by itself.
pub fn convert_complex(
    ruleset: &Ruleset,
    exporter: &Exporter,
    source: &Source,
    limits: Limits,
    stop: &Stop,
) -> Result<Converted, Refusal> {
    let strictest = |actions: &[Action]| {
        let strictness = |action: &Action| Action::precedence(action.kind.ret());
        let strictest = actions.iter().copied().min_by_key(strictness);
        strictest.unwrap_or(Action::KILL_PROCESS)
    };
    let simpler = without_complex_calls(ruleset, limits, stop, strictest)?;
    if simpler.replaced.is_empty() {
        return Err(Refusal::Limit(LimitReached::Nodes));
    }
    let mut space = Space::stoppable(limits, stop.clone());
    let function = space.ruleset(&simpler.ruleset)?;
    if exporter.writes_rules {
        let meaning = meaning(&mut space, function, &source.arches)?;
        let exact = convert_exactly(ruleset, meaning, exporter, source, limits, stop)?;
        if let Some(exact) = exact {
            return Ok(exact);
        }
    }
    let mut converted = convert(&mut space, function, exporter, source)?;
    converted.comparison = converted.comparison.and(ComparisonResult::Stricter);
    converted.is_complete = false;
    for (arch, numbers) in simpler.replaced {
        let names = syscall::all(arch).filter(|(nr, _)| numbers.contains(nr.0));
        let names: Vec<(Nr, &str)> = names.collect();
        let lost = names.iter().filter(|(nr, _)| {
            may_execute(ruleset, arch, nr.0) && !may_execute(&simpler.ruleset, arch, nr.0)
        });
        converted.lost.extend(lost.map(|(_, name)| (arch, *name)));
        converted.losses.push(Loss {
            code: code::EXPORT_CONDITION,
            message: format!("{} cannot pair the bits of two arguments", exporter.plural),
            kept: "these calls get the strictest of their actions".to_owned(),
            calls: names.into_iter().map(|(_, name)| name).collect(),
            arches: vec![arch],
        });
    }
    Ok(converted)
}

/// Whether a rule for a call executes it, or none decides it alone and the default does.
fn may_execute(ruleset: &Ruleset, arch: Arch, nr: u32) -> bool {
    let Some(section) = ruleset.section(arch) else {
        return ruleset.bad_arch.kind.executes();
    };
    for rule in section
        .rules
        .iter()
        .filter(|rule| rule.syscalls.contains(nr))
    {
        if rule.action.kind.executes() {
            return true;
        }
        if rule.when == Predicate::True {
            return false;
        }
    }
    section.default.kind.executes()
}

/// The text of the rules as they are, if gates prove it equal to them.
fn convert_exactly(
    ruleset: &Ruleset,
    meaning: Meaning,
    exporter: &Exporter,
    source: &Source,
    limits: Limits,
    stop: &Stop,
) -> Result<Option<Converted>, Refusal> {
    let meaning = Meaning {
        ruleset: Some(ruleset.clone()),
        ..meaning
    };
    let export_options = ExportOptions {
        name: &source.name,
        flags: &source.installation.flags,
        listener_path: source.installation.listener_path.as_deref(),
        listener_metadata: source.installation.listener_metadata.as_deref(),
        systemd: source.systemd.assumed().version,
        notes: &source.notes,
        forms: &BTreeMap::new(),
    };
    let Ok(export) = (exporter.write)(&meaning, &export_options) else {
        return Ok(None);
    };
    let [machine] = export.machines.as_slice() else {
        return Ok(None);
    };
    let theirs = read_back(exporter, &export.text, machine.native, &source.systemd)?;
    let sides = [ruleset, &theirs].map(Subject::Ruleset);
    let answer = decide_by_gates(&sides[0], &sides[1], &limits, stop);
    if !matches!(answer, Answer::Equal(_)) {
        return Ok(None);
    }
    let found = Found {
        result: ComparisonResult::Equal,
        differences: Vec::new(),
        is_complete: true,
        lost: BTreeSet::new(),
    };
    finish(&meaning, exporter, source, export, found).map(Some)
}

/// The meaning of a function, call by call, for these architectures and for those that it treats differently from
/// most.
///
/// # Errors
/// If it treats architectures without a name differently, or a limit was reached.
pub fn meaning(space: &mut Space, function: Function, arches: &[Arch]) -> Result<Meaning, Refusal> {
    let limits = CaseLimits::default();
    let cases = cases(space, function, &limits)?;
    if !cases.is_complete {
        return Err(inexpressible(
            "the policy distinguishes too many cases to be split by system call",
        ));
    }
    let mut bad_arch: Option<u32> = None;
    let mut listings: Vec<Listing> = Vec::new();
    for case in cases.list {
        let arch = match case.machine {
            Place::Known(arch) => arch,
            Place::Other(_) if bad_arch.is_none_or(|ret| ret == case.ret) => {
                bad_arch = Some(case.ret);
                continue;
            }
            Place::Other(_) => {
                return Err(inexpressible(
                    "it does not return one action for all calls of foreign architectures",
                ));
            }
        };
        let outcome = ConditionalAction {
            action: Action::from_ret(case.ret),
            when: case.when,
        };
        let place = listings.iter().position(|listing| listing.arch == arch);
        let place = place.unwrap_or_else(|| {
            listings.push(Listing {
                arch,
                groups: Vec::new(),
            });
            listings.len() - 1
        });
        let listing = &mut listings[place];
        match listing.groups.last_mut() {
            Some(group) if group.numbers == case.numbers => group.outcomes.push(outcome),
            _ => listing.groups.push(Group {
                numbers: case.numbers,
                outcomes: vec![outcome],
            }),
        }
    }
    let bad_arch = Action::from_ret(bad_arch.unwrap_or(Action::KILL_PROCESS.ret()));
    let is_bad = |outcome: &ConditionalAction| outcome.action == bad_arch;
    // x32 and x86_64 differ only in numbers, so one of them may be as foreign as any other.
    listings.retain(|listing| {
        let mut outcomes = listing.groups.iter().flat_map(|group| &group.outcomes);
        arches.contains(&listing.arch) || !outcomes.all(is_bad)
    });
    for arch in arches {
        if !listings.iter().any(|listing| listing.arch == *arch) {
            listings.push(foreign_listing(*arch, bad_arch));
        }
    }
    listings.sort_by_key(|listing| listing.arch);
    let ruleset = match decompile(space, function, &limits) {
        Ok(ruleset) => Some(ruleset),
        Err(Undecompilable::Limit(limit)) => return Err(Refusal::Limit(limit)),
        Err(_) => None,
    };
    Ok(Meaning {
        listings,
        bad_arch,
        ruleset,
    })
}

/// An architecture whose calls have the action of unknown ones.
fn foreign_listing(arch: Arch, bad_arch: Action) -> Listing {
    let outcome = ConditionalAction {
        action: bad_arch,
        when: Some(Predicate::True),
    };
    Listing {
        arch,
        groups: vec![Group {
            numbers: Section::domain(arch),
            outcomes: vec![outcome],
        }],
    }
}

fn inexpressible(message: &str) -> Refusal {
    let diagnostic = Diagnostic::error(code::EXPORT_REFUSED, message.to_owned());
    Refusal::Inexpressible(Box::new(
        diagnostic.help("`--arch x86_64` exports one architecture"),
    ))
}

/// A comparison of a text with the policy.
struct Found {
    result: ComparisonResult,
    differences: Vec<Difference>,
    is_complete: bool,
    /// The calls that the text doesn't execute, of those that the policy does.
    lost: BTreeSet<(Arch, &'static str)>,
}

/// Parses a text as on its machines and compares.
fn compare(
    space: &mut Space,
    function: Function,
    meaning: &Meaning,
    exporter: &Exporter,
    export: &Export,
    source: &Source,
) -> Result<Found, Refusal> {
    let mut found = Found {
        result: ComparisonResult::Equal,
        differences: Vec::new(),
        is_complete: true,
        lost: BTreeSet::new(),
    };
    let is_all = export.machines.len() == 1 && export.bad_arch == meaning.bad_arch;
    for machine in &export.machines {
        let theirs = read_back(exporter, &export.text, machine.native, &source.systemd)?;
        let theirs = space.ruleset(&theirs)?;
        let scope = Scope {
            arches: match is_all {
                true => Vec::new(),
                false => machine.arches.clone(),
            },
            ..Scope::default()
        };
        let comparison = space.comparison(function, theirs, &scope)?;
        let differences = differences_of(space, &comparison, &CaseLimits::default())?;
        found.is_complete &= differences.is_complete;
        for difference in differences.list {
            let here = ComparisonResult::of_pair(strictness(&difference, &export.losses));
            found.result = found.result.and(here);
            if let Place::Known(arch) = difference.machine
                && !is_left_out(&difference, &export.losses)
            {
                found.lost.extend(lost(space, theirs, arch, &difference)?);
            }
            if !found.differences.contains(&difference) {
                found.differences.push(difference);
            }
        }
    }
    Ok(found)
}

/// The calls of a difference that a policy executes, and a text for no arguments.
fn lost(
    space: &mut Space,
    theirs: Function,
    arch: Arch,
    difference: &Difference,
) -> Result<Vec<(Arch, &'static str)>, LimitReached> {
    let executes = |ret: u32| Action::from_ret(ret).kind.executes();
    let mut lost = Vec::new();
    if !executes(difference.left_ret) || executes(difference.right_ret) {
        return Ok(lost);
    }
    let theirs = with_word(space, theirs, Word::ARCH, arch.audit())?;
    for name in names(difference) {
        let Some(nr) = syscall::number(arch, name) else {
            continue;
        };
        let call = with_word(space, theirs, Word::NR, nr.0)?;
        if !space.values(call).into_iter().any(executes) {
            lost.push((arch, name));
        }
    }
    Ok(lost)
}

/// The meaning of a text on a machine of this architecture.
///
/// # Errors
/// If its front end rejects it.
pub fn read_back(
    exporter: &Exporter,
    text: &str,
    native: Arch,
    systemd: &systemd::Settings,
) -> Result<Ruleset, Refusal> {
    let mut sources = Sources::new();
    let source = sources.add(format!("<{}>", exporter.name), text);
    let options = front_end::ParseOptions {
        asked_arches: vec![native],
        stated_arches_win: true,
        systemd: systemd.clone(),
        ..front_end::ParseOptions::new(native)
    };
    let read = (exporter.front_end.parse)(&mut sources, source, &mut NoIncludes, &options);
    read.parsed.ruleset.ok_or_else(|| {
        let messages = tamis_diag::render::render(&read.parsed.diagnostics, &sources, false);
        Refusal::Mistake(format!("the exported text has errors\n{messages}"))
    })
}

/// The strictness of a text's action relative to the policy's: killing the process and killing the thread are equal
/// here, as neither executes the call. So is an errno for calls unknown to the target, if there is a loss for it.
fn strictness(difference: &Difference, losses: &[Loss]) -> std::cmp::Ordering {
    let is_unnamed = names(difference).is_empty();
    let has_loss = losses.iter().any(|loss| loss.code == code::EXPORT_UNKNOWN);
    let executes = |ret: u32| Action::from_ret(ret).kind.executes();
    if is_unnamed && has_loss && !executes(difference.left_ret) && !executes(difference.right_ret) {
        return std::cmp::Ordering::Equal;
    }
    let place = |ret: u32| match Action::from_ret(ret).kind {
        ActionKind::KillThread => Action::precedence(ActionKind::KillProcess.ret()),
        kind => Action::precedence(kind.ret()),
    };
    place(difference.right_ret).cmp(&place(difference.left_ret))
}

/// The names of the calls of a difference.
fn names(difference: &Difference) -> BTreeSet<&'static str> {
    let Place::Known(arch) = difference.machine else {
        return BTreeSet::new();
    };
    let named = syscall::all(arch).filter(|(nr, name)| {
        difference.numbers.contains(nr.0) && syscall::name(arch, *nr) == Some(name)
    });
    named.map(|(_, name)| name).collect()
}

/// Whether there is a loss stating that the calls of the difference's architecture are killed.
fn is_left_out(difference: &Difference, losses: &[Loss]) -> bool {
    let Place::Known(arch) = difference.machine else {
        return false;
    };
    strictness(difference, losses).is_lt()
        && losses.iter().any(|loss| {
            loss.code == code::EXPORT_ARCHES && loss.calls.is_empty() && loss.arches.contains(&arch)
        })
}

/// The next forms of the calls to export again: those that got looser, and those that got stricter without a known
/// loss.
fn next_forms(
    differences: &[Difference],
    losses: &[Loss],
    forms: &BTreeMap<&'static str, RuleForm>,
) -> BTreeMap<&'static str, RuleForm> {
    let mut more = BTreeMap::new();
    let told = |difference: &&Difference| !is_left_out(difference, losses);
    for difference in differences.iter().filter(told) {
        let last = match strictness(difference, losses) {
            std::cmp::Ordering::Greater => RuleForm::Forced,
            std::cmp::Ordering::Less => RuleForm::Whole,
            std::cmp::Ordering::Equal => continue,
        };
        for name in names(difference) {
            let is_known = losses.iter().any(|loss| loss.calls.contains(&name));
            if is_known && last == RuleForm::Whole {
                continue;
            }
            let now = forms.get(name).copied().unwrap_or_default();
            more.extend(
                now.next()
                    .filter(|next| *next <= last)
                    .map(|next| (name, next)),
            );
        }
    }
    more
}

/// The result, with the losses found only by the comparison; `None` if something got looser.
fn finish(
    meaning: &Meaning,
    exporter: &Exporter,
    source: &Source,
    export: Export,
    found: Found,
) -> Result<Converted, Refusal> {
    let is_looser = |d: &&Difference| strictness(d, &export.losses).is_gt();
    if let Some(looser) = found.differences.iter().find(is_looser) {
        let calls: Vec<&str> = names(looser).into_iter().take(3).collect();
        let calls = match calls.as_slice() {
            [] => "numbers without a name".to_owned(),
            calls => calls.join(", "),
        };
        let (left, right) = (looser.left_ret, looser.right_ret);
        let message = format!(
            "{} cannot express this policy as strictly: {calls} would get {} instead of {}",
            exporter.plural,
            Action::from_ret(right),
            Action::from_ret(left),
        );
        return Err(inexpressible(&message));
    }
    let mut losses = export.losses;
    let mut odd: BTreeSet<&'static str> = BTreeSet::new();
    for difference in &found.differences {
        if !strictness(difference, &losses).is_lt() {
            continue;
        }
        if !is_left_out(difference, &losses) {
            odd.extend(names(difference));
        }
    }
    odd.retain(|name| !losses.iter().any(|loss| loss.calls.contains(name)));
    if odd.is_empty() && losses.is_empty() {
        odd = found.differences.iter().flat_map(names).collect();
    }
    if !odd.is_empty() {
        losses.push(read_otherwise(exporter, odd.into_iter().collect()));
    }
    if export.bad_arch != meaning.bad_arch {
        losses.push(foreign(exporter, meaning.bad_arch, export.bad_arch));
    }
    losses.extend(installation(exporter, source));
    Ok(Converted {
        text: export.text,
        machines: export.machines,
        losses,
        comparison: found.result,
        differences: found.differences,
        is_complete: found.is_complete,
        lost: found.lost,
    })
}

/// The loss for calls that have another meaning in the text.
fn read_otherwise(exporter: &Exporter, calls: Vec<&'static str>) -> Loss {
    let is_multiplexer = |call: &&str| ["socketcall", "ipc"].contains(call);
    let (code, message) = match calls.iter().all(is_multiplexer) {
        true => (
            code::EXPORT_MULTIPLEXED,
            format!(
                "{} cannot distinguish {} from the calls that it multiplexes",
                exporter.plural,
                list(&calls)
            ),
        ),
        false => (
            code::EXPORT_READ_BACK,
            format!(
                "{} have another meaning for {}",
                exporter.plural,
                list(&calls)
            ),
        ),
    };
    Loss {
        code,
        message,
        kept: "the action is stricter than the policy's, or has other data".to_owned(),
        calls,
        arches: Vec::new(),
    }
}

fn foreign(exporter: &Exporter, wanted: Action, said: Action) -> Loss {
    Loss {
        code: code::EXPORT_FOREIGN,
        message: format!(
            "{} cannot set {wanted} for calls of other architectures",
            exporter.plural
        ),
        kept: format!("they get {said}, the fixed action"),
        calls: Vec::new(),
        arches: Vec::new(),
    }
}

/// The loss of installation requirements that a language cannot express.
fn installation(exporter: &Exporter, source: &Source) -> Option<Loss> {
    if exporter.takes_installation {
        return None;
    }
    let what = source.installation.phrases();
    (!what.is_empty()).then(|| Loss {
        code: code::EXPORT_INSTALLATION,
        message: format!(
            "{} do not contain installation options: {}",
            exporter.plural,
            what.join(", ")
        ),
        kept: "pass them to the installer of the filter".to_owned(),
        calls: Vec::new(),
        arches: Vec::new(),
    })
}
