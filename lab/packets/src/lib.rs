//! Optimiser for socket filters, in length and in time.
//!
//! A program becomes blocks (`graph`); passes repeat until nothing changes:
//!
//! - `fold`: constant folding, redundant loads, branches with a certain outcome;
//! - `threading`: jump threading, past branches that an edge decides and along chains of jumps;
//! - `dead`: dead results;
//! - merging of equal blocks, returns among them.
//!
//! Loads are not moved, and a load that may end the program stays: outside of the packet it drops the packet. The
//! result is compared with the input on generated packets ([`compare`]), and gates prove that both return the same
//! value for every packet ([`agree_on_packets`]). The result is never longer than the input and takes no more steps on
//! these packets; otherwise, and without the proof, the input is returned ([`Outcome`]).

#![forbid(unsafe_code)]

mod dead;
mod fold;
mod graph;
mod judge;
#[cfg(test)]
mod tests;
mod threading;
mod values;

use std::fmt;

use tamis_bpf::packet::Program;
use tamis_compiler::ProofEffort;
use tamis_prover::{LimitReached, agree_on_packets};

use self::graph::Graph;
pub use self::judge::{Comparison, Difference, compare};

/// The most rounds of all passes; programs of tools need 3.
const MAX_ROUNDS: usize = 16;

/// The minimum of packets for the comparison of a result with its input.
pub const COMPARED_PACKETS: usize = 10_000;

/// The seed of the random packets.
const SEED: u64 = 0;

/// A better program, or the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Optimised {
    /// The program.
    pub program: Program,
    /// The result's relation to the input.
    pub outcome: Outcome,
}

/// The result's relation to the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The input: the passes found nothing better. Nothing was proved.
    Unchanged,
    /// A better program, proved to return the same value for every packet, and compared on some.
    Proved(Comparison),
    /// The input: the passes found a better program, but it is not proved equivalent.
    Unproved(Unproved),
}

/// The reason that two programs are not proved equivalent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproved {
    /// The gates did not prove the equivalence; the programs may differ.
    Open,
    /// The proof reached a limit.
    Limit(LimitReached),
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unproved::Open => f.write_str("gates don't tell that both return the same"),
            Unproved::Limit(limit) => limit.fmt(f),
        }
    }
}

/// Optimises a filter of a socket.
///
/// ```
/// use tamis_bpf::insn::Test;
/// use tamis_bpf::packet::{Load, Op, Program, Size};
/// use tamis_compiler::ProofEffort;
/// use tamis_packets::optimise;
/// let protocol = Op::LoadData(Load::Absolute(Size::Half, 12));
/// let is_ip = Op::branch(Test::Eq, 0x800, 0, 1);
/// let insns = [protocol, is_ip, protocol, Op::branch(Test::Eq, 0x86dd, 0, 1), Op::RetImm(0), Op::RetImm(1)];
/// let program = Program::new(insns.map(Into::into).to_vec()).unwrap();
/// let optimised = optimise(&program, &ProofEffort::default()).unwrap();
/// assert!(optimised.program.len() < program.len());
/// ```
///
/// # Errors
/// A packet with another return value of the result: a bug of tamis.
pub fn optimise(program: &Program, effort: &ProofEffort) -> Result<Optimised, Difference> {
    let better = passes(program);
    let comparison = compare([program, &better], COMPARED_PACKETS, SEED)?;
    let [before, after] = comparison.steps;
    let is_better = (better.len(), after) < (program.len(), before) && after <= before;
    let outcome = match is_better {
        false => Outcome::Unchanged,
        true => match unproved([program, &better], effort) {
            None => Outcome::Proved(comparison),
            Some(reason) => Outcome::Unproved(reason),
        },
    };
    let program = match outcome {
        Outcome::Proved(_) => better,
        Outcome::Unchanged | Outcome::Unproved(_) => program.clone(),
    };
    Ok(Optimised { program, outcome })
}

/// The reason that two programs are not proved equivalent; `None` if they are.
fn unproved([one, other]: [&Program; 2], effort: &ProofEffort) -> Option<Unproved> {
    match agree_on_packets(one, other, &effort.limits, &effort.stop) {
        Ok(true) => None,
        Ok(false) => Some(Unproved::Open),
        Err(limit) => Some(Unproved::Limit(limit)),
    }
}

/// The result of the passes, or the input if that is shorter.
fn passes(program: &Program) -> Program {
    let mut graph = Graph::from_program(program);
    for _ in 0..MAX_ROUNDS {
        let before = graph.clone();
        graph.tidy();
        fold::fold(&mut graph);
        threading::thread(&mut graph);
        dead::remove_dead(&mut graph);
        graph.tidy();
        if graph == before {
            break;
        }
    }
    // The checker rejects loads from slots that a path leaves unset.
    match Program::new(graph.insns()) {
        Ok(better) if better.len() <= program.len() => better,
        _ => program.clone(),
    }
}
