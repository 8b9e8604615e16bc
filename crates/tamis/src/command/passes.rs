//! `tamis passes`: the catalogue of compiler passes.

use std::fmt::Write;

use serde::Serialize;
use tamis_compiler::Stage;
use tamis_compiler::passes::registry;

use crate::cli::output::{print, print_json};
use crate::cli::{Failure, Global, exit};

/// List the compiler's passes
///
/// Passes are listed in the order in which they run. A second run of a pass changes nothing, unless the list
/// gives a reason.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis passes
  tamis compile policy.tamis --passes merge-rules,drop-unreachable --remarks -o filter.bpf")]
pub(crate) struct Args {}

/// The document for programs.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    passes: Vec<Entry>,
}

/// One pass.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    stage: &'static str,
    summary: &'static str,
    never_longer: bool,
    never_slower: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_again: Option<&'static str>,
}

pub(crate) fn run(_: &Args, global: &Global) -> Result<u8, Failure> {
    let passes: Vec<Entry> = registry::all()
        .map(|info| Entry {
            name: info.name,
            stage: match info.stage {
                Stage::Rules => "rules",
                Stage::Bytecode => "bytecode",
            },
            summary: info.summary,
            never_longer: info.claim.never_longer,
            never_slower: info.claim.never_slower,
            why_again: registry::why_again(info.name),
        })
        .collect();
    if global.json {
        print_json(&Document {
            schema: "tamis.passes/1",
            passes,
        })?;
        return Ok(exit::OK);
    }
    let mut text = String::new();
    for Entry {
        name,
        stage,
        summary,
        why_again,
        ..
    } in &passes
    {
        let _ = writeln!(text, "{name:<24} {stage:<9} {summary}");
        if let Some(why) = why_again {
            let _ = writeln!(text, "{:<34} runs again: {why}", "");
        }
    }
    print(text.as_bytes())?;
    Ok(exit::OK)
}
