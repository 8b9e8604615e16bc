//! OCI profiles: the `linux.seccomp` object of a container's configuration, which Docker and Podman also accept
//! with `--security-opt seccomp=FILE`.
//!
//! A profile has a default and entries: names of calls, conditions on arguments, an action. It is the same for all
//! architectures. libseccomp does not always give several conditions on one call their apparent meaning (see the
//! front end), so the exported conditions exclude each other. Names of calls made through `socketcall` or `ipc`
//! apply to these multiplexers, too.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tamis_abi::{Action, ActionKind, Arch, ArgIndex};
use tamis_diag::Diagnostic;
use tamis_scmp::{Comparison, Conditions};

use super::acceptance::{self, MULTIPLEXERS, Refused};
use super::alternatives::{Alternative, Alternatives, Form, Values};
use super::calls::{Actions, Answers, Calls, forced, strictest, with_errno_in, without_idle};
use super::{Export, ExportOptions, Exporter, Loss, Machine, Meaning, RuleForm};
use crate::code;
use tamis_diag::words::list;
use tamis_policy::oci::{self, names};

/// The exporter in the registry.
pub(super) static EXPORTER: Exporter = Exporter {
    name: "oci",
    plural: "OCI profiles",
    about: "An OCI profile for Docker, Podman, containerd and runc",
    front_end: &oci::FRONT_END,
    writes_rules: false,
    takes_installation: true,
    states_arches: false,
    write,
};

/// The features of a flavour of profiles.
#[derive(Clone, Copy)]
pub(super) struct Flavour {
    /// The plural of its texts.
    pub(super) plural: &'static str,
    /// The largest number in a condition.
    pub(super) max_number: u64,
    /// The most entries of a call, if the runtimes have a limit.
    pub(super) max_entries: Option<usize>,
    /// The nearest action of the flavour.
    pub(super) nearest_action: fn(Action) -> Action,
    /// The nearest default action of the flavour.
    pub(super) default: fn(Action) -> Action,
    /// Whether it supports an architecture.
    pub(super) has_arch: fn(Arch) -> bool,
}

const FLAVOUR: Flavour = Flavour {
    plural: "OCI profiles",
    max_number: u64::MAX,
    max_entries: None,
    nearest_action,
    default: nearest_action,
    has_arch: |arch| arch_name(arch).is_some(),
};

/// A profile.
pub(super) struct Profile {
    pub(super) default: Action,
    pub(super) arches: Vec<Arch>,
    pub(super) entries: Vec<Entry>,
}

/// An entry: some calls with one action.
pub(super) struct Entry {
    pub(super) names: Vec<&'static str>,
    pub(super) action: Action,
    pub(super) conditions: Vec<Condition>,
}

/// A condition on an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Condition {
    pub(super) index: u8,
    pub(super) value: u64,
    pub(super) value_two: Option<u64>,
    pub(super) op: &'static str,
}

/// The most entries of a call in a profile for Kubernetes (KEP-6061).
pub(super) const MAX_ENTRIES: usize = 128;

/// The most entries of a call for arguments with another error than the default's. Beyond it, such arguments get the
/// default.
const MAX_DENIED_ENTRIES: usize = 16;

/// The longest profile for Kubernetes.
const MAX_PROFILE_BYTES: usize = 1 << 20;

/// A profile's text, if it isn't too long.
pub(super) fn within_limits(text: String) -> Result<String, Box<Diagnostic>> {
    if text.len() <= MAX_PROFILE_BYTES {
        return Ok(text);
    }
    let message = format!(
        "the profile has {} bytes, and Kubernetes takes {MAX_PROFILE_BYTES}",
        text.len()
    );
    let diagnostic = Diagnostic::error(code::EXPORT_REFUSED, message);
    Err(Box::new(diagnostic.help(
        "simplify the conditions on arguments, or give `--arch` for one architecture",
    )))
}

fn write(meaning: &Meaning, options: &ExportOptions<'_>) -> Result<Export, Box<Diagnostic>> {
    let mut losses = Vec::new();
    let profile = profile(meaning, options, FLAVOUR, &mut losses)?;
    let calls = crowded(&profile.entries, MAX_ENTRIES);
    if !calls.is_empty() {
        losses.push(Loss {
            code: code::EXPORT_CONDITION,
            message: format!(
                "Kubernetes takes profiles with {MAX_ENTRIES} entries of a call (KEP-6061), and the conditions on {} need more",
                list(&calls)
            ),
            kept: "all entries, for runtimes without this limit".to_owned(),
            calls,
            arches: Vec::new(),
        });
    }
    Ok(Export {
        text: json(&profile, options),
        machines: vec![profile.machine()],
        bad_arch: Action::KILL_THREAD,
        losses,
    })
}

