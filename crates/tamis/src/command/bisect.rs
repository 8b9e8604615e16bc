//! `tamis bisect`: which change of which pass makes a program wrong.

use serde::Serialize;
use tamis_compiler::passes::registry::Selection;
use tamis_compiler::{Bisection, Culprit, bisect};
use tamis_session::Policy;

use crate::cli::compiler::selection;
use crate::cli::load::LoadArgs;
use crate::cli::output::{print, print_json};
use crate::cli::{Failure, Global, exit};

/// Find the change of a compiler pass that makes a program wrong
#[derive(clap::Args)]
#[command(after_help = "\
For authors of passes, and for bug reports: if the proof refutes a program, this finds the first change \
that makes it wrong, by bisecting over the fuel (the number of changes allowed).
Examples:
  tamis bisect policy.tamis
  tamis bisect policy.tamis --passes thread-jumps
Exit status: 1 if there is such a change.")]
pub(crate) struct Args {
    /// The policy: a path, `-`, or the name of an embedded policy
    policy: String,
    /// The passes to run, in order, separated by commas [default: all]
    #[arg(long, value_name = "NAMES")]
    passes: Option<String>,
    #[command(flatten)]
    load: LoadArgs,
}

/// The document for programs.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    policy: &'a str,
    /// `right`, `wrong_from_the_start` or `found`.
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fuel: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let passes = args
        .passes
        .as_deref()
        .map_or(Ok(Selection::default()), selection)?;
    let policy = args.load.load_policy(&args.policy, global)?;
    let found = bisect(&policy.ruleset, &passes).map_err(|error| policy.compile_error(&error))?;
    if global.json {
        print_json(&document(&policy, &found))?;
    } else {
        print(text(&policy, &found).as_bytes())?;
    }
    Ok(match found {
        Bisection::Right { .. } => exit::OK,
        Bisection::WrongFromTheStart(_) | Bisection::Found(_) => exit::NO,
    })
}

fn document<'a>(policy: &'a Policy, found: &'a Bisection) -> Document<'a> {
    let document = Document {
        schema: "tamis.bisect/1",
        policy: &policy.name,
        result: "right",
        changes: None,
        fuel: None,
        pass: None,
        what: None,
        error: None,
    };
    match found {
        Bisection::Right { changes } => Document {
            changes: Some(*changes),
            ..document
        },
        Bisection::WrongFromTheStart(error) => Document {
            result: "wrong_from_the_start",
            error: Some(error.to_string()),
            ..document
        },
        Bisection::Found(culprit) => Document {
            result: "found",
            changes: Some(culprit.changes),
            fuel: Some(culprit.fuel),
            pass: Some(culprit.remark.pass),
            what: Some(&culprit.remark.what),
            error: Some(culprit.error.to_string()),
            ..document
        },
    }
}

fn text(policy: &Policy, found: &Bisection) -> String {
    let name = &policy.name;
    match found {
        Bisection::Right { changes } => {
            format!("{name}: correct with all changes ({changes})\n")
        }
        Bisection::WrongFromTheStart(error) => {
            format!("{name}: the program is wrong before any pass changes it\n  {error}\n")
        }
        Bisection::Found(culprit) => {
            let Culprit {
                fuel,
                changes,
                remark,
                error,
            } = &**culprit;
            format!(
                "{name}: wrong from change {fuel} of {changes} on\n  {}: {}\n  {error}\n",
                remark.pass, remark.what
            )
        }
    }
}
