//! Random rulesets that every policy language can express.
//!
//! They have one architecture and one action besides the default, which denies or allows. Each call has no condition,
//! a list of values of one argument, or one comparison each of some whole arguments with constants. More alternatives
//! differ in meaning between languages, because libseccomp, which defines the meaning of OCI profiles, sometimes
//! merges them. The ruleset comes first, and each language must express it.

use tamis_abi::{Action, Arch, ArgIndex, syscall};
use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};

use crate::rng::Rng;

/// Calls with arguments that are worth a condition, and some without.
const CALLS: [&str; 12] = [
    "read", "write", "openat", "close", "ioctl", "socket", "clone", "mmap", "futex", "fcntl",
    "prctl", "getpid",
];

/// The most values of one argument.
const MAX_ALTERNATIVES: u64 = 5;
/// Conditions use the first arguments: languages that know a call's number of arguments reject others.
const MAX_ARGS: usize = 3;

/// A ruleset for x86_64 with one rule per call.
///
/// # Panics
/// Never: the calls exist on x86_64.
pub fn plain(rng: &mut Rng) -> Ruleset {
    // Some languages have EPERM alone.
    let other = rng.range(1..=40) as u16;
    let errno = Action::errno(*rng.choose(&[1, other]));
    let denial = *rng.choose(&[errno, Action::KILL_PROCESS]);
    let is_deny_list = rng.chance(1, 4);
    let [default, action] = match is_deny_list {
        true => [Action::ALLOW, denial],
        false => [denial, Action::ALLOW],
    };
    // Some languages have deny lists but no conditions, or conditions on 32 bits alone.
    let is_unconditional = rng.chance(1, if is_deny_list { 2 } else { 3 });
    let mut constants = vec![0, 1, 2, 0x5401, 0xffff_ffff, 1 << 31, 1 << 32, u64::MAX];
    constants.extend((0..3).map(|_| rng.interesting_u64()));
    let mut rules = Vec::new();
    for name in CALLS {
        if rng.chance(1, 2) {
            let nr = syscall::number(Arch::X86_64, name).expect("a call of x86_64");
            rules.push(Rule {
                syscalls: IntervalSet::single(nr.0),
                when: match is_unconditional {
                    true => Predicate::True,
                    false => condition(rng, &constants),
                },
                action,
                origin: None,
            });
        }
    }
    let section = Section {
        arch: Arch::X86_64,
        rules,
        default,
    };
    Ruleset::new(vec![section], Action::KILL_PROCESS).expect("one section")
}

fn condition(rng: &mut Rng, constants: &[u64]) -> Predicate {
    match rng.range(0..=2) {
        0 => Predicate::True,
        1 => {
            let operand = Operand::arg(*rng.choose(&ArgIndex::ALL[..MAX_ARGS]));
            let values = 0..rng.range(2..=MAX_ALTERNATIVES);
            let values = values.map(|_| *rng.choose(constants));
            let equal = |value| Predicate::compare(operand, CmpOp::Eq, value);
            Predicate::Any(values.map(equal).collect())
        }
        _ => {
            let mut args = ArgIndex::ALL[..MAX_ARGS].to_vec();
            let count = rng.range(1..=MAX_ARGS as u64) as usize;
            while args.len() > count {
                args.remove(rng.index(args.len()));
            }
            let tests = args.into_iter();
            Predicate::All(
                tests
                    .map(|arg| Predicate::Test(test(rng, arg, constants)))
                    .collect(),
            )
        }
    }
}

fn test(rng: &mut Rng, arg: ArgIndex, constants: &[u64]) -> Test {
    let operand = Operand::arg(arg);
    let value = *rng.choose(constants);
    if rng.chance(1, 3) {
        let mask = *rng.choose(constants);
        return Test::Masked {
            operand,
            mask,
            value: value & mask,
        };
    }
    let op = *rng.choose(&CmpOp::ALL);
    Test::Compare { operand, op, value }
}