/// The profile of a policy, with losses for features that the flavour lacks.
pub(super) fn profile(
    meaning: &Meaning,
    options: &ExportOptions<'_>,
    flavour: Flavour,
    losses: &mut Vec<Loss>,
) -> Result<Profile, Box<Diagnostic>> {
    let plural = flavour.plural;
    let arches = arches(meaning, flavour, losses)?;
    let actions = Actions {
        plural,
        nearest_action: flavour.nearest_action,
    };
    let calls = Calls::from_meaning(meaning, &arches, actions, losses);
    let wanted = calls.default(plural, losses);
    let mut named = calls.named;
    let default = (flavour.default)(wanted);
    let asked = match is_notify_lost(wanted, default) {
        true => without_notify(&mut named, default),
        false => Vec::new(),
    };
    losses.extend(default_loss(plural, wanted, default, asked));
    let mut forms = options.forms.clone();
    let mut too_many: BTreeSet<&'static str> = BTreeSet::new();
    // Each round gives at least one call a longer form.
    loop {
        let mut writer = Writer {
            forms: &forms,
            too_many: &too_many,
            flavour,
            default,
            entries: BTreeMap::new(),
            lost: BTreeMap::new(),
        };
        for (name, answers) in &named {
            writer.call(name, answers);
        }
        let writer_losses = writer.losses();
        let entries = writer.into_entries();
        let found = flavour.max_entries.map(|most| crowded(&entries, most));
        let found = found.filter(|found| !found.is_empty());
        if let Some(found) = found {
            forms.extend(found.iter().map(|name| (*name, RuleForm::Whole)));
            too_many.extend(found);
            continue;
        }
        let refused = acceptance::refused(&arches, &entries);
        if refused.is_empty() {
            losses.extend(writer_losses);
            return Ok(Profile {
                default,
                arches,
                entries,
            });
        }
        let longer = refused.into_iter().map(|refused| {
            longer_form(&named, &forms, refused).ok_or_else(|| inexpressible(plural, refused.name))
        });
        for (name, form) in longer.collect::<Result<Vec<_>, _>>()? {
            let now = forms.entry(name).or_default();
            *now = form.max(*now);
        }
    }
}

/// Whether the policy notifies a supervisor by default and the profile can't.
fn is_notify_lost(wanted: Action, default: Action) -> bool {
    wanted.kind == ActionKind::Notify && default.kind != ActionKind::Notify
}

/// Replaces notifications by the default; returns the calls. Runtimes reject profiles with a notification for `write`,
/// which entries for all calls would contain.
fn without_notify(named: &mut Named<'_>, default: Action) -> Vec<&'static str> {
    let mut calls = Vec::new();
    for (name, answers) in named {
        let outcomes = answers.iter_mut().flat_map(|answers| &mut answers.outcomes);
        let mut is_asked = false;
        for (action, _) in outcomes.filter(|(action, _)| action.kind == ActionKind::Notify) {
            *action = default;
            is_asked = true;
        }
        calls.extend(is_asked.then_some(*name));
    }
    calls
}

/// The loss if the flavour lacks the policy's default, with the calls that get another action.
fn default_loss(
    plural: &str,
    wanted: Action,
    default: Action,
    calls: Vec<&'static str>,
) -> Option<Loss> {
    let whose = match calls.as_slice() {
        [] => "calls without an entry".to_owned(),
        calls => format!(
            "calls without an entry, and where the policy asks about {}",
            list(calls)
        ),
    };
    (default != wanted).then(|| Loss {
        code: code::EXPORT_ACTION,
        message: format!("{plural} have no default action {wanted}"),
        kept: format!("{default} for {whose}"),
        calls,
        arches: Vec::new(),
    })
}

/// The calls with more entries than these.
fn crowded(entries: &[Entry], most: usize) -> Vec<&'static str> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for name in entries.iter().flat_map(|entry| &entry.names) {
        *counts.entry(name).or_default() += 1;
    }
    counts.retain(|_, count| *count > most);
    counts.into_keys().collect()
}

