//! Emission: from decisions to blocks of instructions.
//!
//! A node becomes a block `load the word, prepare it, branch`. The contents of A are known along every edge: after a
//! question about the same word A holds the word, so the jump leads behind the load. A node whose parents differ gets
//! several entries - one before the load, one behind it - instead of a copy or a redundant load. A mask destroys the
//! word, but the remaining bits still suffice for a question about a subset of them.

use tamis_abi::{Endian, Word};
use tamis_bpf::cfg::{Block, BlockId, Cfg, End};
use tamis_bpf::{AluOp, Op, Operand, Test};

use crate::dag::{Dag, Node, NodeId, Question, Walk};
use crate::options::Instructions;

/// The contents of A and X on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    /// A is this word, except that bits outside of `mask` may be cleared.
    word: Word,
    /// The bits that are intact.
    mask: u32,
    /// Whether all other bits are cleared.
    is_exact: bool,
    /// X is this word.
    index: Option<Word>,
}

/// Blocks of decisions by code outside of the graph, with the numbers of these decisions.
pub type Continuations = Vec<(BlockId, u32)>;

/// The blocks of the decision below `root`, for machines of this byte order. Log-linear in the graph.
///
/// # Panics
/// If a `Continue` node is below `root`.
pub(crate) fn emit(dag: &Dag, root: NodeId, endian: Endian, instructions: Instructions) -> Cfg {
    let (graph, continuations) = emit_open(dag, root, endian, instructions);
    assert!(continuations.is_empty(), "all decisions are in the graph");
    graph
}

/// The blocks of the decision below `root`, and those whose end the caller must set.
pub(crate) fn emit_open(
    dag: &Dag,
    root: NodeId,
    endian: Endian,
    instructions: Instructions,
) -> (Cfg, Continuations) {
    let node_of = |id: NodeId| within(dag.node(id), instructions);
    let mut walk = Walk::default();
    walk.go_below(dag, [root]);
    let below = walk.ids();
    let place = |id: NodeId| walk.place(id);
    // By node: the instructions of its preparation that are entered from a parent, as a bit set, and the bits of the
    // word that are in A for every entry behind the load.
    let mut entered = vec![0_u8; below.len()];
    let mut intact = vec![u32::MAX; below.len()];
    entered[place(root)] |= 1;
    for (at, id) in below.iter().enumerate().rev() {
        if let Node::Ask {
            word,
            question,
            yes,
            no,
        } = node_of(*id)
        {
            let held = held_after(word, question, intact[at]);
            for child in [yes, no] {
                let skipped = entry(held, node_of(child));
                entered[place(child)] |= 1 << skipped;
                if skipped > 0 {
                    intact[place(child)] &= held.mask;
                }
            }
        }
    }
    let mut graph = Cfg::returning(0, endian);
    // The block that begins at each instruction of a node's preparation.
    let mut blocks: Vec<[BlockId; 4]> = Vec::with_capacity(below.len());
    let mut ops = Vec::new();
    let mut continuations = Continuations::new();
    for (at, id) in below.iter().enumerate() {
        let node = node_of(*id);
        let end = match node {
            Node::Ret(ret) => End::Ret(ret),
            // A placeholder; the caller sets the end.
            Node::Continue(_) => End::Ret(0),
            Node::Ask {
                word,
                question,
                yes,
                no,
            } => {
                let held = held_after(word, question, intact[at]);
                let block = |child: NodeId| blocks[place(child)][entry(held, node_of(child))];
                branch(question, block(yes), block(no))
            }
        };
        prepare(node, endian, &mut ops);
        blocks.push(split_at_entries(&mut graph, &ops, end, entered[at]));
        if let Node::Continue(number) = node {
            continuations.push((blocks[at][0], number));
        }
    }
    graph.set_entry(blocks[place(root)][0]);
    (graph, continuations)
}

/// The node with a question that these instructions can express.
fn within(node: Node, instructions: Instructions) -> Node {
    match (node, instructions) {
        (
            Node::Ask {
                word,
                question: Question::AnySet(mask),
                yes,
                no,
            },
            Instructions::Libseccomp,
        ) => Node::Ask {
            word,
            question: Question::Masked { mask, value: 0 },
            yes: no,
            no: yes,
        },
        (node, _) => node,
    }
}

/// Makes one block per entry; each falls into the next.
fn split_at_entries(graph: &mut Cfg, ops: &[Op], end: End, entered: u8) -> [BlockId; 4] {
    let mut blocks = [graph.entry(); 4];
    let mut end = end;
    let mut rest = ops.len();
    for at in (0..=ops.len()).rev().filter(|at| entered >> at & 1 == 1) {
        let id = graph.push(Block {
            ops: ops[at..rest].to_vec(),
            end,
        });
        blocks[at] = id;
        end = End::Goto(id);
        rest = at;
    }
    blocks
}

/// The contents of A and X after the question, if these bits were intact before it.
fn held_after(word: Word, question: Question, intact: u32) -> Held {
    let index = match question {
        Question::EqWord(other) | Question::GeWord(other) => Some(other),
        _ => None,
    };
    let (mask, is_exact) = match question {
        Question::Masked { mask, .. } => (mask, true),
        _ => (intact, false),
    };
    Held {
        word,
        mask,
        is_exact,
        index,
    }
}

