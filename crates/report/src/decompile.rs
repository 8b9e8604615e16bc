//! A policy equivalent to programs: `tamis bpf decompile`.

use std::fmt;

use serde::Serialize;

use crate::entry::{InputEntry, JudgedEntry, counted};

/// A policy equivalent to programs.
#[derive(Serialize)]
pub struct DecompileReport {
    pub inputs: Vec<InputEntry>,
    pub arches: Vec<&'static str>,
    pub form: &'static str,
    pub judged: JudgedEntry,
    pub policy: String,
    /// The requested architectures; empty for all.
    #[serde(skip)]
    pub wanted_arches: Vec<&'static str>,
}

/// The policy, after a comment with its origin.
impl fmt::Display for DecompileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JudgedEntry(judged) = &self.judged;
        writeln!(f, "# Decompiled by tamis; proved equivalent ({judged}) to")?;
        for InputEntry { name, length_insns } in &self.inputs {
            // Escaping keeps a name from ending the comment.
            write!(f, "#   {}", name.escape_debug())?;
            match length_insns {
                Some(length) => writeln!(f, " ({})", counted(*length, "instruction"))?,
                None => writeln!(f)?,
            }
        }
        if self.inputs.len() > 1 {
            writeln!(f, "# as a stack, the oldest first")?;
        }
        if !self.wanted_arches.is_empty() {
            let arches = self.wanted_arches.join(", ");
            writeln!(f, "# for {arches}; other architectures are omitted")?;
        }
        write!(f, "\n{}", self.policy)
    }
}