/// A longer form for a call with a rejected entry; `None` if there is none.
///
/// In a multiplexer's tree the longer form is one action for the multiplexer if another call would make it less strict
/// than the policy: such an action is needed anyway, and the rejected call keeps its conditions under its own number.
fn longer_form(
    named: &Named<'_>,
    forms: &BTreeMap<&'static str, RuleForm>,
    refused: Refused,
) -> Option<(&'static str, RuleForm)> {
    let whole = (refused.name, RuleForm::Whole);
    let candidates = match refused.shared {
        None => [Some(whole), None],
        Some(shared) => {
            let multiplexer = (shared.multiplexer, RuleForm::Forced);
            let strictest = strictest(named.get(shared.multiplexer)?);
            let precedence = |action: Action| Action::precedence(action.ret());
            let is_looser = precedence(shared.loosest) > precedence(strictest);
            match is_looser || refused.name == shared.multiplexer {
                true => [Some(multiplexer), Some(whole)],
                false => [Some(whole), Some(multiplexer)],
            }
        }
    };
    let is_longer =
        |(name, form): &(&'static str, RuleForm)| forms.get(name).is_none_or(|now| now < form);
    candidates.into_iter().flatten().find(is_longer)
}

fn inexpressible(plural: &str, name: &str) -> Box<Diagnostic> {
    let message = format!("{plural} cannot express the rules for {name}: libseccomp refuses them");
    let diagnostic = Diagnostic::error(code::EXPORT_REFUSED, message);
    Box::new(diagnostic.help("give the call one action for all arguments"))
}

/// The architectures of a profile, that of a machine first.
fn arches(
    meaning: &Meaning,
    flavour: Flavour,
    losses: &mut Vec<Loss>,
) -> Result<Vec<Arch>, Box<Diagnostic>> {
    let plural = flavour.plural;
    let all = meaning.listings.iter().map(|listing| listing.arch);
    let (mut known, unknown): (Vec<Arch>, Vec<Arch>) =
        all.partition(|arch| (flavour.has_arch)(*arch));
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.iter().map(|arch| arch.name()).collect();
        losses.push(Loss {
            code: code::EXPORT_ARCHES,
            message: format!(
                "{plural} have no name for the architecture {}",
                list(&names)
            ),
            kept: "its calls are killed".to_owned(),
            calls: Vec::new(),
            arches: unknown,
        });
    }
    known = without_idle(meaning, known, losses);
    let native = known.iter().position(|arch| arch.is_64_bit());
    known.rotate_left(native.unwrap_or(0));
    if let Some(first) = known.first()
        && known.iter().all(|arch| arch.endian() == first.endian())
    {
        return Ok(known);
    }
    let diagnostic = match known.first() {
        Some(_) => Diagnostic::error(
            code::EXPORT_REFUSED,
            "the policy is for machines of both byte orders, but a profile is for one",
        )
        .help("give `--arch` once for each architecture of the profile"),
        None => Diagnostic::error(
            code::EXPORT_REFUSED,
            format!("the policy has no rules for an architecture that {plural} support"),
        )
        .help("`--arch` sets the architectures of the policy"),
    };
    Err(Box::new(diagnostic))
}

/// The nearest action of profiles.
pub(super) fn nearest_action(action: Action) -> Action {
    let last = names::MAX_ERRNO as u16;
    match action.kind {
        ActionKind::Trace if action.data <= last => action,
        _ => with_errno_in(action, 0, last),
    }
}

/// The actions of the calls by name.
type Named<'m> = BTreeMap<&'static str, Vec<Answers<'m>>>;

/// Collects calls into entries.
struct Writer<'w> {
    /// Calls with other forms than the shortest.
    forms: &'w BTreeMap<&'static str, RuleForm>,
    /// Calls with conditions that need more entries than the flavour permits.
    too_many: &'w BTreeSet<&'static str>,
    flavour: Flavour,
    default: Action,
    /// The calls by action and condition.
    entries: BTreeMap<(u32, Vec<Alternative>, bool), Vec<&'static str>>,
    /// The calls by loss and replacement.
    lost: BTreeMap<(LostFeature, u32), Vec<&'static str>>,
}

/// The features of a call that can't be expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LostFeature {
    /// Its condition.
    Condition,
    /// The entries of its condition.
    Entries,
    /// Some alternatives of its condition.
    SomeConditions,
    /// The error for arguments that no alternative allows.
    Error,
    /// Different actions on different architectures.
    Arches,
    /// A multiplexer with another action than its calls.
    Multiplexed,
}

