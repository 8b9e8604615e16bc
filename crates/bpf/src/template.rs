//! Templates: programs with tests whose right-hand sides are set at installation.
//!
//! A policy with run-time variables is compiled once. In a comparison with a variable, the instruction's constant
//! is a *patch*: a position and the word of the variable. Binding copies the instructions and stores the words; it
//! is independent of policies and can't fail. The prover proves the result for all values.

use tamis_abi::{Endian, Word};

use crate::insn::{Op, Operand};
use crate::program::{Pc, Program};
use crate::validate::InvalidProgram;

/// The constant of a test that binding sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Patch {
    /// The instruction.
    pub pc: Pc,
    /// The word of the variable.
    pub word: Word,
}

/// A program with patches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template {
    program: Program,
    patches: Vec<Patch>,
}

impl Template {
    /// Creates a template from instructions, in which tests may have an [`Operand::Variable`], for machines of this
    /// byte order.
    ///
    /// # Errors
    /// The first reason for which the kernel would reject it for all values.
    pub fn new(ops: &[Op], endian: Endian) -> Result<Template, InvalidProgram> {
        let patches = ops.iter().enumerate().filter_map(|(pc, op)| match op {
            Op::Branch {
                operand: Operand::Variable(word),
                ..
            } => Some(Patch {
                pc: Pc(pc),
                word: *word,
            }),
            _ => None,
        });
        Ok(Template {
            patches: patches.collect(),
            program: Program::from_ops(ops, endian)?,
        })
    }

    /// The byte order of its machines.
    pub fn endian(&self) -> Endian {
        self.program.endian()
    }

    /// The program with 0 for all variables.
    pub fn unbound(&self) -> &Program {
        &self.program
    }

    /// The positions of variables, in the order of the program.
    pub fn patches(&self) -> &[Patch] {
        &self.patches
    }

    /// The decoded instruction at `pc`, with symbolic variables.
    ///
    /// # Panics
    /// If `pc` is outside the program.
    pub fn op(&self, pc: Pc) -> Op {
        let op = self.program.op(pc);
        let Ok(place) = self.patches.binary_search_by_key(&pc, |patch| patch.pc) else {
            return op;
        };
        match op {
            Op::Branch { test, jt, jf, .. } => Op::Branch {
                test,
                operand: Operand::Variable(self.patches[place].word),
                jt,
                jf,
            },
            other => other,
        }
    }

    /// The program for these values of the variables, by index; a variable without a value is 0. A copy and
    /// a store per patch.
    ///
    /// ```
    /// use tamis_abi::{Endian, SeccompData, VariableIndex, Word};
    /// use tamis_bpf::{Op, Operand, Template, Test, interp};
    /// let fd = Operand::Variable(Word::variable_low(VariableIndex::new(0).unwrap()));
    /// let branch = Op::Branch { test: Test::Eq, operand: fd, jt: 0, jf: 1 };
    /// let ops = [Op::LoadData(16), branch, Op::RetImm(1), Op::RetImm(2)];
    /// let program = Template::new(&ops, Endian::Little).unwrap().bind(&[7]);
    /// let call = |fd| SeccompData { args: [fd; 6], ..SeccompData::default() };
    /// assert_eq!(interp::run(&program, &call(7)).ret, 1);
    /// assert_eq!(interp::run(&program, &call(8)).ret, 2);
    /// ```
    pub fn bind(&self, values: &[u64]) -> Program {
        let word = |word: Word| {
            let half = word.index() - Word::COUNT;
            let value = values.get(half / 2).copied().unwrap_or(0);
            if half.is_multiple_of(2) {
                value as u32
            } else {
                (value >> 32) as u32
            }
        };
        let patches = self.patches.iter();
        self.program
            .with_tests_of(patches.map(|patch| (patch.pc, word(patch.word))))
    }
}
