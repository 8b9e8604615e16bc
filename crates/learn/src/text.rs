//! The text of a learned policy, with the evidence in comments.

use std::collections::BTreeSet;
use std::fmt::Write;

use tamis_abi::{Arch, Nr, syscall};
use tamis_export::tamis::{self as export, Style};
use tamis_rules::Predicate;

use crate::closure::{FALLBACKS, older};
use crate::evidence::Evidence;
use crate::learned::{ImpliedCalls, name};
use crate::wider::{Reason, Widening};

/// The content of a policy's text.
pub(crate) struct Contents<'c> {
    /// The names of the profiles.
    pub(crate) names: &'c [&'c str],
    /// The number of runs.
    pub(crate) runs: u64,
    /// The number of calls that were made in a single run.
    pub(crate) made_once: u64,
    /// The name of the base.
    pub(crate) base: Option<&'c str>,
    pub(crate) breadth: Breadth,
    /// Where the policy is wider than the evidence, by call.
    pub(crate) wider: &'c [Widening],
    pub(crate) allowed: &'c [Allowed<'c>],
    /// Calls that were not recorded.
    pub(crate) needed: &'c ImpliedCalls,
    /// Recorded calls that the base denies entirely.
    pub(crate) dropped: &'c [(Arch, Nr)],
}

/// How far a whole policy goes beyond the evidence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Breadth {
    /// Whether calls are allowed with any arguments.
    pub(crate) is_free: bool,
    /// Whether flags are allowed in combinations that were not recorded.
    pub(crate) has_joined_flags: bool,
    /// Whether values of several arguments are allowed in combinations that may not have occurred.
    pub(crate) has_products: bool,
}

/// An allowed call.
pub(crate) struct Allowed<'c> {
    pub(crate) arch: Arch,
    pub(crate) nr: Nr,
    pub(crate) when: Predicate,
    pub(crate) basis: Basis<'c>,
    /// The unrestricted arguments, with the reasons.
    pub(crate) free: Vec<(&'static str, Reason)>,
    /// The newer call that widened the condition.
    pub(crate) widened_for: Option<&'static str>,
}

impl Allowed<'_> {
    /// Where the call is wider than the evidence.
    pub(crate) fn wider(&self) -> Vec<Widening> {
        let mut wider: Vec<Widening> = Vec::new();
        let mut add = |argument: Option<&'static str>, reason: &Reason| match wider
            .iter_mut()
            .find(|wider| wider.reason == *reason)
        {
            Some(wider) => wider.arguments.extend(argument),
            None => wider.push(Widening {
                arch: self.arch,
                nr: self.nr,
                arguments: argument.into_iter().collect(),
                reason: reason.clone(),
            }),
        };
        for (argument, reason) in &self.free {
            add(Some(*argument), reason);
        }
        let newer = match self.basis {
            Basis::InsteadOf(newer) => Some(newer),
            Basis::Seen(_) => self.widened_for,
        };
        if let Some(newer) = newer {
            add(None, &Reason::InsteadOf(newer));
        }
        wider
    }
}

/// The reason why a call is allowed.
#[derive(Clone, Copy)]
pub(crate) enum Basis<'c> {
    /// It was recorded.
    Seen(&'c Evidence),
    /// A denied newer call was recorded that falls back to this one.
    InsteadOf(&'static str),
}

/// The column of comments.
const COMMENT: usize = 48;

/// The text of a policy.
///
/// # Errors
/// The exceeded limit, if a condition has more values than the language supports.
pub(crate) fn policy(contents: &Contents<'_>) -> Result<String, String> {
    let arches: BTreeSet<Arch> = contents
        .allowed
        .iter()
        .map(|allowed| allowed.arch)
        .collect();
    let mut text = heading(contents);
    let names: Vec<&str> = arches.iter().map(|arch| arch.name()).collect();
    let _ = writeln!(
        text,
        "arch {}\ndefault errno(EPERM)\nunknown errno(ENOSYS)",
        names.join(", ")
    );
    for arch in &arches {
        let rules = rules(contents, *arch)?;
        match arches.len() {
            1 => text += &rules,
            _ => {
                let _ = write!(text, "\non {arch} {{");
                for line in rules.lines() {
                    text += if line.is_empty() { "\n" } else { "\n    " };
                    text += line;
                }
                text += "\n}\n";
            }
        }
    }
    Ok(text)
}

fn heading(contents: &Contents<'_>) -> String {
    /// The most profiles that are named.
    const NAMED: usize = 5;
    let made = |allowed: &Allowed<'_>| match allowed.basis {
        Basis::Seen(evidence) => evidence.made(),
        Basis::InsteadOf(_) => 0,
    };
    let calls = contents
        .allowed
        .iter()
        .map(made)
        .fold(0, u64::saturating_add);
    let runs = contents.runs;
    let mut text = format!(
        "# Learned from {runs} run{}, {calls} call{}:",
        if runs == 1 { "" } else { "s" },
        if calls == 1 { "" } else { "s" }
    );
    for name in contents.names.iter().take(NAMED) {
        let _ = write!(text, " {}", comment(name));
    }
    if contents.names.len() > NAMED {
        text += " and others";
    }
    text.push('\n');
    if runs > 1 {
        let once = contents.made_once;
        let _ = writeln!(
            text,
            "# Made in one run only: {once} of {} calls. To expect in a further run: {:.2} calls that aren't here.",
            contents.allowed.len(),
            once as f64 / runs as f64,
        );
    }
    if contents.breadth.is_free {
        text += "# Calls are allowed with any arguments.\n";
    }
    if contents.breadth.has_joined_flags {
        text += "# Flags that were seen are allowed in any combination.\n";
    }
    if contents.breadth.has_products {
        text +=
            "# Values of one argument are allowed with those of the others in any combination.\n";
    }
    if let Some(base) = contents.base {
        let _ = writeln!(text, "# Allows nothing that {} denies.", comment(base));
    }
    text.push('\n');
    text
}