impl Writer<'_> {
    fn call(&mut self, name: &'static str, answers: &[Answers<'_>]) {
        let form = self.forms.get(name).copied().unwrap_or_default();
        let wholes: Vec<Option<Action>> = answers.iter().map(Answers::whole).collect();
        let is_alike = wholes.iter().all(|whole| *whole == wholes[0]);
        let is_multiplexer = MULTIPLEXERS.contains(&name);
        if let Some(whole) = wholes[0].filter(|_| is_alike) {
            match form {
                RuleForm::Forced if is_multiplexer && whole == self.default => {
                    self.whole(name, forced(whole), Some(LostFeature::Multiplexed));
                }
                RuleForm::Short | RuleForm::Explicit => self.whole(name, whole, None),
                _ => self.whole(
                    name,
                    whole,
                    is_multiplexer.then_some(LostFeature::Multiplexed),
                ),
            }
            return;
        }
        let has_both = wholes.iter().any(Option::is_some);
        if form < RuleForm::Whole && !has_both && self.conditional(name, answers, form) {
            return;
        }
        let strictest = strictest(answers);
        let lost = match has_both {
            true => LostFeature::Arches,
            false if self.too_many.contains(name) => LostFeature::Entries,
            false => LostFeature::Condition,
        };
        match form {
            RuleForm::Forced if is_multiplexer && strictest == self.default => {
                self.whole(name, forced(strictest), Some(LostFeature::Multiplexed));
            }
            _ => self.whole(name, strictest, Some(lost)),
        }
    }

    /// Adds a call with one action.
    fn whole(&mut self, name: &'static str, action: Action, lost: Option<LostFeature>) {
        if action != self.default {
            let key = (action.ret(), vec![Alternative::new()], true);
            self.entries.entry(key).or_default().push(name);
        }
        if let Some(lost) = lost {
            let names = self.lost.entry((lost, action.ret())).or_default();
            names.push(name);
        }
    }

    /// Adds a call with conditions, if they can be expressed. The conditions are those of one architecture; the
    /// caller checks that they have the same meaning on the others.
    fn conditional(
        &mut self,
        name: &'static str,
        answers: &[Answers<'_>],
        rule_form: RuleForm,
    ) -> bool {
        let main = answers.iter().find(|answers| answers.arch.is_64_bit());
        let Some(main) = main.or(answers.first()) else {
            return false;
        };
        let form = Form {
            is_wide: main.arch.is_64_bit(),
            max_number: self.flavour.max_number,
            may_cut: is_as_strict(self.default, strictest(answers)),
            is_explicit: rule_form == RuleForm::Explicit,
        };
        let mut entries: Vec<(u32, Alternatives)> = Vec::new();
        let mut has_default = true;
        for (action, when) in &main.outcomes {
            if *action == self.default {
                continue;
            }
            let alternatives = when.and_then(|when| form.alternatives(when));
            if is_as_strict(self.default, *action) {
                let is_short =
                    |found: &Alternatives| !found.is_cut && found.list.len() <= MAX_DENIED_ENTRIES;
                if !alternatives.as_ref().is_some_and(is_short) {
                    has_default = false;
                    continue;
                }
            }
            let Some(alternatives) = alternatives else {
                return false;
            };
            entries.push((action.ret(), alternatives));
        }
        let is_cut = entries.iter().any(|(_, alternatives)| alternatives.is_cut);
        if is_cut
            && entries
                .iter()
                .all(|(_, alternatives)| alternatives.list.is_empty())
        {
            return false;
        }
        for (ret, alternatives) in entries {
            let key = (ret, alternatives.list, form.is_wide);
            self.entries.entry(key).or_default().push(name);
        }
        let losses = [
            (is_cut, LostFeature::SomeConditions),
            (!has_default, LostFeature::Error),
        ];
        for (_, lost) in losses.into_iter().filter(|(is_lost, _)| *is_lost) {
            let key = (lost, self.default.ret());
            self.lost.entry(key).or_default().push(name);
        }
        true
    }

    fn losses(&self) -> Vec<Loss> {
        let plural = self.flavour.plural;
        let loss = |((lost, ret), calls): (&(LostFeature, u32), &Vec<&'static str>)| {
            let (names, action) = (list(calls), Action::from_ret(*ret));
            let (code, message, kept) = match lost {
                LostFeature::Condition => (
                    code::EXPORT_CONDITION,
                    format!("{plural} cannot express the conditions on {names}"),
                    format!("{action} for all arguments, the strictest of the actions"),
                ),
                LostFeature::Entries => (
                    code::EXPORT_CONDITION,
                    format!(
                        "Kubernetes takes {MAX_ENTRIES} entries of a call (KEP-6061), and the conditions on {names} need more"
                    ),
                    format!("{action} for all arguments, the strictest of the actions"),
                ),
                LostFeature::SomeConditions => (
                    code::EXPORT_CONDITION,
                    format!("{plural} cannot express all conditions on {names}"),
                    format!("{action} where only the inexpressible conditions hold"),
                ),
                LostFeature::Error => (
                    code::EXPORT_CONDITION,
                    format!(
                        "{plural} need more than {MAX_DENIED_ENTRIES} entries for what {names} get with arguments that aren't allowed"
                    ),
                    format!("{action} for those arguments, the default"),
                ),
                LostFeature::Arches => (
                    code::EXPORT_ARCHES,
                    format!(
                        "{plural} cannot distinguish architectures, as the policy does for {names}"
                    ),
                    format!("{action} on all of them, the strictest of the actions"),
                ),
                LostFeature::Multiplexed => (
                    code::EXPORT_MULTIPLEXED,
                    format!(
                        "{plural} cannot distinguish {names} from the calls that it multiplexes"
                    ),
                    format!("{action} for calls without an entry"),
                ),
            };
            Loss {
                code,
                message,
                kept,
                calls: calls.clone(),
                arches: Vec::new(),
            }
        };
        self.lost.iter().map(loss).collect()
    }

    /// The entries: calls without conditions first.
    fn into_entries(self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for ((ret, alternatives, is_wide), mut names) in self.entries {
            names.sort_unstable();
            for alternative in alternatives {
                entries.push(Entry {
                    names: names.clone(),
                    action: Action::from_ret(ret),
                    conditions: conditions(&alternative, is_wide),
                });
            }
        }
        let order = |entry: &Entry| (!entry.conditions.is_empty(), order(entry.action));
        entries.sort_by(|a, b| {
            let texts = || {
                a.names
                    .cmp(&b.names)
                    .then_with(|| a.conditions.cmp(&b.conditions))
            };
            order(a).cmp(&order(b)).then_with(texts)
        });
        entries
    }
}

