//! Rulesets translated to programs without optimisation, so that policies can be run as fast as filters, with the
//! same coverage.
//!
//! Every rule is translated for the numbers it covers, in order, without regard to length or speed. Runs of numbers
//! with the same rules share their code, and a binary search finds the run. No code of the compiler is used, because
//! the other side of the comparison was made by the compiler. All jumps are `ja`, which have no limit of distance, so
//! the program is much longer than a filter may be.

use std::collections::BTreeMap;

use tamis_abi::{Action, Arch, Endian, Word};
use tamis_bpf::insn::{AluOp, Insn, Operand as Right, Test as Compare};
use tamis_bpf::{InvalidProgram, Op, Program};
use tamis_rules::{CmpOp, IntervalSet, Operand, Part, Predicate, Ruleset, Section, Test};

/// A program equivalent to the ruleset, for little-endian machines whatever its architectures.
///
/// # Errors
/// If it would exceed [`Program::MAX_INPUT_INSNS`].
pub fn program(ruleset: &Ruleset) -> Result<Program, InvalidProgram> {
    let mut writer = Writer::default();
    let mut by_audit: BTreeMap<u32, Vec<&Section>> = BTreeMap::new();
    for section in ruleset.sections() {
        let audit = section.arch.audit();
        by_audit.entry(audit).or_default().push(section);
    }
    writer.load(Word::ARCH);
    let groups: Vec<(Label, Vec<&Section>)> = by_audit
        .into_iter()
        .map(|(audit, sections)| (writer.when(Compare::Eq, Right::K(audit)), sections))
        .collect();
    writer.op(Op::RetImm(ruleset.bad_arch.ret()));
    for (label, sections) in groups {
        writer.place(label);
        calls(&mut writer, &sections, ruleset.bad_arch);
    }
    writer.finish()
}

/// The target of a jump, before its place is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label(usize);

/// The rules that decide a run of numbers: those of a section up to the first unconditional one.
type Rules = Option<(Arch, Vec<usize>)>;

/// The code for the sections that share an audit value.
fn calls(writer: &mut Writer, sections: &[&Section], bad_arch: Action) {
    let mut starts = vec![0];
    for section in sections {
        let sets = section.rules.iter().map(|rule| &rule.syscalls);
        let domain = Section::domain(section.arch);
        for (first, last) in sets.chain([&domain]).flat_map(IntervalSet::intervals) {
            starts.push(*first);
            starts.extend(last.checked_add(1));
        }
    }
    starts.sort_unstable();
    starts.dedup();
    let mut leaves: Vec<(Rules, Label)> = Vec::new();
    let mut runs: Vec<(u32, Label)> = Vec::new();
    let mut known: BTreeMap<(usize, Vec<usize>), Label> = BTreeMap::new();
    for nr in starts {
        let rules = rules(sections, nr);
        let key = match &rules {
            None => (usize::MAX, Vec::new()),
            Some((arch, rules)) => (*arch as usize, rules.clone()),
        };
        let label = *known.entry(key).or_insert_with(|| {
            let label = writer.label();
            leaves.push((rules, label));
            label
        });
        if runs.last().is_none_or(|(_, last)| *last != label) {
            runs.push((nr, label));
        }
    }
    writer.load(Word::NR);
    search(writer, &runs);
    for (rules, label) in leaves {
        writer.place(label);
        decide(writer, sections, rules, bad_arch);
    }
}

/// The rules that decide a number.
fn rules(sections: &[&Section], nr: u32) -> Rules {
    let section = sections
        .iter()
        .find(|section| section.arch.owns_number(nr))?;
    let mut rules = Vec::new();
    for (index, rule) in section.rules.iter().enumerate() {
        if rule.syscalls.contains(nr) {
            rules.push(index);
            if rule.when == Predicate::True {
                break;
            }
        }
    }
    Some((section.arch, rules))
}

