//! The decision graph: a filter as yes/no questions about 32-bit words.
//!
//! Between a ruleset and its instructions a filter is a directed acyclic graph of [`Node`]s. Nodes are
//! hash-consed: two equal questions with equal continuations are one node, so a check that five system
//! calls share exists once, whichever rule it came from. The constructors bring questions into a
//! canonical form first, so that more of them turn out to be equal.
//!
//! The graph knows nothing of instructions: what a question costs, where its word is loaded and how far
//! a jump reaches is decided when blocks are made of it.

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
    /// The word has one of these bits.
    AnySet(u32),
    /// The bits of the word under the mask are exactly these.
    Masked {
        /// The bits looked at.
        mask: u32,
        /// What they must be; inside the mask.
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

/// A point of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The decision is made: the filter returns this.
    Ret(u32),
    /// The rest is decided by code that is not in the graph. The number tells one such place from others and
    /// belongs to whoever made the node.
    Continue(u32),
    /// It depends.
    Ask {
        /// The word asked about.
        word: Word,
        /// What is asked.
        question: Question,
        /// The decision if the answer is yes.
        yes: NodeId,
        /// The decision if it is no.
        no: NodeId,
    },
}

/// A graph of decisions without two equal nodes.
#[derive(Clone, Debug, Default)]
pub struct Dag {
    nodes: Vec<Node>,
    known: Places,
}

/// The nodes below others. The memory is kept from one walk to the next, so that a walk takes time for what it
/// meets and not for the whole graph.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    ids: Vec<NodeId>,
    /// By node, the last walk that met it, and its place among what that walk met.
    met: Vec<(u32, u32)>,
    walks: u32,
}

impl Walk {
    /// Looks for the nodes that can be reached from the roots, and forgets all others. Log-linear in how many
    /// those are; the first walk over a graph takes room for all of its nodes.
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
        // Parents were met before children, so the other way round they are nearly in order.
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

    /// The nodes that were met, children before parents.
    pub fn ids(&self) -> &[NodeId] {
        &self.ids
    }

    /// The place of a node among those that were met; it means nothing for others.
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

    /// The answer if words have these values.
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

    /// What kind of question it is and what it asks for, in two words.
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
    /// The same for equal nodes, and quickly found: most nodes that are asked for are known already.
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

    /// How many nodes were made so far, in use or not.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no node was made yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The decision to return this value.
    pub fn ret(&mut self, ret: u32) -> NodeId {
        self.intern(Node::Ret(ret))
    }

    /// The decision that code outside of the graph makes, at a place that the caller knows by this number.
    #[cfg(any(test, feature = "foreign"))]
    pub(crate) fn continue_at(&mut self, place: u32) -> NodeId {
        self.intern(Node::Continue(place))
    }

    /// The decision that depends on a question, in canonical form: a question with one possible answer
    /// or with equal continuations makes no node.
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

    /// What the decision is for a call.
    ///
    /// # Panics
    /// If it is not made in the graph.
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

/// Whether the set bits are a run that ends with the highest: then having one of them is a comparison.
fn is_high_run(bits: u32) -> bool {
    bits != 0 && bits.leading_ones() + bits.trailing_zeros() == u32::BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at which canonical forms could go wrong.
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