/// Whether an action denies like another one, possibly with a different error.
fn is_as_strict(action: Action, other: Action) -> bool {
    action == other || (action.kind, other.kind) == (ActionKind::Errno, ActionKind::Errno)
}

/// The order of entries by their actions: the least strict first.
fn order(action: Action) -> (Reverse<i32>, u16) {
    (Reverse(Action::precedence(action.ret())), action.data)
}

fn conditions(alternative: &Alternative, is_wide: bool) -> Vec<Condition> {
    let conditions = alternative.iter();
    conditions
        .map(|(index, values)| condition(*index, *values, is_wide))
        .collect()
}

impl Entry {
    /// The conditions as libseccomp reads them; `None` if it can't.
    pub(super) fn rule_conditions(&self) -> Option<Conditions> {
        let conditions: Option<Vec<_>> = self.conditions.iter().map(Condition::as_rule).collect();
        Conditions::new(&conditions?).ok()
    }
}

impl Condition {
    /// The condition as libseccomp reads it.
    fn as_rule(&self) -> Option<tamis_scmp::Condition> {
        let (comparison, value) = match (self.op, self.value_two) {
            ("SCMP_CMP_MASKED_EQ", Some(value)) => (Comparison::Masked { mask: self.value }, value),
            ("SCMP_CMP_EQ", _) => (Comparison::Eq, self.value),
            ("SCMP_CMP_NE", _) => (Comparison::Ne, self.value),
            ("SCMP_CMP_GE", _) => (Comparison::Ge, self.value),
            ("SCMP_CMP_LE", _) => (Comparison::Le, self.value),
            _ => return None,
        };
        Some(tamis_scmp::Condition {
            arg: ArgIndex::new(self.index)?,
            comparison,
            value,
        })
    }
}

