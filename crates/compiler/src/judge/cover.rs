//! Calls that take the branches of a program each way, found quickly and without the prover.
//!
//! Every branch that a call reaches for the first time yields further calls: those on both sides of its constant, or
//! of the word that it compares with. Then, while a branch has an outcome without a call, values of its word are run:
//! the first 1024 of each range that earlier comparisons with constants allow on the paths to it, up to 4 million
//! instructions in total.
//!
//! The outcomes without a call are returned; `testkit` (`fuzz_corpus::`) bounds their number on the corpus. A
//! feasible outcome may be among them if a range has more values, or if the path to it depends on another word. For
//! programs that compute, `tamis-fuzz` has the agreement of two filters.

use std::collections::VecDeque;

use tamis_abi::{Endian, SeccompData, Word};
use tamis_bpf::insn::{AluOp, Operand};
use tamis_bpf::interp::Decoded;
use tamis_bpf::{Op, Pc, Program, Test};

/// The bits of a word of the input, as a register may hold them.
#[derive(Clone, Copy)]
struct Bits {
    word: Word,
    mask: u32,
}

/// The contents of a register, if known.
#[derive(Clone, Copy)]
enum Held {
    Bits(Bits),
    Constant(u32),
    Other,
}

/// The contents of A and X.
#[derive(Clone, Copy)]
struct Registers {
    a: Held,
    x: Held,
}

/// The most values of a range that are run.
const SWEPT_VALUES: u32 = 0x400;

/// The maximum number of instructions executed in a sweep over values; some 30 ms.
const SWEPT_STEPS: u64 = 1 << 22;

/// A program, and its coverage so far.
struct Coverage {
    program: Decoded,
    endian: Endian,
    /// Per instruction, whether no call so far has made its test fail, or hold.
    open: Vec<[bool; 2]>,
    /// The calls to be run.
    waiting: VecDeque<SeccompData>,
    /// The instructions of the last run.
    path: Vec<usize>,
    /// The visits of calls to branches with open outcomes.
    reached: Vec<Reached>,
    /// The executed instructions.
    steps: u64,
}

/// A branch that compares a word, a call that reached it, and the values of the word that earlier branches allow
/// there.
#[derive(Clone, Copy)]
struct Reached {
    pc: usize,
    call: SeccompData,
    word: Word,
    values: Range,
}

/// The values from the first to the last.
#[derive(Clone, Copy)]
struct Range {
    first: u32,
    last: u32,
}

/// Runs calls on a program that take its branches each way, and passes each with its return value, by the reference
/// interpreter, to `see`, until `see` returns false. Returns the outcomes of tests without a call: the branch, and
/// whether its test holds.
///
/// A branch with equal targets has no outcomes ([`Op::is_fork`]).
pub fn cover(
    program: &Program,
    see: &mut impl FnMut(&SeccompData, u32) -> bool,
) -> Vec<(Pc, bool)> {
    let mut coverage = Coverage::new(program);
    if coverage.run_waiting(see) && coverage.sweep(see) {
        coverage.run_waiting(see);
    }
    coverage.open()
}

impl Coverage {
    fn new(program: &Program) -> Coverage {
        let endian = program.endian();
        let program = Decoded::new(program);
        let ops = program.ops();
        // A typical number of calls.
        let mut waiting = VecDeque::with_capacity(4 * ops.len());
        waiting.push_back(SeccompData::default());
        Coverage {
            endian,
            open: ops.iter().map(|op| [op.is_fork(); 2]).collect(),
            waiting,
            path: Vec::with_capacity(ops.len()),
            reached: Vec::new(),
            steps: 0,
            program,
        }
    }

    /// The outcomes without a call.
    fn open(&self) -> Vec<(Pc, bool)> {
        let open = self.open.iter().enumerate();
        let open = open.flat_map(|(pc, open)| [(pc, false, open[0]), (pc, true, open[1])]);
        open.filter(|(_, _, is_open)| *is_open)
            .map(|(pc, outcome, _)| (Pc(pc), outcome))
            .collect()
    }

    /// Runs a call: its return value, and whether a test has an outcome for the first time.
    fn run(&mut self, call: &SeccompData) -> (u32, bool) {
        let (path, open) = (&mut self.path, &self.open);
        path.clear();
        let mut meets_open = false;
        let run = self.program.run_traced(call, &mut |Pc(pc)| {
            path.push(pc);
            meets_open |= open[pc] != [false; 2];
        });
        self.steps += path.len() as u64;
        let is_new = |at| {
            let open = open[path[at]];
            let taken = || outcome(self.program.ops(), path, at);
            open != [false; 2] && taken().is_some_and(|outcome| open[usize::from(outcome)])
        };
        (run.ret, meets_open && (0..path.len()).any(is_new))
    }

