//! The meaning of a program, by symbolic execution.
//!
//! Jumps only go forward, so two sweeps suffice without recursion: the first goes down the program and finds its
//! symbolic states (see [`explore`](crate::explore)); the second goes up and composes the return value for each of
//! them. Consecutive comparisons of one word with constants stay a list of intervals (see
//! [`piecewise`](crate::piecewise)).

use tamis_abi::Word;
use tamis_bpf::{Program, Template, Test};

use crate::code::Code;
use crate::diagram::{Diagram, Limited, Node};
use crate::explore::{Exploration, Next, Step, explore};
use crate::piecewise::{Interval, Piecewise};
use crate::space::{Function, Space};
use crate::word_test::masked_test;

/// A list of this many intervals becomes a diagram even if more comparisons follow, because every change copies
/// part of the list.
const MAX_PIECES: usize = 1 << 10;

/// The return value of a program from some state on.
enum Meaning {
    Node(Node),
    Pieces(Piecewise),
}

/// A comparison of some bits of a word with a constant.
#[derive(Clone, Copy)]
struct Comparison {
    word: Word,
    mask: u32,
    test: Test,
    k: u32,
}

impl Space {
    /// The meaning of a program.
    ///
    /// # Errors
    /// If the diagrams exceed the space, or the symbolic states of the program their limit.
    pub fn program(&mut self, program: &Program) -> Limited<Function> {
        self.code(Code::Program(program))
    }

    /// The meaning of a template, as a function of its variables too.
    ///
    /// # Errors
    /// As [`program`](Self::program).
    pub fn template(&mut self, template: &Template) -> Limited<Function> {
        self.code(Code::Template(template))
    }

    fn code(&mut self, code: Code<'_>) -> Limited<Function> {
        let exploration = explore(self, code)?;
        compose(&mut self.diagram, &exploration).map(Function)
    }
}

/// The sweep up: the return value from the first state.
fn compose(diagram: &mut Diagram, exploration: &Exploration) -> Limited<Node> {
    let mut results = Results {
        uses: &exploration.uses,
        meanings: exploration.uses.iter().map(|_| None).collect(),
    };
    for visit in exploration.visits.iter().rev() {
        diagram.tick()?;
        let meaning = match visit.step {
            Step::Goto(next) => results.take(diagram, next)?,
            Step::Compare {
                word,
                mask,
                test,
                k,
                yes,
                no,
            } => {
                let (yes, no) = (results.take(diagram, yes)?, results.take(diagram, no)?);
                let comparison = Comparison {
                    word,
                    mask,
                    test,
                    k,
                };
                choose(diagram, comparison, yes, no)?
            }
            Step::Fork { condition, yes, no } => {
                let yes = results.take(diagram, yes)?.into_node(diagram)?;
                let no = results.take(diagram, no)?.into_node(diagram)?;
                Meaning::Node(diagram.ite(condition, yes, no)?)
            }
        };
        results.meanings[visit.state.0] = Some(meaning);
    }
    let first = exploration.visits.first();
    let first = first.expect("the first instruction is entered");
    results
        .take(diagram, Next::State(first.state))?
        .into_node(diagram)
}

/// `yes` if the comparison holds, else `no`.
fn choose(
    diagram: &mut Diagram,
    comparison: Comparison,
    yes: Meaning,
    no: Meaning,
) -> Limited<Meaning> {
    let Comparison {
        word,
        mask,
        test,
        k,
    } = comparison;
    let on = Interval::from_test(test, k).filter(|_| mask == u32::MAX);
    if let Some(on) = on {
        let (yes, no) = (yes.on_word(diagram, word)?, no.on_word(diagram, word)?);
        if yes.fits(&no) {
            let chosen = Piecewise::choose(on, &yes, no);
            if chosen.len() <= MAX_PIECES {
                return Ok(Meaning::Pieces(chosen));
            }
            return chosen.to_node(diagram).map(Meaning::Node);
        }
        let (yes, no) = (yes.to_node(diagram)?, no.to_node(diagram)?);
        let condition = masked_test(diagram, word, mask, test, k)?;
        return diagram.ite(condition, yes, no).map(Meaning::Node);
    }
    let (yes, no) = (yes.into_node(diagram)?, no.into_node(diagram)?);
    let condition = masked_test(diagram, word, mask, test, k)?;
    diagram.ite(condition, yes, no).map(Meaning::Node)
}

/// The meanings found so far.
struct Results<'a> {
    uses: &'a [u32],
    meanings: Vec<Option<Meaning>>,
}

impl Results<'_> {
    /// The meaning of a successor. One with several predecessors becomes a diagram, which they share.
    fn take(&mut self, diagram: &mut Diagram, next: Next) -> Limited<Meaning> {
        let id = match next {
            Next::End(node) => return Ok(Meaning::Node(node)),
            Next::State(id) => id,
        };
        let meaning = self.meanings[id.0].take();
        let meaning = meaning.expect("a step leads to later states only");
        if self.uses[id.0] == 1 {
            return Ok(meaning);
        }
        let node = meaning.into_node(diagram)?;
        self.meanings[id.0] = Some(Meaning::Node(node));
        Ok(Meaning::Node(node))
    }
}

impl Meaning {
    fn into_node(self, diagram: &mut Diagram) -> Limited<Node> {
        match self {
            Meaning::Node(node) => Ok(node),
            Meaning::Pieces(pieces) => pieces.to_node(diagram),
        }
    }

