//! From a program to [`Code`]: blocks become nodes, jumps disappear, lists of comparisons become tables.

use tamis_abi::{Endian, Word};
use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::insn::{AluOp, Operand, Test};
use tamis_bpf::validate::DATA_SIZE_BYTES;
use tamis_bpf::{Op, Program};

use crate::chain::Chain;
use crate::code::{Code, KEEP, Next, Node, NodeKind, Return, Slow};

/// The shortest list of comparisons that becomes a table.
const MIN_CHAIN: usize = 4;
/// The most comparisons in tables for each instruction of the program: a list with many entry points would need a
/// table for each.
const MAX_CHAINED_PER_INSN: usize = 8;

impl Code {
    /// Decodes a program. Linear time, up to a factor for lists that are entered in several places.
    pub fn of_program(program: &Program) -> Code {
        let mut decoder = Decoder {
            cfg: Cfg::from_program(program),
            known: Vec::new(),
            open: Vec::new(),
            room: program.len() * MAX_CHAINED_PER_INSN,
            code: Code {
                entry: Next(0),
                nodes: Vec::new(),
                chains: Vec::new(),
                slow: Vec::new(),
                returns: Vec::new(),
                marks: 0,
            },
        };
        decoder.known = vec![None; decoder.cfg.len()];
        decoder.code.entry = decoder.next(decoder.cfg.entry());
        while let Some((id, index)) = decoder.open.pop() {
            let node = decoder.node(id);
            decoder.code.nodes[index] = node;
        }
        decoder.code
    }
}

struct Decoder {
    cfg: Cfg,
    /// For each block its node or return, if known.
    known: Vec<Option<Next>>,
    /// Blocks whose nodes have an index but no content yet.
    open: Vec<(BlockId, usize)>,
    /// The remaining room for comparisons in tables.
    room: usize,
    code: Code,
}

/// A placeholder for a node.
const EMPTY: Node = Node {
    kind: NodeKind::Test,
    source: KEEP,
    mask: u32::MAX,
    test_mask: u32::MAX,
    low: 0,
    span: u32::MAX,
    next: [Next(0); 2],
    mark: 0,
};

impl Decoder {
    /// The target of a jump to this block: past jumps, a node or a return.
    fn next(&mut self, mut id: BlockId) -> Next {
        loop {
            let block = self.cfg.block(id);
            match block.end {
                End::Goto(target) if block.ops.is_empty() => id = target,
                End::Ret(ret) if !block.ops.iter().any(may_end) => {
                    return self.returning(Return::Constant(ret));
                }
                End::RetA if block.ops.is_empty() => return self.returning(Return::A),
                _ => break,
            }
        }
        if let Some(known) = self.known[id.0 as usize] {
            return known;
        }
        let index = self.code.nodes.len();
        self.code.nodes.push(EMPTY);
        self.open.push((id, index));
        let next = Next(index as u32);
        self.known[id.0 as usize] = Some(next);
        next
    }

    fn returning(&mut self, way: Return) -> Next {
        let returns = &mut self.code.returns;
        let known = returns.iter().position(|known| *known == way);
        Next::returning(known.unwrap_or_else(|| {
            returns.push(way);
            returns.len() - 1
        }))
    }

    /// The node of a block; allocates those of its successors.
    fn node(&mut self, id: BlockId) -> Node {
        let (ops, last) = self.straight(id);
        let end = self.cfg.block(last).end;
        let load = self.load(&ops);
        if let (Some((source, mask)), End::Branch { yes, no, .. }) = (load, end) {
            if let Some(chain) = self.chain(last) {
                return Node {
                    kind: NodeKind::Chain,
                    source,
                    mask,
                    span: chain,
                    ..EMPTY
                };
            }
            if let Some(question) = question(end) {
                let (yes, no) = (self.next(yes), self.next(no));
                return Node {
                    source,
                    mask,
                    test_mask: question.mask,
                    low: question.low,
                    span: question.span,
                    next: if question.is_negated {
                        [yes, no]
                    } else {
                        [no, yes]
                    },
                    mark: self.marks(2),
                    ..EMPTY
                };
            }
        }
        let (test, next) = match end {
            End::Branch {
                test,
                operand,
                yes,
                no,
            } => (Some((test, operand)), [self.next(no), self.next(yes)]),
            End::Goto(target) => (None, [self.next(target); 2]),
            End::RetA => (None, [self.returning(Return::A); 2]),
            End::Ret(ret) => (None, [self.returning(Return::Constant(ret)); 2]),
        };
        self.code.slow.push(Slow {
            ops: self.in_order_of_words(ops),
            test,
        });
        Node {
            kind: NodeKind::Slow,
            span: self.code.slow.len() as u32 - 1,
            next,
            mark: self.marks(2),
            ..EMPTY
        }
    }

