//! Drop-ins for systemd units: `SystemCallFilter=` and related directives.
//!
//! If numbers without a name are denied, the list is an allow list, otherwise a deny list; logged calls are in
//! `SystemCallLog=`. Only three conditions on arguments can be expressed: on the family of `socket`, on the namespaces
//! of `clone` and on `personality`. Names of calls through `socketcall` or `ipc` also apply to these multiplexers, so
//! those two are listed with their own action if it matters. An allow list contains systemd's set `@default`, and
//! unwanted calls are removed from it. Newer releases of systemd return `ENOSYS` for calls unknown to them regardless
//! of the list, and allow `write`; a text is for the release that the caller names. Architectures without restrictions
//! of families in systemd are omitted from `SystemCallArchitectures=` if the restriction of `socket` would otherwise be
//! lost on all others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tamis_abi::{Action, ActionKind, Arch, consts, errno};
use tamis_diag::Diagnostic;

use super::calls::{Actions, Answers, Calls, strictest, with_errno_in, without_idle};
use super::families::Families;
use super::switches::Switches;
use super::{Export, ExportOptions, Exporter, Loss, Machine, Meaning, RuleForm};
use crate::code;
use tamis_diag::words::{joined, list};
use tamis_policy::systemd::{self, SystemdVersion};

/// The exporter in the registry.
pub(super) static EXPORTER: Exporter = Exporter {
    name: "systemd",
    plural: "systemd units",
    about: "A drop-in for a systemd unit: SystemCallFilter= and related directives",
    front_end: &systemd::FRONT_END,
    writes_rules: false,
    takes_installation: false,
    states_arches: false,
    write,
};

/// Longer lines are broken.
const MAX_COLUMNS: usize = 100;

fn write(meaning: &Meaning, options: &ExportOptions<'_>) -> Result<Export, Box<Diagnostic>> {
    let mut losses = Vec::new();
    let machines = machines(meaning, &mut losses)?;
    let machines = with_families(meaning, machines, options, &mut losses);
    let arches: BTreeSet<Arch> = machines
        .iter()
        .flat_map(|m| m.arches.iter().copied())
        .collect();
    let arches: Vec<Arch> = arches.into_iter().collect();
    let calls = Calls::from_meaning(meaning, &arches, ACTIONS, &mut losses);
    let default = calls.default(EXPORTER.plural, &mut losses);
    let mut plain: BTreeMap<&'static str, UnitEntry> = BTreeMap::new();
    let mut lost: BTreeMap<(bool, u32), Vec<&'static str>> = BTreeMap::new();
    let mut families = None;
    let natives: Vec<Arch> = machines.iter().map(|machine| machine.native).collect();
    let switches = Switches::from_calls(&calls, &natives, options);
    losses.extend(switches.losses);
    for (name, answers) in calls.named {
        if switches.calls.contains(&name) {
            plain.insert(name, UnitEntry::ALLOWED);
            continue;
        }
        if name == "socket" && options.form_for(name) < RuleForm::Whole {
            families = Families::from_answers(&answers, machines[0].native);
        }
        if let Some(families) = families.as_ref().filter(|_| name == "socket") {
            losses.extend(families.loss.clone());
            plain.insert(name, UnitEntry::ALLOWED);
            continue;
        }
        let answer = strictest(&answers);
        let wholes: Vec<Option<Action>> = answers.iter().map(Answers::whole).collect();
        if wholes.iter().any(|whole| *whole != Some(answer)) {
            let is_whole = wholes.iter().all(Option::is_some);
            lost.entry((is_whole, answer.ret())).or_default().push(name);
        }
        let entry = UnitEntry {
            answer,
            is_explicit: options.form_for(name) > RuleForm::Short,
        };
        plain.insert(name, entry);
    }
    losses.extend(
        lost.into_iter()
            .map(|((is_whole, ret), calls)| loss(is_whole, ret, calls)),
    );
    let is_open = meaning.bad_arch == Action::ALLOW && covers_machines(&machines);
    let unit = Unit {
        default,
        calls: plain,
        families: families.map(|families| families.names),
        switches: switches.lines,
        natives,
        version: options.systemd,
    };
    unit.check_write()?;
    losses.extend(unit.unknown_calls());
    let text = unit.text(&arches, is_open);
    Ok(Export {
        text,
        machines,
        bad_arch: match is_open {
            true => Action::ALLOW,
            false => Action::KILL_THREAD,
        },
        losses,
    })
}

const ACTIONS: Actions = Actions {
    plural: EXPORTER.plural,
    nearest_action,
};

