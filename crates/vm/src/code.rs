//! Decoded programs and their loop.
//!
//! A program becomes nodes, each the straight-line code before a branch together with the branch. Nearly all nodes
//! of real filters load a word or keep A, mask it, and test whether the result is in an interval: every comparison
//! with a constant is such a test, `jset` after a second mask. These nodes need no dispatch on instructions. The
//! others keep their instructions and are interpreted.

use tamis_bpf::insn::{Operand, Test};
use tamis_bpf::{Op, interp};

use crate::chain::Chain;

/// A program, decoded.
///
/// ```
/// use tamis_abi::{Endian, SeccompData};
/// use tamis_bpf::{Op, Program};
/// use tamis_vm::Code;
/// let program = Program::new(vec![Op::LoadData(4).into(), Op::RetA.into()], Endian::Little).unwrap();
/// let code = Code::of_program(&program);
/// let mut seen = code.nothing_seen();
/// let data = SeccompData { arch: 7, ..SeccompData::default() };
/// assert_eq!(code.run(&data.image(Endian::Little), &mut seen), 7);
/// ```
#[derive(Clone, Debug)]
pub struct Code {
    pub(crate) entry: Next,
    pub(crate) nodes: Vec<Node>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) slow: Vec<Slow>,
    /// The returns of the program, by the index in [`Next`].
    pub(crate) returns: Vec<Return>,
    /// The count of marks that a run can record.
    pub(crate) marks: u32,
}

/// The coverage of runs of one [`Code`].
#[derive(Clone, Debug)]
pub struct Seen {
    /// One per branch and outcome, or per comparison of a list; 1 if it was reached.
    marks: Vec<u8>,
    count: u32,
}

/// A successor: a node, or a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next(pub(crate) u32);

/// A return of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Return {
    Constant(u32),
    A,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// Tests whether `a & test_mask` is one of `span + 1` numbers from `low` on.
    Test,
    /// Looks A up in the list of [`Chain`]s.
    Chain,
    /// Runs the instructions of a [`Slow`].
    Slow,
}

/// The straight-line code before a branch, and the branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    /// The word that is loaded first, by its meaning; [`KEEP`] if A stays.
    pub(crate) source: u8,
    /// The mask of A after the load.
    pub(crate) mask: u32,
    pub(crate) test_mask: u32,
    pub(crate) low: u32,
    /// For other kinds than tests, the index in their list.
    pub(crate) span: u32,
    /// The successors for *no* and *yes*.
    pub(crate) next: [Next; 2],
    /// The mark of *no*; that of *yes* is the next one.
    pub(crate) mark: u32,
}

/// Instructions that are interpreted one by one, and the branch after them.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub(crate) ops: Vec<Op>,
    pub(crate) test: Option<(Test, Operand)>,
}

/// The source of a node that keeps A.
pub(crate) const KEEP: u8 = 16;

const IS_RETURN: u32 = 1 << 31;

impl Next {
    /// The return with this index.
    pub(crate) const fn returning(index: usize) -> Next {
        Next(index as u32 | IS_RETURN)
    }
}

/// The registers that most programs don't use.
struct Machine {
    a: u32,
    x: u32,
    memory: [u32; 16],
}

impl Seen {
    /// The count of covered outcomes of branches, and comparisons of lists.
    pub fn count(&self) -> u32 {
        self.count
    }

    fn note(&mut self, mark: u32) {
        let known = std::mem::replace(&mut self.marks[mark as usize], 1);
        self.count += u32::from(known ^ 1);
    }
}

impl Code {
    /// An empty coverage record for this code.
    pub fn nothing_seen(&self) -> Seen {
        Seen {
            marks: vec![0; self.marks as usize],
            count: 0,
        }
    }

    /// The return value for sixteen words in the order of [`Word`](tamis_abi::Word), which is that of a
    /// little-endian image, for programs of any byte order. Coverage is recorded in `seen`, whose count grows if
    /// some of it is new.
    ///
    /// # Panics
    /// If `seen` is from another code.
    pub fn run(&self, words: &[u32; 16], seen: &mut Seen) -> u32 {
        let mut a = 0;
        let mut rest = Machine {
            a: 0,
            x: 0,
            memory: [0; 16],
        };
        let mut at = self.entry;
        while at.0 < IS_RETURN {
            let node = &self.nodes[at.0 as usize];
            let loaded = words[usize::from(node.source & 15)];
            a = if node.source < KEEP { loaded } else { a } & node.mask;
            let answer = match node.kind {
                NodeKind::Test => (a & node.test_mask).wrapping_sub(node.low) <= node.span,
                NodeKind::Chain => {
                    let (mark, next) = self.chains[node.span as usize].find(a);
                    seen.note(mark);
                    at = next;
                    continue;
                }
                NodeKind::Slow => {
                    rest.a = a;
                    let Some(answer) = self.slow[node.span as usize].run(words, &mut rest) else {
                        return 0;
                    };
                    a = rest.a;
                    answer
                }
            };
            seen.note(node.mark + u32::from(answer));
            at = if answer { node.next[1] } else { node.next[0] };
        }
        match self.returns[(at.0 & !IS_RETURN) as usize] {
            Return::Constant(ret) => ret,
            Return::A => a,
        }
    }
}

impl Slow {
    /// Runs the instructions; `None` if a division by zero ends the program.
    fn run(&self, words: &[u32; 16], machine: &mut Machine) -> Option<bool> {
        for op in self.ops.iter().copied() {
            let Machine { a, x, memory } = machine;
            match op {
                // Decoding has converted the offset to the order of words.
                Op::LoadData(offset) => *a = words[offset as usize / 4],
                Op::LoadImm(k) => *a = k,
                Op::LoadMem(slot) => *a = memory[slot as usize],
                Op::LoadXImm(k) => *x = k,
                Op::LoadXMem(slot) => *x = memory[slot as usize],
                Op::Store(slot) => memory[slot as usize] = *a,
                Op::StoreX(slot) => memory[slot as usize] = *x,
                Op::Alu(alu, operand) => {
                    *a = interp::arithmetic(alu, *a, operand.value(*x))?;
                }
                Op::Neg => *a = a.wrapping_neg(),
                Op::Tax => *x = *a,
                Op::Txa => *a = *x,
                Op::LoadLen
                | Op::LoadXLen
                | Op::Jump(_)
                | Op::Branch { .. }
                | Op::RetImm(_)
                | Op::RetA => {}
            }
        }
        let holds =
            |(test, operand): (Test, Operand)| test.holds(machine.a, operand.value(machine.x));
        Some(self.test.is_some_and(holds))
    }
}
