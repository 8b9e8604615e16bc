//! The decision graph: a filter as yes/no questions about 32-bit words.
//!
//! Between a ruleset and its instructions a filter is a directed acyclic graph of [`Node`]s. Nodes are hash-consed:
//! two equal questions with equal continuations are one node, so a check that five system calls share exists once,
//! whichever rule it came from. The constructors first bring questions into a canonical form, so that more of them
//! are equal.
//!
//! The graph does not contain instructions: emission decides the cost of a question, the place of each load and the
//! distance of each jump.

use tamis_abi::{SeccompData, Word};

use crate::hash::{Places, hash_of_words};

/// The index of a node in its [`Dag`]. Children have smaller ids than their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// A question about one word, or about two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// The word equals the constant.
    Eq(u32),
    /// The word is at least the constant, unsigned.
    Ge(u32),
    /// At least one of these bits of the word is set.
    AnySet(u32),
    /// The bits of the word under the mask have exactly this value.
    Masked {
        /// The tested bits.
        mask: u32,
        /// Their value, a subset of the mask.
        value: u32,
    },
    /// The word equals the other word.
    EqWord(Word),
    /// The word is at least the other word, unsigned.
    GeWord(Word),
    /// The word equals the word of a run-time variable.
    EqVariable(Word),
    /// The word is at least the word of a run-time variable, unsigned.
    GeVariable(Word),
    /// The word is greater than the word of a run-time variable, unsigned.
    GtVariable(Word),
}

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A final decision: the filter returns this value.
    Ret(u32),
    /// Code outside of the graph decides the rest. The number identifies the place; the caller that made the node
    /// assigns it.
    Continue(u32),
    /// A question with a decision for either answer.
    Ask {
        /// The tested word.
        word: Word,
        /// The question.
        question: Question,
        /// The decision for yes.
        yes: NodeId,
        /// The decision for no.
        no: NodeId,
    },
}

/// A graph of decisions without duplicate nodes.
#[derive(Clone, Debug, Default)]
pub struct Dag {
    nodes: Vec<Node>,
    known: Places,
}

/// A walk: the nodes below given nodes. Its memory is kept between walks, so that a walk takes time for the nodes it
/// reaches and not for the whole graph.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    ids: Vec<NodeId>,
    /// By node, the last walk that reached it, and its place among the nodes of that walk.
    met: Vec<(u32, u32)>,
    walks: u32,
}

impl Walk {
    /// Finds the nodes that are reachable from the roots, and drops the result of the walk before. Log-linear in the
    /// number of these nodes; the first walk over a graph allocates space for all of its nodes.
    pub fn go_below(&mut self, dag: &Dag, roots: impl IntoIterator<Item = NodeId>) {
        self.walks += 1;
        self.met.resize(dag.nodes.len().max(self.met.len()), (0, 0));
        self.ids.clear();
        for root in roots {
            self.meet(root);
        }
        let mut next = 0;
        while let Some(id) = self.ids.get(next) {
            next += 1;
            if let Node::Ask { yes, no, .. } = dag.node(*id) {
                self.meet(yes);
                self.meet(no);
            }
        }
        // Most parents were reached before their children, so the reverse order is nearly sorted.
        self.ids.reverse();
        self.ids.sort_unstable();
        for (place, id) in (0..).zip(&self.ids) {
            self.met[id.index()].1 = place;
        }
    }

    fn meet(&mut self, id: NodeId) {
        let walk = &mut self.met[id.index()].0;
        if *walk != self.walks {
            *walk = self.walks;
            self.ids.push(id);
        }
    }

    /// The reached nodes, children before parents.
    pub fn ids(&self) -> &[NodeId] {
        &self.ids
    }

    /// The place of a node among the reached ones; meaningless for other nodes.
    pub fn place(&self, id: NodeId) -> usize {
        self.met[id.index()].1 as usize
    }
}

impl NodeId {
    /// The id as an index; children come before parents.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Question {
    /// The answer for a call.
    pub fn holds(self, word: Word, data: &SeccompData) -> bool {
        self.answer(word, |word| data.word(word))
    }