/// Removes the architectures without restrictions of families in systemd, if `socket` thereby keeps its restriction.
fn with_families(
    meaning: &Meaning,
    machines: Vec<Machine>,
    options: &ExportOptions<'_>,
    losses: &mut Vec<Loss>,
) -> Vec<Machine> {
    let arches = machines
        .iter()
        .flat_map(|machine| machine.arches.iter().copied());
    let arches: BTreeSet<Arch> = arches.collect();
    let (kept, left_out): (Vec<Arch>, Vec<Arch>) = arches
        .into_iter()
        .partition(|arch| systemd::restricts_families(*arch));
    let keeps_natives = machines
        .iter()
        .all(|machine| kept.contains(&machine.native));
    if left_out.is_empty() || !keeps_natives || options.form_for("socket") >= RuleForm::Whole {
        return machines;
    }
    let calls = Calls::from_meaning(meaning, &kept, ACTIONS, &mut Vec::new());
    let answers = calls.named.get("socket");
    if answers
        .and_then(|answers| Families::from_answers(answers, machines[0].native))
        .is_none()
    {
        return machines;
    }
    let [names, others] = [&left_out, &kept].map(|arches| {
        let names: Vec<&str> = arches.iter().map(|arch| arch.name()).collect();
        list(&names)
    });
    losses.push(Loss {
        code: code::EXPORT_ARCHES,
        message: format!("systemd cannot restrict the families of `socket` on {names}"),
        kept: format!("its calls are killed, so that families stay allowed on {others}"),
        calls: Vec::new(),
        arches: left_out,
    });
    let without = |machine: Machine| Machine {
        arches: machine
            .arches
            .into_iter()
            .filter(|arch| kept.contains(arch))
            .collect(),
        ..machine
    };
    machines.into_iter().map(without).collect()
}

fn loss(is_whole: bool, ret: u32, calls: Vec<&'static str>) -> Loss {
    let (names, action) = (list(&calls), Action::from_ret(ret));
    let (code, message, kept) = match is_whole {
        true => (
            code::EXPORT_ARCHES,
            format!(
                "systemd units cannot distinguish architectures, as the policy does for {names}"
            ),
            format!("{action} on all of them, the strictest of the actions"),
        ),
        false => (
            code::EXPORT_CONDITION,
            // These calls are denied, so each is named.
            format!(
                "systemd units cannot express the conditions on {}",
                joined(
                    &calls
                        .iter()
                        .map(|call| format!("`{call}`"))
                        .collect::<Vec<_>>(),
                    "and"
                )
            ),
            format!("{action} for all arguments, the strictest of the actions"),
        ),
    };
    Loss {
        code,
        message,
        kept,
        calls,
        arches: Vec::new(),
    }
}

/// The machines for the policy: those with kernels that run its architectures.
fn machines(meaning: &Meaning, losses: &mut Vec<Loss>) -> Result<Vec<Machine>, Box<Diagnostic>> {
    let all = meaning.listings.iter().map(|listing| listing.arch);
    let (known, unknown): (Vec<Arch>, Vec<Arch>) =
        all.partition(|arch| systemd::arch_name(*arch).is_some());
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.iter().map(|arch| arch.name()).collect();
        losses.push(Loss {
            code: code::EXPORT_ARCHES,
            message: format!("systemd has no name for the architecture {}", list(&names)),
            kept: "its calls are killed".to_owned(),
            calls: Vec::new(),
            arches: unknown,
        });
    }
    let known = without_idle(meaning, known, losses);
    let others = |arch: Arch| known.iter().copied().filter(move |other| *other != arch);
    let is_guest = |arch: Arch| {
        others(arch).any(|host| {
            let is_x32_first = host == Arch::X32 && known.contains(&Arch::X86_64);
            systemd::local_arches(host).contains(&arch) && !is_x32_first
        })
    };
    let natives = known.iter().copied().filter(|arch| !is_guest(*arch));
    let machine = |native: Arch| {
        let local = systemd::local_arches(native).into_iter();
        Machine {
            native,
            arches: local.filter(|arch| known.contains(arch)).collect(),
        }
    };
    let machines: Vec<Machine> = natives.map(machine).collect();
    if machines.is_empty() {
        let message = "the policy has no rules for an architecture that systemd supports";
        let diagnostic = Diagnostic::error(code::EXPORT_REFUSED, message);
        let help = "`--arch` sets the architectures of the policy";
        return Err(Box::new(diagnostic.help(help)));
    }
    Ok(machines)
}