fn condition(index: u8, values: Values, is_wide: bool) -> Condition {
    let all = if is_wide {
        u64::MAX
    } else {
        u64::from(u32::MAX)
    };
    let (op, value, value_two) = match values {
        Values::Bits { mask, value } if mask == all => ("SCMP_CMP_EQ", value, None),
        Values::Bits { mask, value } => ("SCMP_CMP_MASKED_EQ", mask, Some(value)),
        Values::Not(value) => ("SCMP_CMP_NE", value, None),
        Values::AtLeast(value) => ("SCMP_CMP_GE", value, None),
        Values::AtMost(value) => ("SCMP_CMP_LE", value, None),
    };
    Condition {
        index,
        value,
        value_two,
        op,
    }
}

impl Profile {
    /// The machine of the profile. Other machines add their own architecture to its list.
    pub(super) fn machine(&self) -> Machine {
        Machine {
            native: self.arches[0],
            arches: self.arches.clone(),
        }
    }
}

/// The name of an architecture in profiles.
pub(super) fn arch_name(arch: Arch) -> Option<&'static str> {
    let mut names = names::ARCHES.iter();
    names
        .find(|(_, known)| *known == arch)
        .map(|(name, _)| *name)
}

/// The name of an action in profiles, and its errno if it has one.
pub(super) fn action_name(action: Action) -> (&'static str, Option<u16>) {
    let mut names = names::ACTIONS
        .iter()
        .filter(|(name, _)| *name != "SCMP_ACT_KILL");
    let found = names.find(|(_, kind)| *kind == action.kind);
    let (name, _) = found.expect("every kind has a name");
    (name, names::takes_errno(action.kind).then_some(action.data))
}

/// The text of a profile.
fn json(profile: &Profile, options: &ExportOptions<'_>) -> String {
    let mut members = Vec::new();
    let (action, errno) = action_name(profile.default);
    members.push(format!("  \"defaultAction\": \"{action}\""));
    members.extend(errno.map(|errno| format!("  \"defaultErrnoRet\": {errno}")));
    let arches: Vec<&str> = profile
        .arches
        .iter()
        .copied()
        .filter_map(arch_name)
        .collect();
    members.push(format!("  \"architectures\": {}", strings(&arches, 2)));
    if !options.flags.is_empty() {
        let flags: Vec<&str> = options.flags.iter().map(String::as_str).collect();
        members.push(format!("  \"flags\": {}", strings(&flags, 2)));
    }
    if let Some(path) = options.listener_path {
        members.push(format!("  \"listenerPath\": {}", quoted(path)));
    }
    if let Some(text) = options.listener_metadata {
        members.push(format!("  \"listenerMetadata\": {}", quoted(text)));
    }
    let entries: Vec<String> = profile.entries.iter().map(entry_json).collect();
    members.push(match entries.as_slice() {
        [] => "  \"syscalls\": []".to_owned(),
        entries => format!("  \"syscalls\": [\n{}\n  ]", entries.join(",\n")),
    });
    format!("{{\n{}\n}}\n", members.join(",\n"))
}

fn entry_json(entry: &Entry) -> String {
    let (action, errno) = action_name(entry.action);
    let mut text = format!("    {{\n      \"names\": {}", strings(&entry.names, 6));
    let _ = write!(text, ",\n      \"action\": \"{action}\"");
    if let Some(errno) = errno {
        let _ = write!(text, ",\n      \"errnoRet\": {errno}");
    }
    let conditions: Vec<String> = entry.conditions.iter().map(condition_json).collect();
    if !conditions.is_empty() {
        let _ = write!(
            text,
            ",\n      \"args\": [\n{}\n      ]",
            conditions.join(",\n")
        );
    }
    text + "\n    }"
}

fn condition_json(condition: &Condition) -> String {
    let Condition {
        index, value, op, ..
    } = condition;
    let two = condition.value_two;
    let two = two.map_or(String::new(), |two| format!("\"valueTwo\": {two}, "));
    format!("        {{\"index\": {index}, \"value\": {value}, {two}\"op\": \"{op}\"}}")
}

/// An array of strings: on one line if short, else one string per line.
fn strings(texts: &[&str], indent: usize) -> String {
    const MAX_SHORT: usize = 3;
    let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    if quoted.len() <= MAX_SHORT {
        return format!("[{}]", quoted.join(", "));
    }
    let pad = " ".repeat(indent);
    format!("[\n{pad}  {}\n{pad}]", quoted.join(&format!(",\n{pad}  ")))
}

/// A JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
