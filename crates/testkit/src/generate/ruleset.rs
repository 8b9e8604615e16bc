//! Random rulesets, and calls that detect errors in programs compiled from them.
//!
//! Constants, numbers and operands are drawn from small pools per ruleset, so that rules overlap, share values and
//! contradict each other; independent random values would rarely coincide.

use tamis_abi::{Action, ActionKind, Arch, ArgIndex, Endian, SeccompData, Word};
use tamis_rules::{
    CmpOp, IntervalSet, Operand, OperandSource, Part, Predicate, Rule, Ruleset, Section, Test,
};

use crate::rng::Rng;

/// The limits of the size of a ruleset.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The most rules of a section.
    pub rules: u64,
    /// The deepest nesting of a condition.
    pub depth: u64,
    /// The most intervals of a value set.
    pub intervals: u64,
    /// The most numbers of all rules.
    pub numbers: u64,
}

impl Size {
    /// A few rules, with conditions like those written by hand.
    pub const SMALL: Size = Size {
        rules: 12,
        depth: 3,
        intervals: 6,
        numbers: 30,
    };
    /// Rulesets whose programs have thousands of instructions.
    pub const LARGE: Size = Size {
        rules: 500,
        depth: 4,
        intervals: 60,
        numbers: 400,
    };
    /// A few calls with long lists of argument values.
    pub const ARGUMENTS: Size = Size {
        rules: 6,
        depth: 3,
        intervals: 40,
        numbers: 3,
    };
}

/// The values used in a ruleset.
struct Pool {
    constants: Vec<u64>,
    numbers: Vec<u32>,
    operands: Vec<Operand>,
    actions: Vec<Action>,
}

/// A ruleset for architectures of this byte order.
///
/// # Panics
/// Never: no architecture is drawn twice.
pub fn ruleset(rng: &mut Rng, size: Size, endian: Endian) -> Ruleset {
    let pool = pool(rng, size);
    let candidates: &[Arch] = match endian {
        Endian::Little => &[
            Arch::X86_64,
            Arch::X32,
            Arch::X86,
            Arch::Aarch64,
            Arch::Riscv64,
        ],
        Endian::Big => &[Arch::S390x, Arch::Ppc64, Arch::Mips, Arch::Mips64],
    };
    let mut sections = Vec::new();
    for arch in candidates {
        if rng.chance(1, 2) || (sections.is_empty() && Some(arch) == candidates.last()) {
            sections.push(section(rng, size, *arch, &pool));
        }
    }
    let bad_arch = *rng.choose(&pool.actions);
    Ruleset::new(sections, bad_arch).expect("every architecture is a candidate once")
}

fn pool(rng: &mut Rng, size: Size) -> Pool {
    let mut operands = Vec::new();
    for _ in 0..rng.range(1..=4) {
        let source = if rng.chance(1, 8) {
            OperandSource::Ip
        } else {
            OperandSource::Arg(*rng.choose(&ArgIndex::ALL))
        };
        let part = *rng.choose(&[Part::Full, Part::Full, Part::Low, Part::High]);
        operands.push(Operand { source, part });
    }
    let mut constants = vec![0, 1, u64::MAX, u64::from(u32::MAX), 1 << 32];
    constants.extend((0..rng.range(2..=8)).map(|_| rng.interesting_u64()));
    let mut numbers = vec![0, 59, Arch::X32_BIT, u32::MAX];
    numbers.extend((0..rng.range(2..=size.numbers)).map(|_| rng.range(0..=450) as u32));
    let actions = (0..rng.range(2..=4))
        .map(|_| {
            let kind = *rng.choose(&ActionKind::ALL);
            Action::new(kind, rng.range(0..=2) as u16)
        })
        .chain([Action::ALLOW])
        .collect();
    Pool {
        constants,
        numbers,
        operands,
        actions,
    }
}

fn section(rng: &mut Rng, size: Size, arch: Arch, pool: &Pool) -> Section {
    let rules = (0..rng.range(0..=size.rules))
        .map(|_| Rule {
            syscalls: numbers(rng, size, arch, pool),
            when: condition(rng, size, pool),
            action: *rng.choose(&pool.actions),
            origin: None,
        })
        .collect();
    Section {
        arch,
        rules,
        default: *rng.choose(&pool.actions),
    }
}

fn numbers(rng: &mut Rng, size: Size, arch: Arch, pool: &Pool) -> IntervalSet<u32> {
    let base = if arch == Arch::X32 { Arch::X32_BIT } else { 0 };
    let one = |rng: &mut Rng| rng.choose(&pool.numbers) | base;
    // Only a few rules for all numbers: with many of them, no later rule would have an effect.
    if rng.chance(3, size.rules + 3) {
        return match rng.range(0..=2) {
            0 => IntervalSet::full(),
            1 => IntervalSet::empty(),
            _ => {
                let (a, b) = (one(rng), one(rng));
                [a.min(b)..=a.max(b)].into_iter().collect()
            }
        };
    }
    (0..rng.range(1..=5)).map(|_| one(rng)).collect()
}

fn condition(rng: &mut Rng, size: Size, pool: &Pool) -> Predicate {
    if rng.chance(1, 3) {
        Predicate::True
    } else {
        predicate(rng, size, size.depth, pool)
    }
}

