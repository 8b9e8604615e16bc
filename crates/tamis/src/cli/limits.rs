//! Limits of a command's work, shared by all that use the prover.

use std::time::{Duration, Instant};

use tamis_compiler::ProofEffort;
use tamis_prover::{LimitReached, Limits, Stop};

use super::Failure;

/// The memory of the prover's tables, unless the user says otherwise.
const MEMORY_LIMIT_MB: usize = 512;

/// How much the prover may do.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct LimitArgs {
    /// Give up beyond this many nodes of decision diagrams, 24 bytes each
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().max_nodes)]
    pub(crate) max_nodes: usize,
    /// Give up beyond this many megabytes of memory for diagrams, gates and the SAT solver
    #[arg(long, value_name = "MEGABYTES", default_value_t = MEMORY_LIMIT_MB)]
    pub(crate) memory_limit: usize,
    /// Give up after this many seconds, such as 0.5 [default: 10 to compare filters, else no limit]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) time_limit: Option<Duration>,
}

/// A number of seconds that is no longer than a day.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|seconds| *seconds <= 86400.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds up to 86400, such as 60".to_owned())
}

/// Cancellation after some time from now.
pub(crate) fn stop_after(time_limit: Duration) -> Stop {
    let deadline = Instant::now() + time_limit;
    Stop::when(move || Instant::now() >= deadline)
}

impl LimitArgs {
    /// The limits that count work.
    pub(crate) fn limits(self) -> Limits {
        Limits {
            max_nodes: self.max_nodes,
            ..Limits::default()
        }
    }

    /// What ends a search that begins now.
    pub(crate) fn stop(self) -> Stop {
        self.with_memory(self.time_limit.map(stop_after).unwrap_or_default())
    }

    /// The same with the limit of memory.
    pub(crate) fn with_memory(self, stop: Stop) -> Stop {
        stop.with_memory(self.memory_limit.saturating_mul(1_000_000))
    }

    /// Both, for the compiler.
    pub(crate) fn effort(self) -> ProofEffort {
        ProofEffort {
            limits: self.limits(),
            stop: self.stop(),
        }
    }

    /// What to type to get further than a limit, if anything helps.
    pub(crate) fn advice(self, limit: LimitReached) -> Option<String> {
        match (limit, self.time_limit) {
            (LimitReached::Stopped, Some(time_limit)) => {
                let seconds = (time_limit.as_secs_f64() * 10.0).max(0.1);
                Some(format!("--time-limit {seconds}"))
            }
            (LimitReached::Nodes, _) => {
                Some(format!("--max-nodes {}", self.max_nodes.saturating_mul(10)))
            }
            (LimitReached::Memory, _) => Some(format!(
                "--memory-limit {}",
                self.memory_limit.saturating_mul(4)
            )),
            _ => None,
        }
    }

    /// The failure to get an answer.
    pub(crate) fn gave_up(self, what: &str, limit: LimitReached) -> Failure {
        let advice = self.advice(limit);
        let help = advice.map(|options| format!("to raise the limits: {options}"));
        Failure::gave_up(format!("{what}: {}", text(limit)), help)
    }
}

/// A limit as the options name it.
pub(crate) fn text(limit: LimitReached) -> String {
    match limit {
        LimitReached::Stopped => "the time limit was reached".to_owned(),
        limit => limit.to_string(),
    }
}
