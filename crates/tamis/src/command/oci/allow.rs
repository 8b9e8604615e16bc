//! `tamis oci allow`: more calls in a profile that exists.
//!
//! Entries are added to the text. The proof is of the changed text, for each reading of the profile: as an overlay of the
//! old profile with the calls, it must execute the same calls.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tamis_abi::{Action, Arch, syscall};
use tamis_algebra::{Operation, combine};
use tamis_analysis::{CaseLimits, Difference, Machine, differences_of};
use tamis_deploy::oci::ProfileText;
use tamis_export as export;
use tamis_export::convert::{self, Source};
use tamis_prover::{LimitReached, Scope, Space};
use tamis_report::oci::OciAllowReport;
use tamis_rules::{Predicate, Ruleset};
use tamis_session::{Input, InputKind, Loaded};

use super::super::convert::failure;
use super::read_text;
use crate::cli::limits::LimitArgs;
use crate::cli::load::LoadArgs;
use crate::cli::output::{self, OutputArgs};
use crate::cli::settings::Coverage;
use crate::cli::{Failure, Global, budget, exit};

pub(super) const HELP: &str = "\
A call is in the words of the tamis language, or has the value of its first argument in parentheses. The entries are added \
behind the others, and the rest of the file stays as it is. It is proved, for each architecture of the profile and for each \
set of capabilities that it distinguishes, that exactly these calls become allowed.
Examples:
  tamis oci allow docker.json setns 'socket(AF_ALG)' -o wider.json
  tamis oci allow docker.json 'personality(personality in {8, 0x20008})' -o -";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct AllowArgs {
    /// The profile, or a container's config.json, changed in place without -o; `-` for standard input
    profile: PathBuf,
    /// The calls
    #[arg(required = true, value_name = "CALL")]
    calls: Vec<String>,
    /// Accept that an entry with a condition opens `socketcall` or `ipc` on 32-bit machines, whatever the arguments
    #[arg(long)]
    allow_multiplexed: bool,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: LoadArgs,
    /// Write to this file and leave PROFILE as it is; `-` for standard output
    #[arg(short, long, value_name = "FILE", help_heading = None)]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &AllowArgs, global: &Global) -> Result<u8, Failure> {
    let (name, text) = read_text(&args.profile)?;
    let coverage = Coverage::new(&args.load, &[]);
    let first = coverage.first.for_comparison();
    let old = policy(&first, &name, &text)?;
    let profile = ProfileText::parse(&name, text.clone())?;
    let calls: Vec<String> = args.calls.iter().map(|call| full(call)).collect();
    let entries = entries(args, &first, &calls, &old)?;
    let changed = profile.with_allowing_entries(&entries, &unconditional(&calls))?;
    let mut notes = Notes::default();
    let others = coverage.others(&[std::slice::from_ref(&old)])?;
    let loads = others
        .into_iter()
        .map(|other| (other.title, other.load.for_comparison()));
    let mut readings = 0;
    for (title, load) in std::iter::once((String::new(), first)).chain(loads) {
        let old = policy(&load, &name, &text)?;
        let new = policy(&load, &name, &changed)?;
        check(args, &calls, [&old, &new], &title, &mut notes)?;
        readings += 1;
    }
    let place = args.output.as_ref().unwrap_or(&args.profile);
    OutputArgs::to(place.clone()).text(&changed)?;
    let report = OciAllowReport {
        profile: name,
        calls: args.calls.clone(),
        readings,
        has_opened_more: !notes.multiplexed.is_empty(),
        notes: notes.into_lines(profile.leftover()),
    };
    match global.json && !super::is_standard(place) {
        true => output::show(&report, global)?,
        false => global.notice(report.to_string().trim_end()),
    }
    Ok(exit::OK)
}

/// The changes beside the calls, each once.
#[derive(Default)]
struct Notes {
    /// The calls that are still denied, with another action.
    actions: BTreeSet<String>,
    /// The calls that became allowed because others are multiplexed in them.
    multiplexed: BTreeSet<String>,
}

