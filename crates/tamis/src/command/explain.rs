//! `tamis explain`: what happens to a call and why, or what a diagnostic code means.

use tamis_diag::Code;
use tamis_report::explain::{ExplainCodeReport, ExplainReport, Explanation};
use tamis_session::Loaded;

use crate::cli::load::LoadArgs;
use crate::cli::output::show;
use crate::cli::{Failure, Global, budget, call as cli_call, exit};

/// Explain the action for a call and the rule that decides, or a diagnostic code
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis explain profile.json 'socket(AF_VSOCK)'
  tamis explain TM0201")]
pub(crate) struct Args {
    /// A policy or program (a path, `-`, or an embedded policy's name); or a diagnostic code
    #[arg(value_name = "INPUT|CODE")]
    input: String,
    /// The calls
    #[arg(value_name = "CALL")]
    calls: Vec<String>,
    #[command(flatten)]
    load: LoadArgs,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if args.calls.is_empty() {
        return explain_code(&args.input, global);
    }
    let loaded = args.load.load(&args.input, global)?;
    let policy = match &loaded {
        Loaded::Policy(policy) => Some(policy.clone()),
        Loaded::Program(_) => None,
    };
    let raw = loaded.into_program(&budget::compile_options())?;
    let mut explanations = Vec::new();
    for text in &args.calls {
        let data = cli_call::parse(text, args.load.call_arch())?;
        let policy = policy.as_ref();
        explanations.push(Explanation::new(
            &raw.program,
            raw.is_cacheable(&data),
            policy.map(|policy| (&policy.ruleset, &policy.sources)),
            &data,
        ));
    }
    show(&ExplainReport { explanations }, global)?;
    Ok(exit::OK)
}

fn explain_code(id: &str, global: &Global) -> Result<u8, Failure> {
    let Some(code) = Code::from_id(id) else {
        return Err(Failure::usage(
            format!("`{id}` is not a diagnostic code"),
            "name the calls to explain: `tamis explain POLICY 'socket(AF_VSOCK)'`",
        ));
    };
    let report = ExplainCodeReport {
        code: code.id,
        title: code.title,
        explanation: code.explanation,
    };
    show(&report, global)?;
    Ok(exit::OK)
}
