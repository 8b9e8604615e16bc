//! The cost model of layout: the cost of decisions before there is a program.
//!
//! A *step* is one executed classic BPF instruction; *length* counts all instructions, executed or not.
//! [`crate::meter`] measures the costs of programs.

use crate::meter::price::{MISPREDICTION_NS, STEP_NS, USER_MISPREDICTION_NS, USER_STEP_NS};

use crate::dag::{Dag, Node, NodeId, Question, Walk};
use crate::options::{Objective, Target};

/// The cost of questions, in units of a step. Secondary objectives break ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// An executed question.
    pub step: u32,
    /// A mispredicted branch.
    pub miss: u32,
    /// One question more in the program, relative to the steps of calls that weigh 2^20 together.
    pub insn: u32,
}

impl Prices {
    /// The prices under an objective in the kernel.
    pub const fn for_objective(objective: Objective) -> Prices {
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

    /// The prices under an objective on a target.
    pub const fn on(target: Target, objective: Objective) -> Prices {
        let mut prices = Prices::for_objective(objective);
        if matches!((target, objective), (Target::User, Objective::Ns)) {
            prices.miss = (USER_MISPREDICTION_NS / USER_STEP_NS) as u32;
        }
        prices
    }

    /// Whether steps are the objective, and neither mispredictions nor length.
    pub const fn are_steps(self) -> bool {
        self.miss == 0 && !self.is_about_length()
    }

    /// Whether length outweighs all steps.
    pub const fn is_about_length(self) -> bool {
        self.insn >= 1 << 20
    }
}

/// The cost of a decision from its first question on, with nothing loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Instructions, shared returns not counted.
    pub length_insns: u64,
    /// Steps of the longest path, with its return.
    pub worst_steps: u64,
}

/// The steps of a question without the load of its word: preparing A, and the conditional jump.
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

/// Whether the tested word is still in A afterwards.
pub const fn keeps_word(question: Question) -> bool {
    !matches!(question, Question::Masked { .. })
}

/// Measures a decision; the length counts only nodes that are new. Log-linear in its size.
pub fn measure(
    dag: &Dag,
    root: NodeId,
    walk: &mut Walk,
    is_new: impl Fn(NodeId) -> bool,
) -> Measure {
    walk.go_below(dag, [root]);
    let below = walk.ids();
    // By place: the steps from there on, and whether the node must load its word when reached from a parent.
    let mut found: Vec<(u64, bool)> = Vec::with_capacity(below.len());
    let mut length_insns = 0;
    for id in below {
        let Node::Ask {
            word,
            question,
            yes,
            no,
        } = dag.node(*id)
        else {
            found.push((1, false));
            continue;
        };
        let own = question_steps(question);
        if is_new(*id) {
            length_insns += own;
        }
        let mut side = |child: NodeId| {
            let load = match dag.node(child) {
                Node::Ret(_) | Node::Continue(_) => false,
                Node::Ask { word: next, .. } => next != word || !keeps_word(question),
            };
            let (steps, is_loaded) = &mut found[walk.place(child)];
            *is_loaded |= load;
            *steps + u64::from(load)
        };
        let steps = own + side(yes).max(side(no));
        found.push((steps, false));
    }
    let mut worst_steps = 1;
    if let Some((steps, is_loaded)) = found.last_mut() {
        *is_loaded = true;
        worst_steps += *steps;
    }
    let new_loads = below.iter().zip(found);
    let loads = new_loads.filter(|(id, (_, is_loaded))| *is_loaded && is_new(**id));
    Measure {
        length_insns: length_insns + loads.count() as u64,
        worst_steps,
    }
}