/// Finds the instructions that prepare A and X for the node's branch; at most three.
fn prepare(node: Node, endian: Endian, ops: &mut Vec<Op>) {
    ops.clear();
    let Node::Ask { word, question, .. } = node else {
        return;
    };
    let load = |word: Word| Op::LoadData(word.offset(endian));
    match question {
        Question::Eq(_)
        | Question::Ge(_)
        | Question::AnySet(_)
        | Question::EqVariable(_)
        | Question::GeVariable(_)
        | Question::GtVariable(_) => ops.push(load(word)),
        Question::Masked { mask, .. } => {
            ops.extend([load(word), Op::Alu(AluOp::And, Operand::K(mask))]);
        }
        Question::EqWord(other) | Question::GeWord(other) => {
            ops.extend([load(other), Op::Tax, load(word)]);
        }
    }
}

/// The number of instructions of the node's preparation that can be skipped with these contents of A and X.
fn entry(held: Held, node: Node) -> usize {
    let Node::Ask { word, question, .. } = node else {
        return 0;
    };
    let has = |bits: u32| held.word == word && bits & !held.mask == 0;
    match question {
        Question::Eq(_)
        | Question::Ge(_)
        | Question::EqVariable(_)
        | Question::GeVariable(_)
        | Question::GtVariable(_) => usize::from(has(u32::MAX)),
        Question::AnySet(bits) => usize::from(has(bits)),
        Question::Masked { mask, .. } if has(mask) && held.is_exact && held.mask == mask => 2,
        Question::Masked { mask, .. } => usize::from(has(mask)),
        Question::EqWord(other) | Question::GeWord(other) => {
            if has(u32::MAX) && held.index == Some(other) {
                3
            } else {
                0
            }
        }
    }
}

fn branch(question: Question, yes: BlockId, no: BlockId) -> End {
    let (test, operand) = match question {
        Question::Eq(k) => (Test::Eq, Operand::K(k)),
        // The kernel needs an extra instruction for constants from 2^31.
        Question::Ge(0x8000_0000) => (Test::Gt, Operand::K(0x7fff_ffff)),
        Question::Ge(k) => (Test::Ge, Operand::K(k)),
        Question::AnySet(k) => (Test::Set, Operand::K(k)),
        Question::Masked { value, .. } => (Test::Eq, Operand::K(value)),
        Question::EqWord(_) => (Test::Eq, Operand::X),
        Question::GeWord(_) => (Test::Ge, Operand::X),
        Question::EqVariable(word) => (Test::Eq, Operand::Variable(word)),
        Question::GeVariable(word) => (Test::Ge, Operand::Variable(word)),
        Question::GtVariable(word) => (Test::Gt, Operand::Variable(word)),
    };
    End::Branch {
        test,
        operand,
        yes,
        no,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearise::linearise;
    use tamis_bpf::disasm::{Style, disassemble};

    const WORD: Word = Word::IP_LOW;

    fn listing(dag: &Dag, root: NodeId) -> String {
        let program = linearise(&emit(dag, root, Endian::Little, Instructions::All)).unwrap();
        disassemble(&program, Style::Plain)
    }

    fn loads(dag: &Dag, root: NodeId) -> usize {
        listing(dag, root).matches("ld [").count()
    }

    #[test]
    fn a_word_asked_about_twice_is_loaded_once() {
        let mut dag = Dag::new();
        let (a, b, c) = (dag.ret(0), dag.ret(1), dag.ret(2));
        let second = dag.ask(WORD, Question::Ge(9), a, b);
        let root = dag.ask(WORD, Question::Eq(5), c, second);
        assert_eq!(loads(&dag, root), 1);
    }

    #[test]
    fn a_bit_behind_a_mask_needs_no_load_but_the_question_behind_it_does() {
        let mut dag = Dag::new();
        let (a, b, c) = (dag.ret(0), dag.ret(1), dag.ret(2));
        let masked = |mask, value| Question::Masked { mask, value };
        let whole = dag.ask(WORD, Question::Eq(0x1001), a, b);
        let bit = dag.ask(WORD, Question::AnySet(1), whole, c);
        let root = dag.ask(WORD, masked(0x9, 0x9), c, bit);
        assert_eq!(loads(&dag, root), 2);
    }

    #[test]
    fn an_equal_mask_is_applied_once_and_a_smaller_one_to_what_is_left() {
        let mut dag = Dag::new();
        let (a, b, c) = (dag.ret(0), dag.ret(1), dag.ret(2));
        let masked = |mask, value| Question::Masked { mask, value };
        let smaller = dag.ask(WORD, masked(0x3, 0x3), a, b);
        let equal = dag.ask(WORD, masked(0x7, 0x5), c, smaller);
        let root = dag.ask(WORD, masked(0x7, 0x6), c, equal);
        assert_eq!(loads(&dag, root), 1);
        assert_eq!(listing(&dag, root).matches("and ").count(), 2);
    }

    #[test]
    fn equality_and_order_of_the_same_two_words_load_them_once() {
        let mut dag = Dag::new();
        let (a, b, c) = (dag.ret(0), dag.ret(1), dag.ret(2));
        let order = dag.ask(Word::IP_LOW, Question::GeWord(Word::IP_HIGH), a, b);
        let root = dag.ask(Word::IP_LOW, Question::EqWord(Word::IP_HIGH), c, order);
        assert_eq!(loads(&dag, root), 2);
    }
}