impl Notes {
    fn into_lines(self, leftover: Option<&str>) -> Vec<String> {
        let changes = self.actions.into_iter().chain(self.multiplexed);
        changes.chain(leftover.map(str::to_owned)).collect()
    }
}

/// A call in the words of the language: a value alone is that of the first argument.
fn full(call: &str) -> String {
    let parts = call.trim().strip_suffix(')');
    let parts = parts.and_then(|call| call.split_once('('));
    let is_value = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match parts {
        Some((name, value)) if is_value(value.trim()) => {
            format!("{name}(arg0 == {})", value.trim())
        }
        _ => call.to_owned(),
    }
}

/// A reading of the profile.
fn policy(load: &LoadArgs, name: &str, text: &str) -> Result<Loaded, Failure> {
    load.load_input(Input::new(name, text))
}

/// The rules of a reading.
fn ruleset(loaded: &Loaded) -> Result<&Ruleset, Failure> {
    let policy = loaded.policy().filter(|policy| policy.selection.is_some());
    let policy = policy.ok_or_else(|| {
        Failure::usage(
            "the input is no profile of containers",
            "name a profile in JSON",
        )
    })?;
    Ok(&policy.ruleset)
}

/// The policy that allows the calls and nothing else.
fn allowing(calls: &[String], arches: &[Arch]) -> Result<Ruleset, Failure> {
    let arches: Vec<&str> = arches.iter().map(|arch| arch.name()).collect();
    let text = format!(
        "allow {}\narch {}\ndefault errno(EPERM)\nbad-arch kill-thread\n",
        calls.join(", "),
        arches.join(", ")
    );
    let load = LoadArgs::of_kind(InputKind::TAMIS);
    let loaded = load.load_input(Input::new("<calls>", text))?;
    let Loaded::Policy(policy) = loaded else {
        unreachable!("the kind is a policy");
    };
    Ok(policy.ruleset)
}

/// The names of the calls that are allowed with all arguments, on any architecture on which the conditions of the others
/// have a meaning.
fn unconditional(calls: &[String]) -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    for ruleset in Arch::all().filter_map(|arch| allowing(calls, &[arch]).ok()) {
        for section in ruleset.sections() {
            let rules = section.rules.iter();
            let whole = rules.filter(|rule| rule.when == Predicate::True);
            for rule in whole {
                let calls = syscall::all(section.arch).filter(|(nr, name)| {
                    rule.syscalls.contains(nr.0) && syscall::name(section.arch, *nr) == Some(name)
                });
                names.extend(calls.map(|(_, name)| name));
            }
        }
    }
    names
}

/// Whether a call is allowed for some of its arguments alone.
fn has_conditions(allowing: &Ruleset) -> bool {
    let mut rules = allowing
        .sections()
        .iter()
        .flat_map(|section| &section.rules);
    rules.any(|rule| rule.when != Predicate::True)
}

/// A profile with the entries for the calls.
fn entries(
    args: &AllowArgs,
    load: &LoadArgs,
    calls: &[String],
    old: &Loaded,
) -> Result<String, Failure> {
    let native = load.call_arch();
    let arch = match ruleset(old)?.section(native) {
        Some(_) => native,
        None => Arch::X86_64,
    };
    profile_of(calls, arch, &args.limits)
}

/// A profile of an architecture with entries for the calls.
pub(crate) fn profile_of(
    calls: &[String],
    arch: Arch,
    limits: &LimitArgs,
) -> Result<String, Failure> {
    let ruleset = allowing(calls, &[arch])?;
    let gave_up = |limit| limits.gave_up("nothing was written", limit);
    let mut space = Space::stoppable(limits.limits(), budget::stop());
    let function = space.ruleset(&ruleset).map_err(gave_up)?;
    let oci = export::find("oci").expect("it is registered");
    let source = Source {
        arches: vec![arch],
        ..Source::named("calls")
    };
    let converted = convert::convert(&mut space, function, oci, &source);
    let converted = converted.map_err(|refusal| failure(limits, refusal))?;
    match converted.losses.first() {
        Some(loss) => Err(Failure::input(format!(
            "{}; nothing was written",
            loss.message
        ))),
        None => Ok(converted.text),
    }
}