    /// The answer for these values of words.
    #[inline]
    pub(crate) fn answer(self, word: Word, value_of: impl Fn(Word) -> u32) -> bool {
        let value = value_of(word);
        match self {
            Question::Eq(k) => value == k,
            Question::Ge(k) => value >= k,
            Question::AnySet(k) => value & k != 0,
            Question::Masked { mask, value: bits } => value & mask == bits,
            Question::EqWord(other) | Question::EqVariable(other) => value == value_of(other),
            Question::GeWord(other) | Question::GeVariable(other) => value >= value_of(other),
            Question::GtVariable(other) => value > value_of(other),
        }
    }

    /// The kind of the question and its constants, packed in two words.
    fn packed(self) -> (u64, u64) {
        match self {
            Question::Eq(k) => (0, u64::from(k)),
            Question::Ge(k) => (1, u64::from(k)),
            Question::AnySet(k) => (2, u64::from(k)),
            Question::Masked { mask, value } => (3, u64::from(mask) << 32 | u64::from(value)),
            Question::EqWord(other) => (4, other.index() as u64),
            Question::GeWord(other) => (5, other.index() as u64),
            Question::EqVariable(other) => (6, other.index() as u64),
            Question::GeVariable(other) => (7, other.index() as u64),
            Question::GtVariable(other) => (8, other.index() as u64),
        }
    }
}

impl Node {
    /// A hash, equal for equal nodes, and fast: most lookups find an existing node.
    fn hash(self) -> u64 {
        match self {
            Node::Ret(ret) => hash_of_words([u64::from(ret)]),
            Node::Continue(place) => hash_of_words([1 << 32 | u64::from(place)]),
            Node::Ask {
                word,
                question,
                yes,
                no,
            } => {
                let (kind, asked) = question.packed();
                let sides = u64::from(yes.0) << 32 | u64::from(no.0);
                hash_of_words([asked, (word.index() as u64) << 8 | kind, sides])
            }
        }
    }
}

impl Dag {
    /// A graph without nodes.
    pub fn new() -> Dag {
        Dag::default()
    }

    /// The node with this id.
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes[id.index()]
    }

    /// The number of nodes made so far, used or not.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the graph has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The decision to return this value.
    pub fn ret(&mut self, ret: u32) -> NodeId {
        self.intern(Node::Ret(ret))
    }

    /// The decision by code outside of the graph, at a place that the caller identifies by this number.
    pub fn continue_at(&mut self, place: u32) -> NodeId {
        self.intern(Node::Continue(place))
    }

    /// The decision by a question, in canonical form: a question with one possible answer or with equal continuations
    /// makes no node.
    pub fn ask(&mut self, word: Word, question: Question, yes: NodeId, no: NodeId) -> NodeId {
        if yes == no {
            return yes;
        }
        match question {
            Question::Ge(0) | Question::Masked { mask: 0, value: 0 } => yes,
            Question::AnySet(0) => no,
            Question::Ge(1) | Question::AnySet(u32::MAX) => {
                self.plain(word, Question::Eq(0), no, yes)
            }
            Question::Ge(u32::MAX) => self.plain(word, Question::Eq(u32::MAX), yes, no),
            Question::AnySet(bits) if is_high_run(bits) => {
                let first = 1 << bits.trailing_zeros();
                self.plain(word, Question::Ge(first), yes, no)
            }
            Question::Masked { mask, value } => self.ask_masked(word, mask, value, yes, no),
            Question::EqWord(other) if other == word => yes,
            Question::GeWord(other) if other == word => yes,
            Question::EqWord(other) if other < word => {
                self.plain(other, Question::EqWord(word), yes, no)
            }
            _ => self.plain(word, question, yes, no),
        }
    }

    fn ask_masked(&mut self, word: Word, mask: u32, value: u32, yes: NodeId, no: NodeId) -> NodeId {
        if value & !mask != 0 {
            no
        } else if mask == u32::MAX {
            self.plain(word, Question::Eq(value), yes, no)
        } else if value == 0 {
            self.ask(word, Question::AnySet(mask), no, yes)
        } else if mask.is_power_of_two() {
            self.ask(word, Question::AnySet(mask), yes, no)
        } else {
            self.plain(word, Question::Masked { mask, value }, yes, no)
        }
    }

    /// The decision for a call.
    ///
    /// # Panics
    /// If the call reaches a `Continue` node.
    pub fn evaluate(&self, root: NodeId, data: &SeccompData) -> u32 {
        let mut id = root;
        loop {
            match self.node(id) {
                Node::Ret(ret) => return ret,
                Node::Continue(place) => panic!("the graph doesn't say what happens at {place}"),
                Node::Ask {
                    word,
                    question,
                    yes,
                    no,
                } => id = if question.holds(word, data) { yes } else { no },
            }
        }
    }

    fn plain(&mut self, word: Word, question: Question, yes: NodeId, no: NodeId) -> NodeId {
        self.intern(Node::Ask {
            word,
            question,
            yes,
            no,
        })
    }

    fn intern(&mut self, node: Node) -> NodeId {
        let nodes = &mut self.nodes;
        let eq = |place: usize| nodes[place] == node;
        let known = self.known.find_or_insert(node.hash(), nodes.len(), eq);
        let place = known.unwrap_or_else(|| {
            nodes.push(node);
            nodes.len() - 1
        });
        NodeId(place as u32)
    }
}