    fn marks(&mut self, count: u32) -> u32 {
        self.code.marks += count;
        self.code.marks - count
    }

    /// The instructions of a block and of the blocks reached from it without a branch, and the last of these
    /// blocks.
    fn straight(&self, id: BlockId) -> (Vec<Op>, BlockId) {
        let ops = self.cfg.block(id).ops.clone();
        let mut last = id;
        while let End::Goto(next) = self.cfg.block(last).end
            && self.cfg.block(next).ops.is_empty()
        {
            last = next;
        }
        (ops, last)
    }

    /// The load and the mask of the instructions, if they consist of nothing else.
    fn load(&self, ops: &[Op]) -> Option<(u8, u32)> {
        let source = |offset| {
            let word = Word::from_offset(offset, self.cfg.endian());
            word.map(|word| word.index() as u8)
        };
        match *ops {
            [] => Some((KEEP, u32::MAX)),
            [Op::LoadData(offset)] => Some((source(offset)?, u32::MAX)),
            [Op::Alu(AluOp::And, Operand::K(mask))] => Some((KEEP, mask)),
            [Op::LoadData(offset), Op::Alu(AluOp::And, Operand::K(mask))] => {
                Some((source(offset)?, mask))
            }
            _ => None,
        }
    }

    /// A table for the list of comparisons that begins at this block's end, if it is long enough.
    fn chain(&mut self, first: BlockId) -> Option<u32> {
        let mut list = Vec::new();
        let mut at = first;
        let other = loop {
            let End::Branch {
                test: Test::Eq,
                operand: Operand::K(k),
                yes,
                no,
            } = self.cfg.block(at).end
            else {
                break at;
            };
            if at != first && !self.cfg.block(at).ops.is_empty() {
                break at;
            }
            list.push((k, yes));
            at = no;
            while let End::Goto(next) = self.cfg.block(at).end
                && self.cfg.block(at).ops.is_empty()
            {
                at = next;
            }
        };
        if list.len() < MIN_CHAIN || list.len() > self.room {
            return None;
        }
        self.room -= list.len();
        let list: Vec<(u32, Next)> = list
            .into_iter()
            .map(|(k, yes)| (k, self.next(yes)))
            .collect();
        let other = self.next(other);
        let mark = self.marks(list.len() as u32 + 1);
        self.code.chains.push(Chain::new(&list, other, mark));
        Some(self.code.chains.len() as u32 - 1)
    }

    /// The same instructions with words indexed by meaning, and with constant results folded.
    fn in_order_of_words(&self, mut ops: Vec<Op>) -> Vec<Op> {
        for op in &mut ops {
            *op = match *op {
                Op::LoadData(offset) => {
                    let word = Word::from_offset(offset, self.cfg.endian());
                    Op::LoadData(word.map_or(0, |word| word.offset(Endian::Little)))
                }
                Op::LoadLen => Op::LoadImm(DATA_SIZE_BYTES),
                Op::LoadXLen => Op::LoadXImm(DATA_SIZE_BYTES),
                other => other,
            };
        }
        ops
    }
}

/// Whether an instruction may end the program, as only a division by zero does.
fn may_end(op: &Op) -> bool {
    matches!(op, Op::Alu(AluOp::Div, Operand::X))
}

/// A test whether some bits of A are one of `span + 1` numbers from `low` on, or its negation.
struct Question {
    mask: u32,
    low: u32,
    span: u32,
    is_negated: bool,
}

/// The interval test of a comparison with a constant.
fn question(end: End) -> Option<Question> {
    let End::Branch {
        test,
        operand: Operand::K(k),
        ..
    } = end
    else {
        return None;
    };
    let from = |low: u32| Question {
        mask: u32::MAX,
        low,
        span: u32::MAX - low,
        is_negated: false,
    };
    Some(match test {
        Test::Eq => Question { span: 0, ..from(k) },
        Test::Ge => from(k),
        Test::Gt => match k.checked_add(1) {
            Some(low) => from(low),
            None => Question {
                is_negated: true,
                ..from(0)
            },
        },
        Test::Set => Question {
            mask: k,
            span: 0,
            is_negated: true,
            ..from(0)
        },
    })
}