/// Escapes a name so that it can't end the comment.
fn comment(name: &str) -> String {
    name.escape_debug().to_string()
}

fn rules(contents: &Contents<'_>, arch: Arch) -> Result<String, String> {
    let runs = contents.runs;
    let mut text = "\n# What was called.\n".to_owned();
    let own = |of: &Arch| *of == arch;
    for allowed in contents.allowed.iter().filter(|allowed| own(&allowed.arch)) {
        let rule = rule(allowed)?;
        let is_own = |wider: &&Widening| (wider.arch, wider.nr) == (allowed.arch, allowed.nr);
        let own = contents.wider.iter().filter(is_own);
        let seen = evidence(allowed, runs).into_iter();
        let comments: Vec<String> = seen.chain(own.map(Widening::to_string)).collect();
        let _ = writeln!(text, "{rule:<COMMENT$} # {}", comments.join("; "));
        let name = name(allowed.arch, allowed.nr);
        if allowed.when != Predicate::True && older(&name).is_some() {
            let _ = writeln!(text, "errno(ENOSYS) {name}");
        }
    }
    for (reason, calls) in contents.needed {
        let names = calls
            .iter()
            .filter(|(of, _)| own(of))
            .map(|(arch, nr)| name(*arch, *nr));
        let names: Vec<String> = names.collect();
        if !names.is_empty() {
            let _ = writeln!(text, "\n# {}.\nallow {}", reason, names.join(", "));
        }
    }
    let is_seen = |nr: Nr| {
        contents
            .allowed
            .iter()
            .any(|allowed| (allowed.arch, allowed.nr) == (arch, nr))
    };
    let fallbacks = FALLBACKS.iter().map(|(newer, _)| *newer);
    let unseen: Vec<&str> = fallbacks
        .filter(|name| syscall::number(arch, name).is_some_and(|nr| !is_seen(nr)))
        .collect();
    if !unseen.is_empty() {
        text += "\n# Programs fall back to older calls.\n";
        let _ = writeln!(text, "errno(ENOSYS) {}", unseen.join(", "));
    }
    let dropped = contents.dropped.iter().filter(|(of, _)| own(of));
    let dropped: Vec<String> = dropped.map(|(arch, nr)| name(*arch, *nr)).collect();
    if !dropped.is_empty() {
        let _ = writeln!(
            text,
            "\n# Called, but denied by the base: {}.",
            dropped.join(", ")
        );
    }
    Ok(text)
}

fn rule(allowed: &Allowed<'_>) -> Result<String, String> {
    let call = syscall::name(allowed.arch, allowed.nr);
    let name = call.map_or_else(|| format!("nr({})", allowed.nr.0), str::to_owned);
    if allowed.when == Predicate::True {
        return Ok(format!("allow {name}"));
    }
    let condition = export::condition(allowed.arch, call, &allowed.when, Style::Named);
    let condition = condition.map_err(|error| format!("{name}: {error}"))?;
    Ok(format!("allow {name}({condition})"))
}

/// The comment on the evidence: the number of calls, runs and failures.
fn evidence(allowed: &Allowed<'_>, runs: u64) -> Option<String> {
    let Basis::Seen(evidence) = allowed.basis else {
        return None;
    };
    let mut text = format!("{}", evidence.made());
    if runs > 1 {
        let _ = write!(text, " in {} of {runs}", evidence.coverage.runs);
    }
    let failed = evidence
        .call
        .errors
        .values()
        .copied()
        .fold(0, u64::saturating_add);
    if failed > 0 {
        let _ = write!(text, ", {failed} failed");
    }
    if evidence.call.denied > 0 {
        let _ = write!(text, ", {} denied", evidence.call.denied);
    }
    Some(text)
}
