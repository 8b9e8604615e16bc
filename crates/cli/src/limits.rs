//! The limits of proofs.

use std::time::Duration;

use tamis_compiler::ProofEffort;
use tamis_prover::{LimitReached, Limits};

use super::{Failure, budget};

/// The limits of proofs.
#[derive(clap::Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Give up beyond this many nodes of decision diagrams, 24 bytes each
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().max_nodes)]
    pub max_nodes: usize,
}

/// Parses a number of seconds, at most a day.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| *seconds <= 86400.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds up to 86400, such as 60".to_owned())
}

impl LimitArgs {
    /// The limits by counts of work.
    pub fn limits(self) -> Limits {
        Limits {
            max_nodes: self.max_nodes,
            ..Limits::default()
        }
    }

    /// The limits within the command's budget.
    pub fn effort(self) -> ProofEffort {
        budget::effort(self.limits())
    }

    /// The options that raise a limit; `None` if no option does.
    pub fn advice(self, limit: LimitReached) -> Option<String> {
        match limit {
            LimitReached::Nodes => {
                Some(format!("--max-nodes {}", self.max_nodes.saturating_mul(10)))
            }
            limit => budget::advice(limit),
        }
    }

    /// The failure for a limit that was reached.
    pub fn gave_up(self, what: &str, limit: LimitReached) -> Failure {
        let help = self.advice(limit).map(|options| raise(&options));
        Failure::gave_up(format!("{what}: {}", text(limit)), help)
    }
}

/// The help that names options to raise.
pub fn raise(options: &str) -> String {
    format!("to raise the limits: {options}")
}

/// A limit by its option.
pub fn text(limit: LimitReached) -> String {
    match limit {
        LimitReached::Stopped => "the time limit was reached".to_owned(),
        limit => limit.to_string(),
    }
}