/// Jumps to the run that contains the number in A.
fn search(writer: &mut Writer, runs: &[(u32, Label)]) {
    if let [(_, label)] = runs {
        return writer.jump(*label);
    }
    let (left, right) = runs.split_at(runs.len() / 2);
    let upper = writer.when(Compare::Ge, Right::K(right[0].0));
    search(writer, left);
    writer.place(upper);
    search(writer, right);
}

/// The rules one after the other, then the default.
fn decide(writer: &mut Writer, sections: &[&Section], rules: Rules, bad_arch: Action) {
    let Some((arch, rules)) = rules else {
        return writer.op(Op::RetImm(bad_arch.ret()));
    };
    let Some(section) = sections.iter().find(|section| section.arch == arch) else {
        return;
    };
    for index in rules {
        let rule = &section.rules[index];
        let (matches, next) = (writer.label(), writer.label());
        predicate(writer, &rule.when, matches, next);
        writer.place(matches);
        writer.op(Op::RetImm(rule.action.ret()));
        writer.place(next);
    }
    writer.op(Op::RetImm(section.default.ret()));
}

/// Jumps to `yes` if the predicate holds, else to `no`.
fn predicate(writer: &mut Writer, condition: &Predicate, yes: Label, no: Label) {
    match condition {
        Predicate::True => writer.jump(yes),
        Predicate::False => writer.jump(no),
        Predicate::Not(inner) => predicate(writer, inner, no, yes),
        Predicate::All(parts) => {
            for part in parts {
                let next = writer.label();
                predicate(writer, part, next, no);
                writer.place(next);
            }
            writer.jump(yes);
        }
        Predicate::Any(parts) => {
            for part in parts {
                let next = writer.label();
                predicate(writer, part, yes, next);
                writer.place(next);
            }
            writer.jump(no);
        }
        Predicate::Test(test) => self::test(writer, test, yes, no),
    }
}

fn test(writer: &mut Writer, test: &Test, yes: Label, no: Label) {
    match test {
        Test::Compare { operand, op, value } => {
            let value = [(*value >> 32) as u32, *value as u32].map(Source::Constant);
            compare(writer, halves(*operand), *op, value, yes, no);
        }
        Test::Between { left, op, right } => {
            compare(writer, halves(*left), *op, halves(*right), yes, no);
        }
        Test::Masked {
            operand,
            mask,
            value,
        } => {
            for (half, shift) in halves(*operand).into_iter().zip([32, 0]) {
                writer.source(half);
                writer.op(Op::Alu(AluOp::And, Right::K((mask >> shift) as u32)));
                let equal = writer.when(Compare::Eq, Right::K((value >> shift) as u32));
                writer.jump(no);
                writer.place(equal);
            }
            writer.jump(yes);
        }
        Test::In { operand, set } => member(writer, halves(*operand), set, yes, no),
    }
}

/// A half of an operand or of a constant.
#[derive(Clone, Copy)]
enum Source {
    Word(Word),
    Constant(u32),
}

/// The upper and the lower half of an operand; for a half these are 0 and the half.
fn halves(operand: Operand) -> [Source; 2] {
    let (low, high) = operand.words();
    match operand.part {
        Part::Full => [Source::Word(high), Source::Word(low)],
        Part::Low => [Source::Constant(0), Source::Word(low)],
        Part::High => [Source::Constant(0), Source::Word(high)],
    }
}

/// Compares two values of 64 bits.
fn compare(
    writer: &mut Writer,
    left: [Source; 2],
    op: CmpOp,
    right: [Source; 2],
    yes: Label,
    no: Label,
) {
    let (last, yes, no) = match op {
        CmpOp::Eq => (Compare::Eq, yes, no),
        CmpOp::Ne => (Compare::Eq, no, yes),
        CmpOp::Gt => (Compare::Gt, yes, no),
        CmpOp::Le => (Compare::Gt, no, yes),
        CmpOp::Ge => (Compare::Ge, yes, no),
        CmpOp::Lt => (Compare::Ge, no, yes),
    };
    let high = writer.pair(left[0], right[0]);
    if last != Compare::Eq {
        writer.jump_when(Compare::Gt, high, yes);
    }
    let equal = writer.when(Compare::Eq, high);
    writer.jump(no);
    writer.place(equal);
    let low = writer.pair(left[1], right[1]);
    writer.jump_when(last, low, yes);
    writer.jump(no);
}