    /// Runs the waiting calls, and the calls that they add. Returns whether `see` continues.
    fn run_waiting(&mut self, see: &mut impl FnMut(&SeccompData, u32) -> bool) -> bool {
        while let Some(call) = self.waiting.pop_front() {
            let (ret, is_new) = self.run(&call);
            if !see(&call, ret) {
                return false;
            }
            if is_new {
                self.note(&call);
            }
        }
        true
    }

    /// Records the outcomes of the call just run, and queues calls near it for every branch that it is the first to
    /// reach.
    fn note(&mut self, call: &SeccompData) {
        let mut registers = Registers {
            a: Held::Constant(0),
            x: Held::Constant(0),
        };
        let all = Range {
            first: 0,
            last: u32::MAX,
        };
        let mut ranges = [all; Word::COUNT];
        for (at, pc) in self.path.iter().copied().enumerate() {
            let op = self.program.ops()[pc];
            if let Op::Branch { test, operand, .. } = op {
                if self.open[pc] == [true; 2] {
                    near(call, registers, test, operand, &mut self.waiting);
                }
                if let Held::Bits(Bits { word, mask }) = registers.a {
                    let values = &mut ranges[word.index()];
                    if self.open[pc] != [false; 2] {
                        self.reached.push(Reached {
                            pc,
                            call: *call,
                            word,
                            values: *values,
                        });
                    }
                    if let (u32::MAX, Operand::K(k)) = (mask, operand) {
                        values.meet(test, k, call.word(word));
                    }
                }
                if let Some(outcome) = outcome(self.program.ops(), &self.path, at) {
                    self.open[pc][usize::from(outcome)] = false;
                }
            }
            registers.step(op, self.endian);
        }
    }

    /// Runs values of the words of open branches, and passes the calls with new outcomes to `see`. Returns whether
    /// `see` continues.
    fn sweep(&mut self, see: &mut impl FnMut(&SeccompData, u32) -> bool) -> bool {
        for reached in std::mem::take(&mut self.reached) {
            let Range { first, last } = reached.values;
            for value in first..=last.min(first.saturating_add(SWEPT_VALUES - 1)) {
                if self.open[reached.pc] == [false; 2] || self.steps > SWEPT_STEPS {
                    break;
                }
                let call = reached.call.with_word(reached.word, value);
                let (ret, is_new) = self.run(&call);
                if !is_new {
                    continue;
                }
                if !see(&call, ret) {
                    return false;
                }
                self.note(&call);
            }
        }
        true
    }
}

impl Range {
    /// Restricts the range to values with the same outcome of a test as this one, and those between them.
    fn meet(&mut self, test: Test, k: u32, value: u32) {
        match (test, test.holds(value, k)) {
            (Test::Ge, true) => self.first = self.first.max(k),
            (Test::Ge, false) => self.last = self.last.min(k.saturating_sub(1)),
            (Test::Gt, true) => self.first = self.first.max(k.saturating_add(1)),
            (Test::Gt, false) => self.last = self.last.min(k),
            (Test::Eq, true) => (self.first, self.last) = (k, k),
            (Test::Eq, false) | (Test::Set, _) => {}
        }
    }
}

/// The outcome of the fork at a place in a path; `None` if it is no fork.
fn outcome(ops: &[Op], path: &[usize], at: usize) -> Option<bool> {
    match ops[path[at]] {
        Op::Branch { jt, jf, .. } if jt != jf => {
            Some(path.get(at + 1) == Some(&(path[at] + 1 + usize::from(jt))))
        }
        _ => None,
    }
}

impl Registers {
    fn step(&mut self, op: Op, endian: Endian) {
        match op {
            Op::LoadData(offset) => {
                let mask = u32::MAX;
                let word = Word::from_offset(offset, endian);
                self.a = word.map_or(Held::Other, |word| Held::Bits(Bits { word, mask }));
            }
            Op::Alu(AluOp::And, Operand::K(k)) => {
                self.a = match self.a {
                    Held::Bits(Bits { word, mask }) => Held::Bits(Bits {
                        word,
                        mask: mask & k,
                    }),
                    Held::Constant(value) => Held::Constant(value & k),
                    Held::Other => Held::Other,
                };
            }
            Op::Tax => self.x = self.a,
            Op::Txa => self.a = self.x,
            Op::LoadImm(k) => self.a = Held::Constant(k),
            Op::LoadXImm(k) => self.x = Held::Constant(k),
            Op::Alu(..) | Op::Neg | Op::LoadMem(_) | Op::LoadLen => self.a = Held::Other,
            Op::LoadXMem(_) | Op::LoadXLen => self.x = Held::Other,
            Op::Branch { .. } | Op::Jump(_) | Op::RetImm(_) | Op::RetA => {}
            Op::Store(_) | Op::StoreX(_) => {}
        }
    }
}

