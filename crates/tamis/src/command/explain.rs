//! `tamis explain`: what happens to a call and why, or what a diagnostic code means.

mod records;

use tamis_abi::call::strace;
use tamis_abi::{Arch, Nr, SeccompData, syscall};
use tamis_diag::{Code, code};
use tamis_policy::systemd::{self, SystemdOptions};
use tamis_report::explain::{ExplainCodeReport, ExplainReport, Explanation};
use tamis_session::{Error, Loaded, Policy};

use crate::cli::load::{LoadArgs, native_arch};
use crate::cli::output::{self, show};
use crate::cli::{Failure, Global, budget, call as cli_call, exit, input};

/// Explain the action for a call and what decides, or a code
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis explain profile.json 'socket(AF_VSOCK)'
  tamis explain profile.json '[pid 7] socket(AF_VSOCK, 1, 0) = -1 EPERM'
  tamis explain TM0201
  journalctl -k | tamis explain policy.tamis --audit -
A call may be written as in the tamis language, as in C (`SYS_read`, `__NR_read`), by number (`nr 59`), or as strace \
prints it.")]
pub(crate) struct Args {
    /// A policy or program, or a diagnostic code
    #[arg(value_name = "INPUT|CODE", required_unless_present = "audit", value_parser = input::PolicyParser, hide_possible_values = true)]
    input: Option<String>,
    /// The calls
    #[arg(value_name = "CALL", conflicts_with = "audit")]
    calls: Vec<String>,
    /// Explain the denied calls of audit records instead
    ///
    /// These are lines with type=1326 or type=SECCOMP, of dmesg, journalctl or auditd. With a policy, also which rule denies them and what line would allow them
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
        return explain_code(input, global);
    }
    cli_call::refuse_before_policy(input, &args.calls)?;
    let loaded = args.load.load(input, global)?;
    let policy = match &loaded {
        Loaded::Policy(policy) => Some(policy.clone()),
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
        let of_policy = policy.as_ref().map(|policy| of_policy(policy, &data));
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

/// The explanation of a call by a policy, in the terms of systemd if it is a unit.
fn of_policy(policy: &Policy, data: &SeccompData) -> Explanation {
    let (ruleset, sources) = (&policy.ruleset, &policy.sources);
    let root = sources.with_ids().next();
    let Some((root, _)) = root.filter(|_| policy.kind.name() == "systemd") else {
        return Explanation::of_policy(ruleset, sources, data);
    };
    let call = Arch::of_call(data.arch, data.nr).and_then(|arch| syscall::name(arch, Nr(data.nr)));
    let options = SystemdOptions::new(native_arch());
    let listing = systemd::listing(sources, root, &options, call);
    Explanation::of_unit(ruleset, sources, data, listing)
}

/// Whether the rules are fine, and there is no filter of them.
fn is_too_long(error: &Error) -> bool {
    match error {
        Error::Diagnostics(diagnostics, _) => diagnostics
            .iter()
            .any(|diagnostic| diagnostic.code == code::PROGRAM_TOO_LONG),
        Error::Message { .. } => false,
    }
}

fn explain_code(id: &str, global: &Global) -> Result<u8, Failure> {
    let Some(code) = Code::from_id(id) else {
        return Err(Failure::usage(
            format!("`{id}` is not a diagnostic code"),
            match id.starts_with("TM") {
                true => "`tamis tables codes` lists them",
                false => "name the calls to explain: `tamis explain POLICY 'socket(AF_VSOCK)'`",
            },
        ));
    };
    let report = ExplainCodeReport {
        code: code.id,
        title: code.title,
        explanation: code.explanation,
        width_chars: output::width_chars(),
    };
    show(&report, global)?;
    Ok(exit::OK)
}