/// Tests whether a value is in a set: intervals within one upper half are tested below one test of that half.
fn member(
    writer: &mut Writer,
    [high, low]: [Source; 2],
    set: &IntervalSet<u64>,
    yes: Label,
    no: Label,
) {
    let upper = |value: u64| (value >> 32) as u32;
    let mut by_upper: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for (first, last) in set.intervals() {
        if upper(*first) == upper(*last) {
            let intervals = by_upper.entry(upper(*first)).or_default();
            intervals.push((*first as u32, *last as u32));
            continue;
        }
        let (from, next) = (writer.label(), writer.label());
        let constant = |value: u64| [upper(value), value as u32].map(Source::Constant);
        compare(writer, [high, low], CmpOp::Ge, constant(*first), from, next);
        writer.place(from);
        compare(writer, [high, low], CmpOp::Le, constant(*last), yes, next);
        writer.place(next);
    }
    for (upper, intervals) in by_upper {
        writer.source(high);
        let here = writer.when(Compare::Eq, Right::K(upper));
        let next = writer.label();
        writer.jump(next);
        writer.place(here);
        writer.source(low);
        for (first, last) in intervals {
            if first == last {
                writer.jump_when(Compare::Eq, Right::K(first), yes);
                continue;
            }
            let above = writer.when(Compare::Gt, Right::K(last));
            writer.jump_when(Compare::Ge, Right::K(first), yes);
            writer.place(above);
        }
        writer.jump(no);
        writer.place(next);
    }
    writer.jump(no);
}

/// Instructions with jumps to labels.
#[derive(Default)]
struct Writer {
    ops: Vec<Op>,
    /// The places of labels, once they are known.
    places: Vec<usize>,
    /// Jumps and their labels.
    jumps: Vec<(usize, Label)>,
}

impl Writer {
    fn op(&mut self, op: Op) {
        self.ops.push(op);
    }

    fn label(&mut self) -> Label {
        self.places.push(usize::MAX);
        Label(self.places.len() - 1)
    }

    fn place(&mut self, label: Label) {
        self.places[label.0] = self.ops.len();
    }

    fn jump(&mut self, to: Label) {
        self.jumps.push((self.ops.len(), to));
        self.op(Op::Jump(0));
    }

    /// Jumps to a label if the test of A holds.
    fn jump_when(&mut self, test: Compare, operand: Right, to: Label) {
        self.op(Op::Branch {
            test,
            operand,
            jt: 0,
            jf: 1,
        });
        self.jump(to);
    }

    /// The same with a new label.
    fn when(&mut self, test: Compare, operand: Right) -> Label {
        let label = self.label();
        self.jump_when(test, operand, label);
        label
    }

    fn load(&mut self, word: Word) {
        self.op(Op::LoadData(word.offset(Endian::Little)));
    }

    fn source(&mut self, source: Source) {
        match source {
            Source::Word(word) => self.load(word),
            Source::Constant(k) => self.op(Op::LoadImm(k)),
        }
    }

    /// Loads the left of two halves, and returns the right one as the operand of a test.
    fn pair(&mut self, left: Source, right: Source) -> Right {
        let operand = match right {
            Source::Constant(k) => Right::K(k),
            Source::Word(word) => {
                self.load(word);
                self.op(Op::Tax);
                Right::X
            }
        };
        self.source(left);
        operand
    }

    fn finish(mut self) -> Result<Program, InvalidProgram> {
        for (at, label) in self.jumps {
            self.ops[at] = Op::Jump((self.places[label.0] - at - 1) as u32);
        }
        Program::new(
            self.ops.into_iter().map(Insn::from).collect(),
            Endian::Little,
        )
    }
}