/// Adds calls on both sides of a branch that compares bits of a word.
fn near(
    call: &SeccompData,
    registers: Registers,
    test: Test,
    operand: Operand,
    calls: &mut VecDeque<SeccompData>,
) {
    let Held::Bits(Bits { word, mask }) = registers.a else {
        return;
    };
    let k = match (operand, registers.x) {
        (Operand::K(k), _) => k,
        (Operand::X, Held::Bits(right)) => call.word(right.word) & right.mask,
        (Operand::X, Held::Constant(k)) => k,
        (Operand::X, Held::Other) | (Operand::Variable(_), _) => return,
    };
    let held = call.word(word);
    let with = |value: u32| call.with_word(word, value & mask | held & !mask);
    let mut add = |value: u32| {
        // The call itself has already been run.
        if value & mask != held & mask {
            calls.push_back(with(value));
        }
    };
    match test {
        Test::Ge => [k, k.wrapping_sub(1)].into_iter().for_each(add),
        Test::Gt => [k, k.wrapping_add(1)].into_iter().for_each(add),
        // The next number may be outside the range of this path.
        Test::Eq if mask == u32::MAX && held == k => {
            [k.wrapping_add(1), k.wrapping_sub(1)]
                .into_iter()
                .for_each(add);
        }
        Test::Eq if mask == u32::MAX => [k, k.wrapping_add(1)].into_iter().for_each(add),
        Test::Eq => {
            add(k);
            add(!k);
            bits(mask).for_each(|bit| add(k ^ bit));
        }
        // The other bits may be needed to reach the branch.
        Test::Set => {
            add(held | k);
            add(held & !k);
            bits(k).for_each(|bit| add(held & !k | bit));
        }
    }
    // The filter may not test the other half of an argument: the same value with a change in that half.
    if word.index() > Word::ARCH.index() && test == Test::Eq {
        let near = with(k);
        if let Some(other) = Word::from_index(word.index() ^ 1) {
            calls.push_back(near.with_word(other, near.word(other) ^ 1));
        }
    }
}

/// The single bits of a mask.
fn bits(mask: u32) -> impl Iterator<Item = u32> {
    let bits = (0..u32::BITS).map(|bit| 1 << bit);
    bits.filter(move |bit| mask & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_taken_each_way() {
        let is_39 = Op::branch(Test::Eq, 39, 0, 1);
        let ops = [Op::LoadData(0), is_39, Op::RetImm(1), Op::RetImm(2)];
        let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
        let mut seen = Vec::new();
        let open = cover(&program, &mut |call, ret| {
            seen.push((call.nr, ret));
            true
        });
        assert_eq!(open, []);
        assert!(seen.contains(&(39, 1)) && seen.contains(&(40, 2)));
    }

    #[test]
    fn numbers_in_a_set_within_a_range_are_met() {
        // Numbers from 32 to 39 in a set of four; nothing is both below 40 and above 39.
        let ops = [
            Op::LoadData(4),
            Op::branch(Test::Eq, 0xc000_003e, 0, 7),
            Op::LoadData(0),
            Op::branch(Test::Ge, 32, 0, 5),
            Op::branch(Test::Ge, 40, 4, 0),
            Op::branch(Test::Gt, 39, 3, 0),
            Op::Alu(AluOp::And, Operand::K(7)),
            Op::branch(Test::Set, 3, 0, 1),
            Op::RetImm(1),
            Op::RetImm(2),
        ];
        let program = Program::new(ops.map(Into::into).to_vec(), Endian::Little).unwrap();
        assert_eq!(cover(&program, &mut |_, _| true), [(Pc(5), true)]);
    }

    #[test]
    fn the_values_that_are_run_are_limited_by_their_instructions() {
        // One bit is never above 1, so no value takes the jumps.
        let tests = (0..1000).flat_map(|at| {
            [
                Op::LoadData(16 + 8 * (at % 6)),
                Op::Alu(AluOp::And, Operand::K(1)),
                Op::branch(Test::Gt, 1, 1, 0),
                Op::LoadImm(at),
            ]
        });
        let ops: Vec<_> = tests.chain([Op::RetImm(1)]).map(Into::into).collect();
        let program = Program::new(ops, Endian::Little).unwrap();
        let mut coverage = Coverage::new(&program);
        let mut see = |_: &SeccompData, _| true;
        assert!(coverage.run_waiting(&mut see) && coverage.sweep(&mut see));
        let [least, most] = [0, program.len() as u64].map(|last| SWEPT_STEPS + last);
        assert!(
            (least..=most).contains(&coverage.steps),
            "{}",
            coverage.steps
        );
    }
}