/// Proves that a changed profile executes what the old one does, and the calls.
fn check(
    args: &AllowArgs,
    calls: &[String],
    [old, new]: [&Loaded; 2],
    title: &str,
    notes: &mut Notes,
) -> Result<(), Failure> {
    let gave_up = |limit| args.limits.gave_up("nothing was written", limit);
    let old = ruleset(old)?;
    let arches: Vec<Arch> = old.sections().iter().map(|section| section.arch).collect();
    let added = allowing(calls, &arches)?;
    let wanted = combine(Operation::Overlay, old, &[&added]);
    let wanted = wanted.map_err(|error| Failure::gave_up(error.to_string(), None))?;
    let mut space = Space::stoppable(args.limits.limits(), budget::stop());
    let wanted = space.ruleset(&wanted).map_err(gave_up)?;
    let new = space.ruleset(ruleset(new)?).map_err(gave_up)?;
    let comparison = space.comparison(wanted, new, &Scope::default());
    let comparison = comparison.map_err(gave_up)?;
    let found = differences_of(&mut space, &comparison, &CaseLimits::default());
    let found = found.map_err(gave_up)?;
    if !found.is_complete {
        return Err(gave_up(LimitReached::Paths));
    }
    for difference in found.list {
        let [wanted, is] = [difference.left_ret, difference.right_ret].map(Action::from_ret);
        let call = shown(&difference);
        if wanted.kind.executes() == is.kind.executes() {
            notes
                .actions
                .insert(format!("{call}: {is} instead of {wanted}"));
        } else if is_multiplexed(&difference) && is.kind.executes() {
            if has_conditions(&added) && !args.allow_multiplexed {
                return Err(Failure::usage(
                    format!("the entries would open {call} for arguments that no profile can test"),
                    "`--allow-multiplexed` accepts that; nothing was written",
                ));
            }
            notes
                .multiplexed
                .insert(format!("{call}: allowed, as the way to these calls"));
        } else {
            let title = [" ", title].concat();
            let message = format!(
                "with these entries the profile would have {is} instead of {wanted}{} for {call}",
                title.trim_end()
            );
            let help = match wanted.kind.executes() {
                true => "an entry of the profile for the same call conflicts: change that one",
                false => {
                    "constants differ between architectures: limit the calls by numbers that don't"
                }
            };
            return Err(Failure::usage(
                message,
                format!("{help}; nothing was written"),
            ));
        }
    }
    Ok(())
}

/// The calls of a difference.
fn shown(difference: &Difference) -> String {
    let names = names(difference);
    let arch = match difference.machine {
        Machine::Known(arch) => arch.name(),
        Machine::Other(_) => "other architectures",
    };
    match names.as_slice() {
        [] => format!("{arch} numbers without a name"),
        [names @ .., last] if names.len() < 3 => {
            let all: Vec<&str> = names.iter().chain([last]).copied().collect();
            format!("{arch} {}", all.join(", "))
        }
        [first, ..] => format!("{arch} {first} and {} more", names.len() - 1),
    }
}

fn names(difference: &Difference) -> Vec<&'static str> {
    let Machine::Known(arch) = difference.machine else {
        return Vec::new();
    };
    let calls = syscall::all(arch).filter(|(nr, _)| difference.numbers.contains(nr.0));
    calls.map(|(_, name)| name).collect()
}

/// Whether a difference is about calls that others are multiplexed in, which profiles can't separate.
fn is_multiplexed(difference: &Difference) -> bool {
    let names = names(difference);
    !names.is_empty()
        && names
            .iter()
            .all(|name| ["socketcall", "ipc"].contains(name))
}
