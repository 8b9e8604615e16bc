//! Filters as SMT-LIB text, for solvers independent of the prover.
//!
//! Every instruction becomes a few definitions of bit-vector terms: whether it is reached, and the state of the
//! machine there, by the edges into it. Programs are translated as the interpreter runs them, rules as their evaluator
//! does; the functions are those of the theory of fixed-size bit vectors (`QF_BV`). Nothing is shared with the prover's
//! translations.
//!
//! The form is one that solvers take least time for: places that no later instruction reads are left out, the claim is
//! about the condition of each return value instead of the value as a term, and equality with a constant is that of the
//! lower bits and that of the others, which tests of neighbouring numbers have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tamis_abi::{Action, Endian, Word};
use tamis_bpf::{AluOp, Op, Operand, Pc, Program, Test};
use tamis_prover::Subject;
use tamis_rules::{CmpOp, Part, Predicate, Ruleset, Section, predicate};

/// The registers and slots: A, X and the scratch memory.
pub const PLACES: usize = 18;
const A: usize = 0;
const X: usize = 1;
const FIRST_SLOT: usize = 2;

/// An edge into an instruction: the condition that it is taken, and the state of the machine, as terms.
struct Way {
    is_taken: String,
    places: Vec<String>,
}

/// A script that checks for each pair of programs whether an input distinguishes them: `sat` if so.
pub fn differences(pairs: &[(&Program, &Program)]) -> String {
    let mut script = head();
    for (left, right) in pairs {
        script.push_str("(push)\n");
        define(&mut script, "l", left).define_term(&mut script, "l");
        define(&mut script, "r", right).define_term(&mut script, "r");
        script.push_str("(assert (distinct l r))\n(check-sat)\n(pop)\n");
    }
    script
}

/// A script that checks whether an input distinguishes two subjects without variables: `unsat` if they are equal.
pub fn difference(left: &Subject<'_>, right: &Subject<'_>, endian: Endian) -> String {
    let mut script = head();
    let left = define_subject(&mut script, "l", left, endian);
    let right = define_subject(&mut script, "r", right, endian);
    if let (Returned::Cases(left), Returned::Cases(right)) = (&left, &right) {
        let values: BTreeSet<&u32> = left.keys().chain(right.keys()).collect();
        let of = |cases: &Cases, value| any(cases.get(value).into_iter().flatten().cloned());
        let differ = values
            .into_iter()
            .map(|value| format!("(distinct {} {})", of(left, value), of(right, value)));
        let _ = writeln!(script, "(assert {})", any(differ));
    } else {
        left.define_term(&mut script, "l");
        right.define_term(&mut script, "r");
        script.push_str("(assert (distinct l r))\n");
    }
    script.push_str("(check-sat)\n");
    script
}

/// The conditions under which a value is returned, one of which then holds; every return value has some.
type Cases = BTreeMap<u32, Vec<String>>;

/// The return value of a subject.
enum Returned {
    /// One of these.
    Cases(Cases),
    /// A term.
    Term(String),
}

impl Returned {
    /// The return value as a term.
    fn into_term(self) -> String {
        match self {
            Returned::Cases(cases) => {
                let mut cases = cases.into_iter();
                let first = cases.next().expect("a filter returns something");
                cases.fold(constant(first.0), |otherwise, (value, conditions)| {
                    let holds = any(conditions.into_iter());
                    format!("(ite {holds} {} {otherwise})", constant(value))
                })
            }
            Returned::Term(term) => term,
        }
    }

    fn define_term(self, script: &mut String, name: &str) {
        define_term(script, name, &self.into_term());
    }
}

/// The logic, and the words of a call by their places: `w1` is the one at byte 4.
fn head() -> String {
    let mut script = String::from("(set-logic QF_BV)\n");
    for place in 0..Word::COUNT {
        let _ = writeln!(script, "(declare-const w{place} (_ BitVec 32))");
    }
    script
}

/// The return value of a subject, with definitions whose names begin with this one.
fn define_subject(
    script: &mut String,
    name: &str,
    subject: &Subject<'_>,
    endian: Endian,
) -> Returned {
    match subject {
        Subject::Program(program) => define(script, name, program),
        Subject::Template(template) => define(script, name, template.unbound()),
        Subject::Ruleset(ruleset) => define_ruleset(script, name, ruleset, endian),
        Subject::Stack(filters) => {
            // From the newest to the oldest; the kernel keeps the first of the smallest actions.
            let mut kept = constant(0x7fff_0000);
            for (number, filter) in filters.iter().enumerate().rev() {
                let own = format!("{name}f{number}_");
                define_subject(script, &own, filter, endian).define_term(script, &own);
                let action = |value: &str| format!("(bvand {value} #xffff0000)");
                let replaces = format!("(bvslt {} {})", action(&own), action(&kept));
                let next = format!("{own}kept");
                define_term(script, &next, &format!("(ite {replaces} {own} {kept})"));
                kept = next;
            }
            Returned::Term(kept)
        }
    }
}

