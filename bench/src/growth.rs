//! Rulesets of any size, for measuring the growth of compile time with the number of rules.

use tamis_abi::{Action, Arch, ArgIndex};
use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};
use tamis_testkit::rng::Rng;

use crate::requests::IOCTL;

/// A kind of ruleset that is available in every size.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The part of the ruleset that grows.
    pub name: &'static str,
    rule: fn(&mut Rng, u32, u32) -> Rule,
}

/// All shapes.
pub const SHAPES: [Shape; 7] = [
    Shape {
        name: "numbers",
        rule: |rng, index, _| {
            let number = 3 * index + rng.index(2) as u32;
            let action = *rng.choose(&[Action::ALLOW, Action::ALLOW, Action::errno(2)]);
            rule(IntervalSet::single(number), Predicate::True, action)
        },
    },
    Shape {
        name: "overlapping ranges",
        rule: |rng, _, count| {
            let first = rng.index(4 * count as usize) as u32;
            let range = first..=first + rng.index(20) as u32;
            let action = Action::errno(2 + rng.index(5) as u16);
            rule([range].into_iter().collect(), Predicate::True, action)
        },
    },
    Shape {
        name: "values of one argument",
        rule: |rng, _, _| {
            let request = is(1, rng.next_u64() & 0xffff_ffff);
            rule(IntervalSet::single(IOCTL), request, Action::ALLOW)
        },
    },
    Shape {
        name: "values with an errno each",
        rule: |rng, index, _| {
            let request = is(1, rng.next_u64() & 0xffff_ffff);
            let action = Action::errno(1 + (index % 4000) as u16);
            rule(IntervalSet::single(IOCTL), request, action)
        },
    },
    Shape {
        name: "pairs of values",
        rule: |rng, _, _| {
            let pair = vec![is(0, rng.range(0..=63)), is(1, rng.range(0..=0xffff_ffff))];
            rule(
                IntervalSet::single(IOCTL),
                Predicate::All(pair),
                Action::ALLOW,
            )
        },
    },
    Shape {
        name: "four arguments each",
        rule: |rng, index, _| {
            let values = (0..4).map(|arg| is(arg, rng.range(0..=0xff))).collect();
            rule(
                IntervalSet::single(3 * index),
                Predicate::All(values),
                Action::ALLOW,
            )
        },
    },
    Shape {
        name: "bits of 300 calls",
        rule: |rng, index, _| {
            let test = Test::Masked {
                operand: Operand::arg(ArgIndex::ALL[rng.index(3)]),
                mask: 1 << rng.index(12),
                value: 0,
            };
            let action = Action::errno(2 + rng.index(4) as u16);
            rule(
                IntervalSet::single(index % 300),
                Predicate::Test(test),
                action,
            )
        },
    },
];

impl Shape {
    /// The ruleset with this many rules; the same every time.
    ///
    /// # Panics
    /// Never: there is one section.
    pub fn ruleset(self, rules: u32) -> Ruleset {
        let mut rng = Rng::new(u64::from(rules));
        let rules = (0..rules).map(|index| (self.rule)(&mut rng, index, rules));
        let section = Section {
            arch: Arch::X86_64,
            rules: rules.collect(),
            default: Action::errno(1),
        };
        Ruleset::new(vec![section], Action::KILL_PROCESS).expect("there is one section")
    }
}

fn is(arg: usize, value: u64) -> Predicate {
    Predicate::compare(Operand::arg(ArgIndex::ALL[arg]), CmpOp::Eq, value)
}

fn rule(syscalls: IntervalSet<u32>, when: Predicate, action: Action) -> Rule {
    Rule {
        syscalls,
        when,
        action,
        origin: None,
    }
}