    /// As intervals of the word.
    fn on_word(self, diagram: &mut Diagram, word: Word) -> Limited<Piecewise> {
        match self {
            Meaning::Pieces(pieces) if pieces.word() == word => Ok(pieces),
            meaning => {
                let node = meaning.into_node(diagram)?;
                Ok(Piecewise::from_node(diagram, word, node))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Endian, SeccompData};
    use tamis_bpf::{AluOp, Insn, Op, Operand, interp};

    use super::*;
    use crate::{LimitReached, Limits};

    const SAMPLES: [u32; 8] = [0, 1, 2, 31, 32, 0x4000_0000, 0x8000_0001, u32::MAX];

    /// A word has too many values for a diagram of its value.
    const SOME_BITS: Op = Op::Alu(AluOp::And, Operand::K(0x8000_003f));

    /// Compares the function with the interpreter on all pairs of samples for nr and the lower half
    /// of the first argument.
    fn assert_meaning(ops: &[Op]) {
        for endian in [Endian::Little, Endian::Big] {
            let program = Program::from_ops(ops, endian).unwrap();
            let mut space = Space::new(Limits::default());
            let function = space.program(&program).unwrap();
            for nr in SAMPLES {
                for arg in SAMPLES {
                    let data = SeccompData {
                        nr,
                        args: [u64::from(arg) << 32 | u64::from(!arg); 6],
                        ..SeccompData::default()
                    };
                    let expected = interp::run(&program, &data).ret;
                    assert_eq!(
                        space.value(function, &data.into()),
                        expected,
                        "{ops:?} {data:x?}"
                    );
                }
            }
        }
    }

    #[test]
    fn chains_and_trees_of_tests() {
        let eq = |k, jt| Op::branch(Test::Eq, k, jt, 0);
        assert_meaning(&[
            Op::LoadData(0),
            Op::branch(Test::Ge, 32, 3, 0),
            eq(1, 3),
            eq(2, 4),
            Op::RetImm(10),
            Op::branch(Test::Set, 0xc000_0000, 2, 0),
            Op::RetImm(20),
            Op::RetImm(30),
            Op::branch(Test::Gt, 0x4000_0000, 0, 1),
            eq(u32::MAX, 0),
            SOME_BITS,
            Op::RetA,
        ]);
    }

    #[test]
    fn two_words_that_are_tested_in_turns() {
        let eq = |k, jt| Op::branch(Test::Eq, k, jt, 0);
        assert_meaning(&[
            Op::LoadData(16),
            eq(31, 3),
            Op::LoadData(0),
            eq(32, 1),
            eq(1, 2),
            Op::LoadData(20),
            Op::branch(Test::Set, 0x8000_0001, 1, 0),
            Op::RetImm(1),
            Op::Alu(AluOp::And, Operand::K(0xff)),
            Op::branch(Test::Gt, 5, 0, 1),
            Op::RetImm(2),
            Op::RetA,
        ]);
    }

    #[test]
    fn values_of_a_low_half_that_leave_different_questions_about_the_high_one() {
        for count in [1, 3, 8] {
            // Arguments have the complement of their high half as low half.
            let highs = &SAMPLES[..count];
            let mut ops = vec![Op::LoadData(16)];
            for (index, high) in highs.iter().enumerate() {
                // The rest of the list, the return after it, and the tests before this one's.
                let skipped = count - 1 - index + 1 + 4 * index;
                ops.push(Op::branch(Test::Eq, !high, skipped as u8, 0));
            }
            ops.push(Op::RetImm(0));
            for (ret, high) in (1..).zip(highs) {
                ops.push(Op::LoadData(20));
                ops.push(Op::branch(Test::Ge, *high, 0, 1));
                ops.extend([Op::RetImm(ret), Op::RetImm(100 + ret)]);
            }
            assert_meaning(&ops);
        }
    }

    #[test]
    fn arithmetic_scratch_memory_and_both_registers() {
        let shift_and_store = [
            Op::LoadData(0),
            Op::Alu(AluOp::Rsh, Operand::K(3)),
            Op::Store(4),
        ];
        let rest = [
            Op::Alu(AluOp::Add, Operand::K(9)),
            Op::Tax,
            Op::LoadLen,
            Op::Alu(AluOp::Lsh, Operand::X),
            Op::LoadXMem(4),
            Op::Alu(AluOp::Xor, Operand::X),
            SOME_BITS,
            Op::RetA,
        ];
        assert_meaning(&[&shift_and_store[..], &rest].concat());
    }

    #[test]
    fn a_division_by_zero_ends_the_program_with_zero() {
        let divide = Op::Alu(AluOp::Div, Operand::X);
        let load = [Op::LoadData(0), Op::Alu(AluOp::And, Operand::K(3)), Op::Tax];
        assert_meaning(&[&load[..], &[Op::LoadImm(100), divide, Op::RetA]].concat());
        assert_meaning(&[Op::LoadXImm(0), divide, Op::RetImm(5)]);
        assert_meaning(&[
            Op::LoadData(0),
            SOME_BITS,
            Op::LoadXImm(3),
            divide,
            Op::RetA,
        ]);
    }

    #[test]
    fn words_are_compared_with_each_other() {
        for test in [Test::Eq, Test::Gt, Test::Ge] {
            let compare = Op::Branch {
                test,
                operand: Operand::X,
                jt: 0,
                jf: 1,
            };
            let load = [Op::LoadData(0), Op::Tax, Op::LoadData(16), compare];
            assert_meaning(&[&load[..], &[Op::RetImm(1), Op::RetImm(2)]].concat());
        }
    }

    #[test]
    fn too_many_states_are_an_error() {
        let limits = Limits {
            max_states: 1,
            ..Limits::default()
        };
        let ops = [
            Op::LoadData(0),
            Op::branch(Test::Eq, 1, 0, 1),
            Op::RetImm(1),
            Op::RetImm(2),
        ];
        let program = Program::new(ops.map(Insn::from).to_vec(), Endian::Little).unwrap();
        let result = Space::new(limits).program(&program);
        assert_eq!(result, Err(LimitReached::States));
    }
}
