//! Who has judged that a result is what was given: the part of JSON documents about it.

use serde::Serialize;
use tamis_compiler::judge::Judged;
use tamis_prover::Method;

/// Who has judged, and by how much.
#[derive(Serialize)]
pub(crate) struct JudgedEntry {
    method: &'static str,
    calls: usize,
    edges: usize,
    infeasible_edges: usize,
    unsettled_edges: usize,
    gates_agree: bool,
}

impl JudgedEntry {
    /// The entry for a judgement.
    pub(crate) fn of(judged: &Judged) -> JudgedEntry {
        let agreement = judged.agreement;
        JudgedEntry {
            method: match judged.method {
                Method::Diagrams { .. } => "diagrams",
                Method::Gates => "gates",
            },
            calls: agreement.calls,
            edges: agreement.edges,
            infeasible_edges: agreement.infeasible_edges,
            unsettled_edges: agreement.unsettled_edges,
            gates_agree: judged.do_gates_agree,
        }
    }
}