/// Whether the policy has rules for all architectures of the machines.
fn covers_machines(machines: &[Machine]) -> bool {
    let covers = |machine: &Machine| {
        let local = systemd::local_arches(machine.native);
        local.iter().all(|arch| machine.arches.contains(arch))
    };
    machines.iter().all(covers)
}

/// The nearest action of systemd that is as strict.
fn nearest_action(action: Action) -> Action {
    match action.kind {
        ActionKind::Allow | ActionKind::Log | ActionKind::Errno => with_errno_in(action, 1, 4094),
        ActionKind::KillProcess | ActionKind::KillThread | ActionKind::Trap => Action::KILL_PROCESS,
        ActionKind::Notify | ActionKind::Trace => Action::errno(1),
    }
}

/// The entry of a call in a unit.
#[derive(Clone, Copy)]
struct UnitEntry {
    answer: Action,
    /// Whether its action is written in a deny list even if it is the usual one.
    is_explicit: bool,
}

impl UnitEntry {
    /// A call that another setting restricts.
    const ALLOWED: UnitEntry = UnitEntry {
        answer: Action::ALLOW,
        is_explicit: false,
    };
}

/// The beginning of every text. systemd would combine the assignments of a drop-in with those of the unit; empty
/// assignments reset them.
const HEAD: &str = "\
[Service]
SystemCallFilter=
SystemCallErrorNumber=
SystemCallLog=
SystemCallArchitectures=
";

struct Unit {
    /// The action of numbers without a name.
    default: Action,
    calls: BTreeMap<&'static str, UnitEntry>,
    /// The families of `socket`; `None` if they aren't restricted here.
    families: Option<Vec<String>>,
    /// Settings for the arguments of other calls, each a line.
    switches: Vec<String>,
    /// The architectures of the machines; the errno names of the first are used.
    natives: Vec<Arch>,
    /// The release of systemd that reads the text.
    version: SystemdVersion,
}

impl Unit {
    fn is_allow_list(&self) -> bool {
        !self.default.kind.executes()
    }

    /// The action of calls unknown to systemd, if it differs from that of unlisted calls.
    fn of_unknown_calls(&self) -> Option<Action> {
        let has_one = self.is_allow_list() && self.version.answers_unknown_calls_with_enosys();
        let number = consts::value(self.natives[0], "ENOSYS").filter(|_| has_one)?;
        u16::try_from(number).ok().map(Action::errno)
    }

    /// Rejects a policy that denies `write` if systemd always allows it.
    fn check_write(&self) -> Result<(), Box<Diagnostic>> {
        let version = self.version;
        let entry = self.calls.get("write");
        let is_denied = entry.is_some_and(|entry| !entry.answer.kind.executes());
        if !version.always_allows_write() || !is_denied {
            return Ok(());
        }
        let message =
            format!("systemd {version} lets every service call `write`, which the policy denies");
        let diagnostic = Diagnostic::error(code::EXPORT_REFUSED, message);
        let help = "`ExecStart=tamis exec -p FILTER PROGRAM` installs the filter as it is";
        Err(Box::new(diagnostic.help(help)))
    }

    /// The loss of the policy's action for calls unknown to systemd.
    fn unknown_calls(&self) -> Option<Loss> {
        let own = self.of_unknown_calls()?;
        (own != self.default).then(|| Loss {
            code: code::EXPORT_UNKNOWN,
            message: format!(
                "systemd {} has an action of its own for calls that it does not know",
                self.version
            ),
            kept: format!("{own} for numbers without a name, not {}", self.default),
            calls: Vec::new(),
            arches: Vec::new(),
        })
    }

    /// The action of denied calls without an explicit one. If there are two, libseccomp rejects that of calls unknown
    /// to systemd unless it is this one.
    fn usual(&self) -> Action {
        if !self.is_allow_list() {
            return self.most_common_denial();
        }
        let unknown = self.of_unknown_calls();
        let mut denied = self.calls.values().map(|entry| Some(entry.answer));
        match unknown {
            Some(unknown) if denied.any(|answer| answer == Some(unknown)) => unknown,
            _ => self.default,
        }
    }

