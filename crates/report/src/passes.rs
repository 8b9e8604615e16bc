//! The catalogue of compiler passes: `tamis bpf passes`.

use std::fmt;

use serde::Serialize;
use tamis_compiler::Stage;
use tamis_compiler::passes::registry;

/// All passes, in the order in which they run.
#[derive(Serialize)]
pub struct PassesReport {
    pub passes: Vec<PassInfoEntry>,
}

/// The properties of one pass.
#[derive(Serialize)]
pub struct PassInfoEntry {
    pub name: &'static str,
    pub stage: &'static str,
    pub summary: &'static str,
    pub never_longer: bool,
    pub never_slower: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_again: Option<&'static str>,
}

impl PassesReport {
    /// The passes of the registry.
    pub fn of_registry() -> PassesReport {
        let entries = registry::all().map(|info| PassInfoEntry {
            name: info.name,
            stage: match info.stage {
                Stage::Rules => "rules",
                Stage::Bytecode => "bytecode",
            },
            summary: info.summary,
            never_longer: info.claim.never_longer,
            never_slower: info.claim.never_slower,
            why_again: registry::why_again(info.name),
        });
        PassesReport {
            passes: entries.collect(),
        }
    }
}

impl fmt::Display for PassesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pass in &self.passes {
            writeln!(f, "{:<24} {:<9} {}", pass.name, pass.stage, pass.summary)?;
            if let Some(why) = pass.why_again {
                writeln!(f, "{:<34} runs again: {why}", "")?;
            }
        }
        Ok(())
    }
}
