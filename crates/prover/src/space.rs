//! The space in which functions are created and compared.

use tamis_bpf::Program;
use tamis_rules::Input;

use crate::diagram::{Diagram, LimitReached, Node, View};
use crate::order;
use crate::relation::Relations;
use crate::stop::Stop;

/// The limits of the prover's work; beyond them the answer is *unknown*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most diagram nodes; about a second of work by default. Real filters need some thousands.
    ///
    /// A node takes 12 bytes, up to 24 while the list of nodes grows, and 8 to 16 bytes of the hash table; cached
    /// results add at most 4 MiB. With the default that is 45 MB. If a program returns a word that it computes bit
    /// by bit, each node of that word takes about 180 bytes more.
    pub max_nodes: usize,
    /// The most steps of composing diagrams, for all functions of the space together; a second of work by default.
    /// Real filters need some ten thousand.
    pub max_steps: u64,
    /// The most symbolic states of a program, all instructions together.
    pub max_states: usize,
    /// The most gates of a circuit, if diagrams are inconclusive; some 50 bytes each.
    pub max_gates: usize,
    /// The most conflicts of each search for an input in a circuit; a comparison needs at most four searches. 20
    /// 000 take one to two seconds. Ten times as many rarely solve harder cases.
    pub max_conflicts: u64,
    /// The most paths of a search for a witness on which comparisons of two words are solved.
    pub max_paths: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_nodes: 2_000_000,
            max_steps: 20_000_000,
            max_states: 200_000,
            max_gates: 4_000_000,
            max_conflicts: 20_000,
            max_paths: 10_000,
        }
    }
}

impl Limits {
    /// These limits, increased for programs that exceed the kernel's length: for each further instruction by the
    /// nodes of two words, and by the proportional number of steps.
    ///
    /// ```
    /// use tamis_prover::Limits;
    /// let limits = Limits::default();
    /// assert_eq!(limits.for_insns(4096), limits);
    /// assert_eq!(limits.for_insns(4097).max_nodes, limits.max_nodes + 64);
    /// ```
    #[must_use]
    pub fn for_insns(self, insns: usize) -> Limits {
        const NODES_PER_INSN: usize = 64;
        let more_nodes = NODES_PER_INSN * insns.saturating_sub(Program::MAX_INSNS);
        let steps_per_node = self.max_steps / self.max_nodes.max(1) as u64;
        Limits {
            max_nodes: self.max_nodes.saturating_add(more_nodes),
            max_steps: self
                .max_steps
                .saturating_add(more_nodes as u64 * steps_per_node),
            ..self
        }
    }
}

/// The meaning of a filter: a function of the input to a 32-bit return value. Functions of one [`Space`] are equal
/// exactly if they compare equal, except for [`Equality::Unknown`]. Their order has no meaning, but is the same on
/// every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(pub(crate) Node);

/// The result of comparing two functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Equality {
    /// Equal for every input.
    Equal,
    /// Different for this input.
    Different(Input),
    /// They may differ only for a comparison of two words for which no input was found within
    /// [`Limits::max_paths`].
    Unknown,
}

/// A space of comparable functions.
pub struct Space {
    pub(crate) diagram: Diagram,
    pub(crate) relations: Relations,
    pub(crate) limits: Limits,
}

impl Space {
    /// An empty space.
    pub fn new(limits: Limits) -> Space {
        Space::stoppable(limits, Stop::default())
    }

    /// An empty space that the caller can cancel.
    pub fn stoppable(limits: Limits, stop: Stop) -> Space {
        Space {
            diagram: Diagram::new(limits.max_nodes, limits.max_steps, stop),
            relations: Relations::default(),
            limits,
        }
    }

    /// For loops over functions that create none.
    ///
    /// # Errors
    /// If the caller has cancelled.
    pub fn check_stop(&self) -> Result<(), LimitReached> {
        self.diagram.check_stop()
    }

    /// Whether two functions of this space are equal, else an input for which they differ.
    pub fn compare(&self, left: Function, right: Function) -> Equality {
        if left == right {
            return Equality::Equal;
        }
        match self.witness(left, right) {
            Some(input) => Equality::Different(input),
            None => Equality::Unknown,
        }
    }

    /// The return value for one input.
    pub fn value(&self, function: Function, input: &Input) -> u32 {
        let mut node = function.0;
        loop {
            match self.diagram.view(node) {
                View::Leaf(value) => return value,
                View::Branch {
                    variable,
                    low,
                    high,
                } => {
                    let holds = match order::input_bit(variable) {
                        Some((word, bit)) => input.word(word) >> bit & 1 == 1,
                        None => self.relations.of_variable(variable).holds(input),
                    };
                    node = if holds { high } else { low };
                }
            }
        }
    }

    /// The function that always returns this value.
    ///
    /// # Errors
    /// If the space is full.
    pub fn constant(&mut self, ret: u32) -> Result<Function, LimitReached> {
        self.diagram.leaf(ret).map(Function)
    }

    /// The count of nodes in the space.
    pub fn len_nodes(&self) -> usize {
        self.diagram.len()
    }

    /// The memory of nodes, hash table and cached results, in bytes.
    pub fn len_bytes(&self) -> usize {
        self.diagram.len_bytes()
    }
}
