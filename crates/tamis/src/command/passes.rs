//! `tamis passes`: the catalogue of compiler passes.

use std::fmt::Write;

use serde::Serialize;
use tamis_compiler::Stage;
use tamis_compiler::passes::registry;

use crate::cli::output::{print, print_json};
use crate::cli::{Failure, Global, exit};

/// List the compiler's passes
#[derive(clap::Args)]
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
    } in &passes
    {
        let _ = writeln!(text, "{name:<24} {stage:<9} {summary}");
    }
    print(text.as_bytes())?;
    Ok(exit::OK)
}