/// Defines a 32-bit term under a name.
fn define_term(script: &mut String, name: &str, term: &str) {
    let _ = writeln!(script, "(define-fun {name} () (_ BitVec 32) {term})");
}

/// The action of a ruleset, with its definition under a name: from the last section and rule to the first.
fn define_ruleset(script: &mut String, name: &str, ruleset: &Ruleset, endian: Endian) -> Returned {
    let word = |word: Word| format!("w{}", word.offset(endian) / 4);
    let (nr, arch) = (word(Word::NR), word(Word::ARCH));
    let number_in = |set: &tamis_rules::IntervalSet<u32>| {
        any(set
            .intervals()
            .iter()
            .map(|(first, last)| match first == last {
                true => format!("(= {nr} {})", constant(*first)),
                false => format!(
                    "(and (bvuge {nr} {}) (bvule {nr} {}))",
                    constant(*first),
                    constant(*last)
                ),
            }))
    };
    let mut result = constant(ruleset.bad_arch.ret());
    for (section_number, section) in ruleset.sections().iter().enumerate().rev() {
        let mut own = constant(section.default.ret());
        for (rule_number, rule) in section.rules.iter().enumerate().rev() {
            let when = predicate_term(&rule.when, &word);
            let matches = format!("(and {} {when})", number_in(&rule.syscalls));
            let next = format!("{name}s{section_number}r{rule_number}");
            let action = constant(rule.action.ret());
            define_term(script, &next, &format!("(ite {matches} {action} {own})"));
            own = next;
        }
        let is_audit = format!("(= {arch} {})", constant(section.arch.audit()));
        let applies = format!(
            "(and {is_audit} {})",
            number_in(&Section::domain(section.arch))
        );
        let next = format!("{name}s{section_number}");
        define_term(script, &next, &format!("(ite {applies} {own} {result})"));
        result = next;
    }
    define_term(script, name, &result);
    let actions = ruleset.sections().iter().flat_map(|section| {
        let rules = section.rules.iter().map(|rule| rule.action);
        rules.chain([section.default])
    });
    let values = actions.chain([ruleset.bad_arch]).map(Action::ret);
    let case = |value| (value, vec![format!("(= {name} {})", constant(value))]);
    Returned::Cases(values.map(case).collect())
}

fn any(terms: impl Iterator<Item = String>) -> String {
    let terms: Vec<String> = terms.collect();
    format!("(or false {})", terms.join(" "))
}

/// Whether a predicate holds, as a term, given the terms of words.
fn predicate_term(when: &Predicate, word: &dyn Fn(Word) -> String) -> String {
    match when {
        Predicate::True => "true".to_owned(),
        Predicate::False => "false".to_owned(),
        Predicate::Not(inner) => format!("(not {})", predicate_term(inner, word)),
        Predicate::All(parts) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| predicate_term(part, word))
                .collect();
            format!("(and true {})", parts.join(" "))
        }
        Predicate::Any(parts) => any(parts.iter().map(|part| predicate_term(part, word))),
        Predicate::Test(test) => rule_test_term(test, word),
    }
}

/// Whether a test of 64-bit values holds, as a term.
fn rule_test_term(test: &predicate::Test, word: &dyn Fn(Word) -> String) -> String {
    let value = |operand: predicate::Operand| {
        let (low, high) = operand.words();
        match operand.part {
            Part::Full => format!("(concat {} {})", word(high), word(low)),
            Part::Low => format!("(concat #x00000000 {})", word(low)),
            Part::High => format!("(concat #x00000000 {})", word(high)),
        }
    };
    let wide = |value: u64| format!("#x{value:016x}");
    match test {
        predicate::Test::Compare {
            operand,
            op,
            value: right,
        } => comparison(*op, &value(*operand), &wide(*right)),
        predicate::Test::Between { left, op, right } => {
            comparison(*op, &value(*left), &value(*right))
        }
        predicate::Test::Masked {
            operand,
            mask,
            value: right,
        } => {
            format!(
                "(= (bvand {} {}) {})",
                value(*operand),
                wide(*mask),
                wide(*right)
            )
        }
        predicate::Test::In { operand, set } => any(set.intervals().iter().map(|(first, last)| {
            let from = comparison(CmpOp::Ge, &value(*operand), &wide(*first));
            let until = comparison(CmpOp::Le, &value(*operand), &wide(*last));
            format!("(and {from} {until})")
        })),
    }
}

fn comparison(op: CmpOp, a: &str, b: &str) -> String {
    let function = match op {
        CmpOp::Eq => "=",
        CmpOp::Ne => "distinct",
        CmpOp::Lt => "bvult",
        CmpOp::Le => "bvule",
        CmpOp::Gt => "bvugt",
        CmpOp::Ge => "bvuge",
    };
    format!("({function} {a} {b})")
}

