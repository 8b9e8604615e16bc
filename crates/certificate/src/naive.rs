//! A ruleset as a program, straight from its definition.
//!
//! `tamis-check` reads programs only, so the ruleset of a policy becomes one: for each architecture and each rule in
//! order, the comparisons as the rule states them, and its action. Nothing is shared, sorted or left out. The prover
//! doesn't see this program: the table is made from the ruleset, so `tamis-check` would find an error here.

use tamis_abi::{Endian, Word};
use tamis_bpf::{AluOp, Insn, InvalidProgram, Op, Operand, Program, Test};
use tamis_rules::{CmpOp, IntervalSet, Part, Predicate, Ruleset, Section, predicate};

/// A place in the program that jumps lead to.
#[derive(Clone, Copy)]
struct Label(usize);

/// One half of a 64-bit value.
#[derive(Clone, Copy)]
enum Half {
    Constant(u32),
    Word(Word),
}

/// A 64-bit value, the high half first.
type Wide = [Half; 2];

struct Builder {
    insns: Vec<Insn>,
    /// The places of labels, once known.
    places: Vec<Option<usize>>,
    /// The jumps and their labels.
    jumps: Vec<(usize, Label)>,
    endian: Endian,
}

/// The program of a ruleset without variables.
///
/// # Errors
/// If it is longer than a program can be.
pub(crate) fn program(ruleset: &Ruleset, endian: Endian) -> Result<Program, InvalidProgram> {
    let mut builder = Builder {
        insns: Vec::new(),
        places: Vec::new(),
        jumps: Vec::new(),
        endian,
    };
    for section in ruleset.sections() {
        let elsewhere = builder.label();
        builder.section(section, elsewhere);
        builder.place(elsewhere);
    }
    builder.add(Op::RetImm(ruleset.bad_arch.ret()));
    Program::new(builder.finished(), endian)
}

impl Builder {
    fn add(&mut self, op: Op) {
        self.insns.push(op.into());
    }

    fn load(&mut self, word: Word) {
        self.add(Op::LoadData(word.offset(self.endian)));
    }

    fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.insns.len());
    }

    fn jump(&mut self, label: Label) {
        self.jumps.push((self.insns.len(), label));
        self.add(Op::Jump(0));
    }

    /// Jumps if a test of A holds; else goes on.
    fn jump_if(&mut self, test: Test, operand: Operand, yes: Label) {
        self.add(Op::Branch {
            test,
            operand,
            jt: 0,
            jf: 1,
        });
        self.jump(yes);
    }

    /// Jumps if a test of A doesn't hold; else goes on.
    fn jump_unless(&mut self, test: Test, operand: Operand, no: Label) {
        self.add(Op::Branch {
            test,
            operand,
            jt: 1,
            jf: 0,
        });
        self.jump(no);
    }

    fn finished(mut self) -> Vec<Insn> {
        for (at, label) in self.jumps {
            // Every label is placed, after the jumps to it.
            let target = self.places[label.0].unwrap_or(at + 1);
            self.insns[at] = Op::Jump((target - at - 1) as u32).into();
        }
        self.insns
    }

    fn section(&mut self, section: &Section, elsewhere: Label) {
        self.load(Word::ARCH);
        self.jump_unless(Test::Eq, Operand::K(section.arch.audit()), elsewhere);
        let own = self.label();
        self.number_in(&Section::domain(section.arch), own, elsewhere);
        self.place(own);
        for rule in &section.rules {
            let [named, applies, next] = std::array::from_fn(|_| self.label());
            self.number_in(&rule.syscalls, named, next);
            self.place(named);
            self.predicate(&rule.when, applies, next);
            self.place(applies);
            self.add(Op::RetImm(rule.action.ret()));
            self.place(next);
        }
        self.add(Op::RetImm(section.default.ret()));
    }

    fn number_in(&mut self, set: &IntervalSet<u32>, yes: Label, no: Label) {
        self.load(Word::NR);
        for (first, last) in set.intervals() {
            if first == last {
                self.jump_if(Test::Eq, Operand::K(*first), yes);
                continue;
            }
            let outside = self.label();
            self.jump_unless(Test::Ge, Operand::K(*first), outside);
            self.jump_if(Test::Gt, Operand::K(*last), outside);
            self.jump(yes);
            self.place(outside);
        }
        self.jump(no);
    }

    /// Jumps to `yes` or `no`.
    fn predicate(&mut self, when: &Predicate, yes: Label, no: Label) {
        match when {
            Predicate::True => self.jump(yes),
            Predicate::False => self.jump(no),
            Predicate::Not(inner) => self.predicate(inner, no, yes),
            Predicate::All(parts) => {
                for part in parts {
                    let next = self.label();
                    self.predicate(part, next, no);
                    self.place(next);
                }
                self.jump(yes);
            }
            Predicate::Any(parts) => {
                for part in parts {
                    let next = self.label();
                    self.predicate(part, yes, next);
                    self.place(next);
                }
                self.jump(no);
            }
            Predicate::Test(test) => self.test(test, yes, no),
        }
    }

    fn test(&mut self, test: &predicate::Test, yes: Label, no: Label) {
        match test {
            predicate::Test::Compare { operand, op, value } => {
                self.compare(*op, halves(*operand), constant(*value), yes, no);
            }
            predicate::Test::Between { left, op, right } => {
                self.compare(*op, halves(*left), halves(*right), yes, no);
            }
            predicate::Test::In { operand, set } => {
                for (first, last) in set.intervals() {
                    let [from, outside] = std::array::from_fn(|_| self.label());
                    self.compare(CmpOp::Ge, halves(*operand), constant(*first), from, outside);
                    self.place(from);
                    self.compare(CmpOp::Le, halves(*operand), constant(*last), yes, outside);
                    self.place(outside);
                }
                self.jump(no);
            }
            predicate::Test::Masked {
                operand,
                mask,
                value,
            } => {
                let halves = halves(*operand).into_iter();
                for ((half, mask), value) in halves.zip(words(*mask)).zip(words(*value)) {
                    self.load_half(half);
                    self.add(Op::Alu(AluOp::And, Operand::K(mask)));
                    self.jump_unless(Test::Eq, Operand::K(value), no);
                }
                self.jump(yes);
            }
        }
    }

    fn compare(&mut self, op: CmpOp, a: Wide, b: Wide, yes: Label, no: Label) {
        let [high, low] = [0, 1].map(|half| (a[half], b[half]));
        match op {
            CmpOp::Ne => self.compare(CmpOp::Eq, a, b, no, yes),
            CmpOp::Lt => self.compare(CmpOp::Ge, a, b, no, yes),
            CmpOp::Le => self.compare(CmpOp::Gt, a, b, no, yes),
            CmpOp::Eq => {
                for half in [high, low] {
                    let operand = self.load_both(half);
                    self.jump_unless(Test::Eq, operand, no);
                }
                self.jump(yes);
            }
            CmpOp::Gt | CmpOp::Ge => {
                let operand = self.load_both(high);
                self.jump_if(Test::Gt, operand, yes);
                self.jump_unless(Test::Eq, operand, no);
                let operand = self.load_both(low);
                let last = if op == CmpOp::Gt { Test::Gt } else { Test::Ge };
                self.jump_if(last, operand, yes);
                self.jump(no);
            }
        }
    }

    fn load_half(&mut self, half: Half) {
        match half {
            Half::Constant(value) => self.add(Op::LoadImm(value)),
            Half::Word(word) => self.load(word),
        }
    }

    /// Loads the first half into A; returns the operand that is the second.
    fn load_both(&mut self, (a, b): (Half, Half)) -> Operand {
        if let Half::Word(word) = b {
            self.load(word);
            self.add(Op::Tax);
        }
        self.load_half(a);
        match b {
            Half::Constant(value) => Operand::K(value),
            Half::Word(_) => Operand::X,
        }
    }
}

fn words(value: u64) -> [u32; 2] {
    [(value >> 32) as u32, value as u32]
}

fn constant(value: u64) -> Wide {
    words(value).map(Half::Constant)
}

fn halves(operand: predicate::Operand) -> Wide {
    let (low, high) = operand.words();
    match operand.part {
        Part::Full => [Half::Word(high), Half::Word(low)],
        Part::Low => [Half::Constant(0), Half::Word(low)],
        Part::High => [Half::Constant(0), Half::Word(high)],
    }
}
