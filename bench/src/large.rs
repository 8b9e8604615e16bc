//! Rules like those of the largest sandboxes, as a ruleset and as a program by a simple generator: thousands of
//! instructions, one rule after the other.
//!
//! Numbers are tested in turn. Half of them have alternatives: values of one argument, combined with one value of up
//! to two others; several numbers have the same alternatives.

use tamis_abi::{Action, Arch, ArgIndex, Endian, Word};
use tamis_bpf::{Op, Program, Test};
use tamis_rules::{CmpOp, IntervalSet, Operand as Value, Predicate, Rule, Ruleset, Section};
use tamis_testkit::rng::Rng;

const NUMBERS: u32 = 320;
const CONSTANTS: usize = 60;
/// The number of lists of alternatives; several numbers share each.
const KINDS: usize = 100;
const MAX_ALTERNATIVES: u64 = 7;
const REFUSED: Action = Action::errno(1);

/// A condition: each of these arguments has this value.
type Alternative = Vec<(ArgIndex, u64)>;

/// Rules for one architecture, with the alternatives of each number. A number without any is always allowed.
#[derive(Clone, Debug)]
pub struct Rules(Vec<Vec<Alternative>>);

impl Rules {
    /// The rules of a seed.
    pub fn new(seed: u64) -> Rules {
        let mut rng = Rng::new(seed);
        let constants: Vec<u64> = (0..CONSTANTS).map(|_| rng.range(0..=0xffff)).collect();
        let kinds: Vec<Vec<Alternative>> = (0..KINDS)
            .map(|_| alternatives(&mut rng, &constants))
            .collect();
        let numbers = (0..NUMBERS).map(|nr| match nr % 2 {
            0 => Vec::new(),
            _ => rng.choose(&kinds).clone(),
        });
        Rules(numbers.collect())
    }

    /// The rules as a ruleset.
    ///
    /// # Panics
    /// Never: there is one section.
    pub fn ruleset(&self) -> Ruleset {
        let mut rules = Vec::new();
        for (nr, alternatives) in (0..).zip(&self.0) {
            let mut allow = |when| {
                rules.push(Rule {
                    syscalls: IntervalSet::single(nr),
                    when,
                    action: Action::ALLOW,
                    origin: None,
                });
            };
            if alternatives.is_empty() {
                allow(Predicate::True);
            }
            for alternative in alternatives {
                let equals =
                    |(arg, value): &_| Predicate::compare(Value::arg(*arg), CmpOp::Eq, *value);
                allow(Predicate::All(alternative.iter().map(equals).collect()));
            }
        }
        let section = Section {
            arch: Arch::X86_64,
            rules,
            default: REFUSED,
        };
        Ruleset::new(vec![section], Action::KILL_PROCESS).expect("there is one section")
    }

    /// The rules as an unoptimised program, longer than the kernel accepts.
    ///
    /// # Panics
    /// Never: all jumps are short or have 32 bits.
    pub fn program(&self) -> Program {
        let mut ops = vec![
            load(Word::ARCH),
            equal(Arch::X86_64.audit(), 1, 0),
            Op::RetImm(Action::KILL_PROCESS.ret()),
            load(Word::NR),
            // Numbers of x32, except -1.
            equal(u32::MAX, 2, 0),
            Op::branch(Test::Ge, Arch::X32_BIT, 0, 1),
            Op::RetImm(Action::KILL_PROCESS.ret()),
        ];
        for (nr, alternatives) in (0..).zip(&self.0) {
            let body = body(alternatives);
            ops.push(load(Word::NR));
            ops.push(equal(nr, 1, 0));
            ops.push(Op::Jump(body.len() as u32));
            ops.extend(body);
        }
        ops.push(Op::RetImm(REFUSED.ret()));
        let insns = ops.into_iter().map(Into::into).collect();
        Program::new(insns, Endian::Little).expect("all jumps stay inside")
    }
}

/// Alternatives with the same values in all arguments but one.
fn alternatives(rng: &mut Rng, constants: &[u64]) -> Vec<Alternative> {
    let first = rng.index(4);
    let count = rng.range(1..=3) as usize;
    let arguments = ArgIndex::ALL[first..].iter().take(count);
    let common: Alternative = arguments
        .map(|arg| (*arg, *rng.choose(constants)))
        .collect();
    let varied = rng.index(common.len());
    (0..rng.range(1..=MAX_ALTERNATIVES))
        .map(|_| {
            let mut alternative = common.clone();
            alternative[varied].1 = *rng.choose(constants);
            alternative
        })
        .collect()
}

/// The instructions after the number has matched.
fn body(alternatives: &[Alternative]) -> Vec<Op> {
    if alternatives.is_empty() {
        return vec![Op::RetImm(Action::ALLOW.ret())];
    }
    let mut ops = Vec::new();
    for alternative in alternatives {
        let halves: Vec<(Word, u32)> = alternative
            .iter()
            .flat_map(|(arg, value)| {
                let (high, low) = ((value >> 32) as u32, *value as u32);
                [(Word::arg_high(*arg), high), (Word::arg_low(*arg), low)]
            })
            .collect();
        for (index, (word, value)) in halves.iter().enumerate() {
            let rest = 2 * (halves.len() - index - 1) + 1;
            ops.push(load(*word));
            ops.push(equal(*value, 0, rest as u8));
        }
        ops.push(Op::RetImm(Action::ALLOW.ret()));
    }
    ops.push(Op::RetImm(REFUSED.ret()));
    ops
}

fn load(word: Word) -> Op {
    Op::LoadData(word.offset(Endian::Little))
}

fn equal(value: u32, jt: u8, jf: u8) -> Op {
    Op::branch(Test::Eq, value, jt, jf)
}