/// The return value of a program, with definitions whose names begin with this one.
fn define(script: &mut String, name: &str, program: &Program) -> Returned {
    let start = Way {
        is_taken: "true".to_owned(),
        places: vec![constant(0); PLACES],
    };
    let mut ways: Vec<Vec<Way>> = (0..program.len()).map(|_| Vec::new()).collect();
    ways[0].push(start);
    let read = places_read(program);
    // The conditions and values of the returns.
    let mut returns: Vec<(String, Option<u32>, String)> = Vec::new();
    for pc in 0..program.len() {
        let incoming = std::mem::take(&mut ways[pc]);
        if incoming.is_empty() {
            continue;
        }
        let here = meet(script, &format!("{name}{pc}"), &incoming, read[pc]);
        let mut go = |skip: usize, condition: &str, places: &[String]| {
            let is_taken = format!("(and {} {condition})", here.is_taken);
            let places = places.to_vec();
            ways[pc + 1 + skip].push(Way { is_taken, places });
        };
        let mut places = here.places.clone();
        let k = constant(program.insns()[pc].k);
        let op = program.op(Pc(pc));
        match op {
            Op::RetImm(value) => returns.push((here.is_taken, Some(value), k)),
            Op::RetA => returns.push((here.is_taken, None, places[A].clone())),
            Op::Jump(skip) => go(skip as usize, "true", &places),
            Op::Branch {
                test,
                operand,
                jt,
                jf,
            } => {
                let holds = match (test, operand) {
                    (Test::Eq, Operand::K(value)) => equality(&places[A], value),
                    _ => test_term(test, &places[A], &operand_term(operand, &places, &k)),
                };
                go(usize::from(jt), &holds, &places);
                go(usize::from(jf), &format!("(not {holds})"), &places);
            }
            Op::Alu(AluOp::Div, operand) => {
                let divisor = operand_term(operand, &places, &k);
                places[A] = format!("(bvudiv {} {divisor})", places[A]);
                let is_zero = format!("(= {divisor} {})", constant(0));
                // Division by zero ends the program with 0.
                let ends = format!("(and {} {is_zero})", here.is_taken);
                go(0, &format!("(not {is_zero})"), &places);
                returns.push((ends, Some(0), constant(0)));
            }
            op => {
                transfer(op, &mut places, &k);
                go(0, "true", &places);
            }
        }
    }
    returned(returns)
}

/// The return value of a program from the conditions, constants and terms of its returns.
fn returned(returns: Vec<(String, Option<u32>, String)>) -> Returned {
    if returns.iter().all(|(_, value, _)| value.is_some()) {
        let mut cases = Cases::new();
        for (condition, value, _) in returns {
            cases
                .entry(value.unwrap_or_default())
                .or_default()
                .push(condition);
        }
        return Returned::Cases(cases);
    }
    let term = returns
        .into_iter()
        .fold(constant(0), |otherwise, (condition, _, value)| {
            format!("(ite {condition} {value} {otherwise})")
        });
    Returned::Term(term)
}

/// The lower bits of a constant that equality tests apart from the others.
const LOWER_BITS: u32 = 5;

/// Equality with a constant: of the bits above the lower ones, and of these.
fn equality(term: &str, value: u32) -> String {
    let lower = value & ((1 << LOWER_BITS) - 1);
    let upper = value >> LOWER_BITS;
    format!(
        "(and (= ((_ extract 31 {LOWER_BITS}) {term}) #b{upper:0upper_width$b}) \
         (= ((_ extract {} 0) {term}) #b{lower:0lower_width$b}))",
        LOWER_BITS - 1,
        upper_width = (32 - LOWER_BITS) as usize,
        lower_width = LOWER_BITS as usize,
    )
}

/// For each instruction the places that it or a later one reads before they are written.
fn places_read(program: &Program) -> Vec<[bool; PLACES]> {
    let mut read = vec![[false; PLACES]; program.len()];
    for pc in (0..program.len()).rev() {
        let op = program.op(Pc(pc));
        let slot = |slot: u32| FIRST_SLOT + slot as usize;
        let after = |skip: usize| read[pc + 1 + skip];
        let mut own = match op {
            Op::RetImm(_) | Op::RetA => [false; PLACES],
            Op::Jump(skip) => after(skip as usize),
            Op::Branch { jt, jf, .. } => {
                let (then, otherwise) = (after(usize::from(jt)), after(usize::from(jf)));
                std::array::from_fn(|place| then[place] || otherwise[place])
            }
            _ => after(0),
        };
        let written = match op {
            Op::LoadData(_) | Op::LoadImm(_) | Op::LoadMem(_) | Op::LoadLen => Some(A),
            Op::Txa => Some(A),
            Op::LoadXImm(_) | Op::LoadXMem(_) | Op::LoadXLen | Op::Tax => Some(X),
            Op::Store(to) | Op::StoreX(to) => Some(slot(to)),
            _ => None,
        };
        if let Some(place) = written {
            own[place] = false;
        }
        match op {
            Op::LoadMem(from) | Op::LoadXMem(from) => own[slot(from)] = true,
            Op::StoreX(_) | Op::Txa => own[X] = true,
            Op::RetA | Op::Store(_) | Op::Tax | Op::Neg => own[A] = true,
            Op::Alu(_, operand) | Op::Branch { operand, .. } => {
                own[A] = true;
                own[X] |= operand == Operand::X;
            }
            _ => {}
        }
        read[pc] = own;
    }
    read
}

