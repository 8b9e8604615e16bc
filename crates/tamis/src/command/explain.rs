//! `tamis explain`: the action for a call and its reason, or the meaning of a diagnostic code.

mod records;

use tamis_abi::call::strace;
use tamis_abi::{Arch, Nr, SeccompData, syscall};
use tamis_policy::systemd::{self, AllowList, SystemdOptions};
use tamis_report::explain::{ExplainCodeReport, ExplainReport, Explanation};
use tamis_session::path_text::path_of;
use tamis_session::{Error, Input, Loaded, Policy};

use crate::cli::load::{LoadArgs, native_arch};
use crate::cli::output::{self, show};
use crate::cli::{Failure, Global, budget, call as cli_call, exit, input};
use crate::code;

/// Explain the action for a call and what decides, or a code
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis explain profile.json 'socket(AF_VSOCK)'
  tamis explain profile.json '[pid 7] socket(AF_VSOCK, 1, 0) = -1 EPERM'
  tamis explain TM0201
  journalctl -k | tamis explain policy.tamis --audit -
A call may be written as in the tamis language, as in C (`SYS_read`, `__NR_read`), by number (`nr 59`), or as strace \
prints it.
Exit status: 0; 2 if an input can't be read, also if a log has no audit record of seccomp or none that was read.")]
pub(crate) struct Args {
    /// A policy or program, or a diagnostic code
    #[arg(value_name = "INPUT|CODE", required_unless_present = "audit", value_parser = input::PolicyParser, hide_possible_values = true)]
    input: Option<String>,
    /// The calls
    #[arg(value_name = "CALL", conflicts_with = "audit")]
    calls: Vec<String>,
    /// Explain the denied calls of audit records instead
    ///
    /// These are lines with type=1326 or type=SECCOMP, in any form: of auditd's log, ausearch, dmesg, the syslog or journalctl, also as JSON and within logs of containers. With a policy, also which rule denies them and what line would allow them
    #[arg(long, value_name = "FILE", value_parser = input::path_parser())]
    audit: Option<String>,
    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let input = args.input.as_deref().unwrap_or_default();
    if let Some(log) = &args.audit {
        return records::explain(args, log, global);
    }
    if args.calls.is_empty() {
        return explain_code(input, args.load.call_arch(), global);
    }
    cli_call::refuse_before_policy(input, &args.calls)?;
    let loaded = args.load.load(input, global)?;
    let policy = match &loaded {
        Loaded::Policy(policy) => Some(ByPolicy::new(Policy::clone(policy), &args.load)),
        Loaded::Program(_) => None,
    };
    let raw = match loaded.into_program(&budget::compile_options()) {
        Ok(raw) => Some(raw),
        Err(error) if policy.is_some() && is_too_long(&error) => None,
        Err(error) => return Err(error.into()),
    };
    let mut explanations = Vec::new();
    for text in &args.calls {
        let data = cli_call::parse(text, args.load.call_arch())?;
        if strace::resumed(text).is_some() {
            global.notice(&format!(
                "note: `{text}` is the end of a call: its arguments, which are in the line that began it, count as 0"
            ));
        }
        let of_program = raw
            .as_ref()
            .map(|raw| Explanation::of_program(&raw.program, raw.is_cacheable(&data), &data));
        let of_policy = policy.as_ref().map(|policy| policy.explanation(&data));
        explanations.extend(match (of_policy, of_program) {
            (Some(of_policy), Some(of_program)) => Some(Explanation {
                cost: of_program.cost,
                ..of_policy
            }),
            (of_policy, of_program) => of_policy.or(of_program),
        });
    }
    show(&ExplainReport { explanations }, global)?;
    Ok(exit::OK)
}

/// Explains calls by a policy, in the terms of systemd if it is a unit.
struct ByPolicy {
    policy: Policy,
    /// The allow list of a unit, if it has one; `None` for other policies.
    unit: Option<Option<AllowList>>,
}

impl ByPolicy {
    fn new(policy: Policy, load: &LoadArgs) -> ByPolicy {
        let root = policy.sources.with_ids().next();
        let root = root.filter(|_| policy.kind.name() == "systemd");
        let unit = root.map(|(root, _)| {
            let options = SystemdOptions {
                version: load.systemd().assumed().version,
                ..SystemdOptions::new(native_arch())
            };
            systemd::allow_list(&policy.sources, root, &options)
        });
        ByPolicy { policy, unit }
    }

    fn explanation(&self, data: &SeccompData) -> Explanation {
        let (ruleset, sources) = (&self.policy.ruleset, &self.policy.sources);
        let Some(list) = &self.unit else {
            return Explanation::of_policy(ruleset, sources, data);
        };
        let arch = Arch::of_call(data.arch, data.nr);
        let call = arch.and_then(|arch| syscall::name(arch, Nr(data.nr)));
        let listing = list.as_ref().and_then(|list| list.listing(call));
        Explanation::of_unit(ruleset, sources, data, listing)
    }
}

/// Whether the rules are valid, but the filter would be too long.
fn is_too_long(error: &Error) -> bool {
    match error {
        Error::Diagnostics(diagnostics, _) => diagnostics
            .iter()
            .any(|diagnostic| diagnostic.code == code::PROGRAM_TOO_LONG),
        Error::Message { .. } => false,
    }
}

/// The failure for a single argument that isn't a code: the calls or the policy are missing, or the code is misspelt.
fn no_code(argument: &str, call_arch: Arch) -> Failure {
    let is_input = argument == "-" || path_of(argument).exists();
    if is_input || Input::embedded(argument).is_some() {
        return Failure::usage(
            format!("`{argument}` is a policy or program, and no call to explain is named"),
            format!("name calls after it: `tamis explain {argument} 'socket(AF_VSOCK)'`"),
        );
    }
    if cli_call::parse(argument, call_arch).is_ok() {
        return Failure::usage(
            format!("`{argument}` is a call, and no policy is named"),
            format!("name a policy before it: `tamis explain container-default '{argument}'`"),
        );
    }
    Failure::usage(
        format!("`{argument}` is not a diagnostic code, a file or a call"),
        "`tamis explain POLICY 'socket(AF_VSOCK)'` explains a call, `tamis tables codes` lists the codes",
    )
}

fn explain_code(id: &str, call_arch: Arch, global: &Global) -> Result<u8, Failure> {
    let code = code::from_id(id).ok_or_else(|| no_code(id, call_arch))?;
    let report = ExplainCodeReport {
        code: code.id,
        title: code.title,
        explanation: code.explanation,
        width_chars: output::width_chars(),
    };
    show(&report, global)?;
    Ok(exit::OK)
}