    fn text(&self, arches: &[Arch], is_open: bool) -> String {
        let passes = |action: Action| action.kind.executes();
        let mut lines = String::from(HEAD);
        let is_allow_list = self.is_allow_list();
        let usual = self.usual();
        let (mut listed, mut denied) = (Vec::new(), Vec::new());
        let at_once = systemd::default_calls(self.version);
        let answered = systemd::answered_calls(&self.natives, self.version);
        // A call that gets `ENOSYS` instead needs an explicit entry if that is looser.
        let is_unanswered = |name: &str| {
            let mut answered = answered.iter();
            usual == Action::KILL_PROCESS && answered.any(|calls| !calls.contains(name))
        };
        for (name, entry) in &self.calls {
            // libseccomp rejects entries of an allow list with the action of all calls that are not in it.
            let is_usual = entry.answer == usual && (is_allow_list || !entry.is_explicit);
            let with_answer = || format!("{name}:{}", self.answer(entry.answer));
            match (passes(entry.answer), is_allow_list) {
                (true, true) => listed.push((*name).to_owned()),
                (true, false) => {}
                (false, true) if is_usual && is_unanswered(name) => denied.push(with_answer()),
                (false, true) if is_usual && !at_once.contains(name) => {}
                (false, _) if is_usual => denied.push((*name).to_owned()),
                (false, _) => denied.push(with_answer()),
            }
        }
        if is_allow_list {
            // An empty list would be no filter.
            assign(
                &mut lines,
                "SystemCallFilter",
                "",
                &listed_or_default(listed),
            );
        }
        if !denied.is_empty() {
            assign(&mut lines, "SystemCallFilter", "~", &denied);
        }
        if usual != Action::KILL_PROCESS && (is_allow_list || !denied.is_empty()) {
            let answer = [self.answer(usual)];
            assign(&mut lines, "SystemCallErrorNumber", "", &answer);
        }
        if let Some(families) = &self.families {
            lines += "RestrictAddressFamilies=\n";
            assign(&mut lines, "RestrictAddressFamilies", "", families);
        }
        for line in &self.switches {
            let _ = writeln!(lines, "{line}");
        }
        self.log(&mut lines);
        if !is_open {
            let names = arches.iter().copied().filter_map(systemd::arch_name);
            let names: Vec<String> = names.map(str::to_owned).collect();
            assign(&mut lines, "SystemCallArchitectures", "", &names);
        }
        lines
    }

    /// `SystemCallLog=`, if anything is logged.
    fn log(&self, lines: &mut String) {
        let is_logged = |entry: &UnitEntry| entry.answer.kind == ActionKind::Log;
        let logs_others = self.default.kind == ActionKind::Log;
        // Denied calls can be omitted.
        let is_listed = |entry: &UnitEntry| match logs_others {
            true => entry.answer == Action::ALLOW,
            false => is_logged(entry),
        };
        let names = self.calls.iter().filter(|(_, entry)| is_listed(entry));
        let names: Vec<String> = names.map(|(name, _)| (*name).to_owned()).collect();
        match (logs_others, names.is_empty()) {
            (true, _) => assign(lines, "SystemCallLog", "~", &names),
            (false, false) => assign(lines, "SystemCallLog", "", &names),
            (false, true) => {}
        }
    }

    /// The most frequent denial; kill if none is denied.
    fn most_common_denial(&self) -> Action {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for entry in self.calls.values() {
            if matches!(
                entry.answer.kind,
                ActionKind::Errno | ActionKind::KillProcess
            ) {
                *counts.entry(entry.answer.ret()).or_default() += 1;
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map_or(Action::KILL_PROCESS, |(ret, _)| Action::from_ret(ret))
    }

    /// `kill`, or an errno by name if the name is the same everywhere.
    fn answer(&self, action: Action) -> String {
        match action.kind {
            ActionKind::Errno => {
                let usual = errno::portable_name(action.data).or(Some("ENOSYS"));
                let matches = |name: &&str| systemd::is_errno(name, action.data, self.natives[0]);
                let name = usual.filter(matches).map(str::to_owned);
                name.unwrap_or_else(|| action.data.to_string())
            }
            _ => "kill".to_owned(),
        }
    }
}

/// The names, or a call that is always in the list.
fn listed_or_default(listed: Vec<String>) -> Vec<String> {
    match listed.is_empty() {
        true => vec!["@default".to_owned()],
        false => listed,
    }
}

/// Adds an assignment; long ones are continued with backslashes.
fn assign(lines: &mut String, key: &str, sign: &str, words: &[String]) {
    let mut line = format!("{key}={sign}");
    let mut is_first = true;
    for word in words {
        let space = usize::from(!is_first);
        if !is_first && line.len() + space + word.len() > MAX_COLUMNS {
            let _ = writeln!(lines, "{line} \\");
            line = format!("    {word}");
        } else {
            if !is_first {
                line.push(' ');
            }
            line.push_str(word);
        }
        is_first = false;
    }
    let _ = writeln!(lines, "{line}");
}
