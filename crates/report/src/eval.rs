//! The return values of a filter for calls: `tamis bpf eval`.

use std::fmt;

use serde::Serialize;
use tamis_abi::{Action, SeccompData, call};
use tamis_bpf::interp;

use crate::entry::counted;

/// The return values of a filter for calls.
#[derive(Serialize)]
pub struct EvalReport {
    /// The engine, if it isn't only the reference interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    pub results: Vec<EvalEntry>,
    /// The instructions of the filter, each as text.
    #[serde(skip)]
    pub listing: Vec<String>,
}

/// The return value of a filter for one call.
#[derive(Serialize)]
pub struct EvalEntry {
    pub call: String,
    pub action: String,
    pub ret: u32,
    pub steps: u32,
    pub cacheable: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<usize>,
}

impl EvalEntry {
    /// The result of a filter for a call; the path is empty unless requested.
    pub fn new(
        data: &SeccompData,
        run: interp::Execution,
        cacheable: bool,
        path: Vec<usize>,
    ) -> EvalEntry {
        EvalEntry {
            call: call::describe(data),
            action: Action::from_ret(run.ret).to_string(),
            ret: run.ret,
            steps: run.steps,
            cacheable,
            path,
        }
    }
}

impl fmt::Display for EvalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for result in &self.results {
            write!(f, "{} -> {}", result.call, result.action)?;
            let cacheable = if result.cacheable { ", cacheable" } else { "" };
            writeln!(f, "  ({}{cacheable})", counted(result.steps, "step"))?;
            for pc in &result.path {
                writeln!(f, "  {pc:>4}  {}", self.listing[*pc].trim())?;
            }
        }
        if let Some(engine) = &self.engine {
            writeln!(f, "answered by {engine}; the reference interpreter agrees")?;
        }
        Ok(())
    }
}