fn predicate(rng: &mut Rng, size: Size, depth: u64, pool: &Pool) -> Predicate {
    let parts = |rng: &mut Rng| {
        (0..rng.range(0..=4))
            .map(|_| predicate(rng, size, depth - 1, pool))
            .collect()
    };
    match rng.range(0..=9) {
        0 => Predicate::True,
        1 => Predicate::False,
        2 if depth > 0 => Predicate::Not(Box::new(predicate(rng, size, depth - 1, pool))),
        3 | 4 if depth > 0 => Predicate::All(parts(rng)),
        5 | 6 if depth > 0 => Predicate::Any(parts(rng)),
        _ => Predicate::Test(test(rng, size, pool)),
    }
}

fn test(rng: &mut Rng, size: Size, pool: &Pool) -> Test {
    let operand = *rng.choose(&pool.operands);
    let value = *rng.choose(&pool.constants);
    match rng.range(0..=7) {
        0 | 1 => {
            let mask = *rng.choose(&pool.constants);
            // Usually a possible value.
            let value = if rng.chance(7, 8) {
                value & mask
            } else {
                value
            };
            Test::Masked {
                operand,
                mask,
                value,
            }
        }
        2 | 3 => Test::In {
            operand,
            set: values(rng, size, pool),
        },
        4 => Test::Between {
            left: operand,
            op: *rng.choose(&CmpOp::ALL),
            right: *rng.choose(&pool.operands),
        },
        _ => Test::Compare {
            operand,
            op: *rng.choose(&CmpOp::ALL),
            value,
        },
    }
}

fn values(rng: &mut Rng, size: Size, pool: &Pool) -> IntervalSet<u64> {
    (0..rng.range(0..=size.intervals))
        .map(|_| {
            let first = *rng.choose(&pool.constants) ^ rng.range(0..=64);
            first..=first.saturating_add(rng.range(0..=3))
        })
        .collect()
}

/// A call near the rules of a ruleset: numbers and words near their constants, on one of its architectures or on
/// another.
pub fn call(rng: &mut Rng, ruleset: &Ruleset) -> SeccompData {
    let mut data = SeccompData {
        nr: rng.range(0..=450) as u32,
        arch: rng.next_u32(),
        ..SeccompData::default()
    };
    let sections = ruleset.sections();
    if sections.is_empty() || rng.chance(1, 30) {
        return data;
    }
    let section = rng.choose(sections);
    data.arch = section.arch.audit();
    if section.rules.is_empty() {
        return data;
    }
    let rule = rng.choose(&section.rules);
    if !rule.syscalls.is_empty() && rng.chance(9, 10) {
        let (first, last) = *rng.choose(rule.syscalls.intervals());
        let border = *rng.choose(&[first, last]);
        data.nr = nearby(rng, u64::from(border)) as u32;
    }
    let mut constants = vec![0, u64::MAX, rng.next_u64()];
    collect_constants(&rule.when, &mut constants);
    for word in Word::all().skip(2) {
        if rng.chance(3, 4) {
            let constant = *rng.choose(&constants);
            let half = if rng.chance(1, 4) {
                *rng.choose(&[constant, constant >> 32])
            } else if word.index() % 2 == 0 {
                constant
            } else {
                constant >> 32
            };
            data = data.with_word(word, nearby(rng, half) as u32);
        }
    }
    if rng.chance(1, 4) {
        // Equal arguments, for comparisons between arguments.
        data.args[rng.index(6)] = data.args[rng.index(6)];
    }
    data
}

fn nearby(rng: &mut Rng, value: u64) -> u64 {
    match rng.range(0..=7) {
        0 => value.wrapping_add(1),
        1 => value.wrapping_sub(1),
        2 => value ^ 1 << rng.range(0..=31),
        _ => value,
    }
}

fn collect_constants(predicate: &Predicate, constants: &mut Vec<u64>) {
    for test in predicate.tests() {
        match test {
            Test::Compare { value, .. } => constants.push(*value),
            Test::Masked { mask, value, .. } => constants.extend([*value, value | !mask]),
            Test::In { set, .. } => {
                let intervals = set.intervals().iter();
                constants.extend(intervals.flat_map(|(first, last)| [*first, *last]));
            }
            Test::Between { .. } => {}
        }
    }
}

/// The ruleset with nested lists of a few repeated tests as conditions.
///
/// # Panics
/// Never: the architectures do not change.
pub fn entangled(rng: &mut Rng, ruleset: &Ruleset) -> Ruleset {
    let mut pool = Vec::new();
    for _ in 0..6 {
        let operand = Operand {
            source: OperandSource::Arg(*rng.choose(&ArgIndex::ALL[..2])),
            part: *rng.choose(&[Part::Full, Part::Low, Part::High]),
        };
        let (value, mask) = (rng.range(0..=3), rng.range(1..=7));
        let test = Test::Masked {
            operand,
            mask,
            value: value & mask,
        };
        pool.push(Predicate::compare(operand, *rng.choose(&CmpOp::ALL), value));
        pool.push(Predicate::Test(test));
        let bits = [0, 4, 0x10, 0x14, rng.range(0..=3)];
        pool.push(Predicate::Test(Test::In {
            operand,
            set: bits.into_iter().map(|bits| value ^ bits).collect(),
        }));
    }
    let mut sections = ruleset.sections().to_vec();
    for rule in sections.iter_mut().flat_map(|section| &mut section.rules) {
        let lists = (0..rng.range(1..=4)).map(|_| {
            let parts = (0..rng.range(1..=3)).map(|_| rng.choose(&pool).clone());
            Predicate::All(parts.collect())
        });
        let when = Predicate::Any(lists.collect());
        rule.when = if rng.chance(1, 4) {
            Predicate::Not(Box::new(when))
        } else {
            when
        };
    }
    Ruleset::new(sections, ruleset.bad_arch).expect("the architectures are as before")
}
