//! What things cost: the prices that layout and statistics share.
//!
//! A *step* is one executed classic BPF instruction; *length* counts instructions whether executed or
//! not. What the kernel makes of each is [`tamis_bpf::convert`]'s business.

use crate::dag::{Dag, Node, NodeId, Question};
use crate::options::Objective;

/// A predicted instruction of the kernel: the middle of the measured 0.1 to 0.3 ns.
pub const STEP_NS: f64 = 0.2;

/// A mispredicted branch. A random branch, of which every other is mispredicted, took 3.2 ns.
pub const MISPREDICTION_NS: f64 = 6.4;

/// What running the smallest filter takes longer than an answer from the bitmap.
pub const UNCACHED_NS: f64 = 17.0;

/// What questions cost, in units of the price of a step. What an objective does not ask for still breaks
/// ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// An executed question.
    pub step: u32,
    /// A mispredicted branch.
    pub miss: u32,
    /// A question of length, against steps of calls that weigh 2^20 together.
    pub insn: u32,
}

impl Prices {
    /// The prices under an objective.
    pub const fn of(objective: Objective) -> Prices {
        match objective {
            Objective::Steps => Prices {
                step: 1,
                miss: 0,
                insn: 1 << 8,
            },
            Objective::Ns => Prices {
                step: 1,
                miss: (MISPREDICTION_NS / STEP_NS) as u32,
                insn: 1 << 8,
            },
            Objective::Length => Prices {
                step: 1,
                miss: 0,
                insn: 1 << 20,
            },
        }
    }
}

impl Prices {
    /// Whether it is steps that count, and neither mispredictions nor length.
    pub const fn are_steps(self) -> bool {
        self.miss == 0 && !self.is_about_length()
    }

    /// Whether length is worth more than all steps.
    pub const fn is_about_length(self) -> bool {
        self.insn >= 1 << 20
    }
}

/// What a decision costs once it is reached, with nothing loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Instructions, shared returns not counted.
    pub length_insns: u64,
    /// Steps of the longest path, with its return.
    pub worst_steps: u64,
}

/// The steps of asking, without loading the word: preparing A, and the conditional jump.
pub const fn question_steps(question: Question) -> u64 {
    match question {
        Question::Eq(_)
        | Question::Ge(_)
        | Question::AnySet(_)
        | Question::EqVariable(_)
        | Question::GeVariable(_)
        | Question::GtVariable(_) => 1,
        Question::Masked { .. } => 2,
        Question::EqWord(_) | Question::GeWord(_) => 3,
    }
}

/// Whether the word that was asked about is still in A afterwards.
pub const fn keeps_word(question: Question) -> bool {
    !matches!(question, Question::Masked { .. })
}

/// Measures a decision; the length is that of the nodes that are new. Linear in its size.
pub fn measure(dag: &Dag, root: NodeId, is_new: impl Fn(NodeId) -> bool) -> Measure {
    let below = dag.below([root]);
    let place = |id: NodeId| below.binary_search(&id).unwrap_or(0);
    let mut steps: Vec<u64> = Vec::with_capacity(below.len());
    let mut needs_load = vec![false; below.len()];
    let mut length_insns = 0;
    if let Some(load) = needs_load.last_mut() {
        *load = true;
    }
    for id in &below {
        let Node::Ask {
            word,
            question,
            yes,
            no,
        } = dag.node(*id)
        else {
            steps.push(1);
            continue;
        };
        let own = question_steps(question);
        if is_new(*id) {
            length_insns += own;
        }
        let mut side = |child: NodeId| {
            let load = match dag.node(child) {
                Node::Ret(_) => false,
                Node::Ask { word: next, .. } => next != word || !keeps_word(question),
            };
            needs_load[place(child)] |= load;
            steps[place(child)] + u64::from(load)
        };
        let (yes, no) = (side(yes), side(no));
        steps.push(own + yes.max(no));
    }
    let new_loads = below.iter().zip(needs_load);
    let loads = new_loads.filter(|(id, load)| *load && is_new(**id)).count() as u64;
    Measure {
        length_insns: length_insns + loads,
        worst_steps: steps.last().copied().unwrap_or_default() + 1,
    }
}