/// Whether the set bits are a run that ends with the highest bit: then testing whether any is set is a comparison.
fn is_high_run(bits: u32) -> bool {
    bits != 0 && bits.leading_ones() + bits.trailing_zeros() == u32::BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at the borders of canonical forms.
    const PROBES: [u32; 12] = [
        0,
        1,
        2,
        3,
        6,
        7,
        8,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        u32::MAX - 1,
        u32::MAX,
    ];

    #[test]
    fn canonical_questions_have_the_answers_of_the_questions_asked() {
        let mut dag = Dag::new();
        let (yes, no) = (dag.ret(1), dag.ret(0));
        let word = Word::IP_LOW;
        let masked = PROBES
            .into_iter()
            .flat_map(|mask| PROBES.map(|value| Question::Masked { mask, value }));
        let simple = PROBES
            .into_iter()
            .flat_map(|k| [Question::Eq(k), Question::Ge(k), Question::AnySet(k)]);
        for question in masked.chain(simple) {
            let node = dag.ask(word, question, yes, no);
            for value in PROBES {
                let data = SeccompData::default().with_word(word, value);
                let expected = u32::from(question.holds(word, &data));
                assert_eq!(
                    dag.evaluate(node, &data),
                    expected,
                    "{question:?} {value:#x}"
                );
            }
        }
    }

    #[test]
    fn word_comparisons_agree_with_the_values() {
        let mut dag = Dag::new();
        let (yes, no) = (dag.ret(1), dag.ret(0));
        for (left, right) in [(Word::IP_LOW, Word::IP_HIGH), (Word::IP_HIGH, Word::IP_LOW)] {
            for question in [Question::EqWord(right), Question::GeWord(right)] {
                let node = dag.ask(left, question, yes, no);
                for (a, b) in PROBES.into_iter().flat_map(|a| PROBES.map(|b| (a, b))) {
                    let data = SeccompData::default()
                        .with_word(left, a)
                        .with_word(right, b);
                    let expected = u32::from(question.holds(left, &data));
                    assert_eq!(
                        dag.evaluate(node, &data),
                        expected,
                        "{question:?} {a:#x} {b:#x}"
                    );
                }
            }
        }
    }

    #[test]
    fn equal_questions_are_one_node() {
        let mut dag = Dag::new();
        let (yes, no) = (dag.ret(1), dag.ret(0));
        let word = Word::NR;
        let at_least_one = dag.ask(word, Question::Ge(1), yes, no);
        let any_bit = dag.ask(word, Question::AnySet(u32::MAX), yes, no);
        let not_zero = dag.ask(word, Question::Eq(0), no, yes);
        assert!(at_least_one == any_bit && any_bit == not_zero);
        let top = dag.ask(word, Question::AnySet(0xffff_0000), yes, no);
        assert_eq!(top, dag.ask(word, Question::Ge(0x1_0000), yes, no));
        assert_eq!(dag.ask(word, Question::Eq(5), yes, yes), yes);
    }
}