/// Defines the state where edges merge; places that aren't read have any value.
fn meet(script: &mut String, name: &str, ways: &[Way], read: [bool; PLACES]) -> Way {
    let conditions: Vec<&str> = ways.iter().map(|way| way.is_taken.as_str()).collect();
    let _ = writeln!(
        script,
        "(define-fun {name}t () Bool (or false {}))",
        conditions.join(" ")
    );
    let mut places = Vec::new();
    for (place, is_read) in read.into_iter().enumerate() {
        if !is_read {
            places.push(constant(0));
            continue;
        }
        let (last, others) = ways.split_last().expect("a way leads here");
        let term = others.iter().fold(last.places[place].clone(), |term, way| {
            match way.places[place] == term {
                true => term,
                false => format!("(ite {} {} {term})", way.is_taken, way.places[place]),
            }
        });
        if term.starts_with('(') {
            let _ = writeln!(
                script,
                "(define-fun {name}p{place} () (_ BitVec 32) {term})"
            );
            places.push(format!("{name}p{place}"));
        } else {
            places.push(term);
        }
    }
    Way {
        is_taken: format!("{name}t"),
        places,
    }
}

/// A, X and the scratch memory, in this order, after an instruction that neither branches nor ends the program. The
/// constant of the instruction is a term, which may stand for another number.
pub fn transfer(op: Op, places: &mut [String], k: &str) {
    let slot = |slot: u32| FIRST_SLOT + slot as usize;
    match op {
        Op::LoadData(offset) => places[A] = format!("w{}", offset / 4),
        Op::LoadImm(_) => places[A] = k.to_owned(),
        Op::LoadMem(from) => places[A] = places[slot(from)].clone(),
        Op::LoadLen => places[A] = constant(64),
        Op::LoadXImm(_) => places[X] = k.to_owned(),
        Op::LoadXMem(from) => places[X] = places[slot(from)].clone(),
        Op::LoadXLen => places[X] = constant(64),
        Op::Store(to) => places[slot(to)] = places[A].clone(),
        Op::StoreX(to) => places[slot(to)] = places[X].clone(),
        Op::Neg => places[A] = format!("(bvneg {})", places[A]),
        Op::Tax => places[X] = places[A].clone(),
        Op::Txa => places[A] = places[X].clone(),
        Op::Alu(alu, operand) => {
            let mut right = operand_term(operand, places, k);
            if matches!(alu, AluOp::Lsh | AluOp::Rsh) {
                right = format!("(bvand {right} {})", constant(31));
            }
            places[A] = format!("({} {} {right})", function(alu), places[A]);
        }
        Op::Jump(_) | Op::Branch { .. } | Op::RetImm(_) | Op::RetA => {}
    }
}

/// A number as a term.
pub fn constant(k: u32) -> String {
    format!("#x{k:08x}")
}

/// An operand as a term, given A, X and the scratch memory and the term for a constant.
pub fn operand_term(operand: Operand, places: &[String], k: &str) -> String {
    match operand {
        Operand::K(_) => k.to_owned(),
        Operand::X => places[X].clone(),
        Operand::Variable(_) => unreachable!("programs have no variables"),
    }
}

/// Whether a test of two terms holds, as a term.
pub fn test_term(test: Test, a: &str, b: &str) -> String {
    match test {
        Test::Eq => format!("(= {a} {b})"),
        Test::Gt => format!("(bvugt {a} {b})"),
        Test::Ge => format!("(bvuge {a} {b})"),
        Test::Set => format!("(distinct (bvand {a} {b}) #x00000000)"),
    }
}

const fn function(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "bvadd",
        AluOp::Sub => "bvsub",
        AluOp::Mul => "bvmul",
        AluOp::Div => "bvudiv",
        AluOp::And => "bvand",
        AluOp::Or => "bvor",
        AluOp::Xor => "bvxor",
        AluOp::Lsh => "bvshl",
        AluOp::Rsh => "bvlshr",
    }
}
