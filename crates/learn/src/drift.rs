//! What a policy would deny of the calls that were made.
//!
//! Values of arguments that weren't recorded are unknown, and a test of one may hold or not. So the answer to a call is a
//! set of actions: it is certain if none of them, or all of them, deny.

use tamis_abi::{Action, ActionKind, Arch, Nr};
use tamis_profile::Profile;
use tamis_rules::{Operand, OperandSource, Part, Predicate, Ruleset, Test};

/// A call that was made and that a policy denies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Its architecture.
    pub arch: Arch,
    /// Its number.
    pub nr: Nr,
    /// How often it was made.
    pub count: u64,
    /// One of the actions that it gets.
    pub action: Action,
    /// Whether it gets one whatever the unknown arguments were.
    pub is_certain: bool,
}

/// The calls of a profile that a policy denies, or may deny, by architecture and number. Calls that were denied already aren't
/// among them.
///
/// ```
/// use tamis_abi::{Action, Arch, Nr};
/// use tamis_rules::{Ruleset, Section};
/// let section = Section { arch: Arch::X86_64, rules: Vec::new(), default: Action::errno(1) };
/// let policy = Ruleset::new(vec![section], Action::KILL_PROCESS).unwrap();
/// let mut profile = tamis_profile::Profile::default();
/// profile.call_mut(Arch::X86_64, Nr(0)).count = 7;
/// let drift = tamis_learn::drift(&profile, &policy);
/// assert_eq!((drift[0].count, drift[0].action), (7, Action::errno(1)));
/// assert!(drift[0].is_certain);
/// ```
pub fn drift(profile: &Profile, policy: &Ruleset) -> Vec<Drift> {
    let mut drift = Vec::new();
    for (arch, nr, call) in profile.calls() {
        let count = call.count.saturating_sub(call.denied);
        if count == 0 {
            continue;
        }
        let lists = call.value_lists();
        let answers: Vec<Vec<Action>> =
            lists.map(|args| answers(policy, arch, nr, &args)).collect();
        let denials = answers.iter().flatten().filter(|action| denies(**action));
        let Some(action) = denials.min_by_key(|action| action.ret()).copied() else {
            continue;
        };
        let always = |actions: &Vec<Action>| actions.iter().all(|action| denies(*action));
        drift.push(Drift {
            arch,
            nr,
            count,
            action,
            is_certain: answers.iter().any(always),
        });
    }
    drift
}

const fn denies(action: Action) -> bool {
    !matches!(action.kind, ActionKind::Allow | ActionKind::Log)
}

/// The actions that a call may get with these arguments, of which some are unknown.
fn answers(policy: &Ruleset, arch: Arch, nr: Nr, args: &[Option<u64>; 6]) -> Vec<Action> {
    let Some(section) = policy.section(arch) else {
        return vec![policy.bad_arch];
    };
    let mut answers = Vec::new();
    for rule in section
        .rules
        .iter()
        .filter(|rule| rule.syscalls.contains(nr.0))
    {
        match holds(&rule.when, args) {
            Some(false) => {}
            Some(true) => {
                answers.push(rule.action);
                return answers;
            }
            None => {
                answers.push(rule.action);
            }
        }
    }
    answers.push(section.default);
    answers
}

/// Whether a predicate holds; `None` if that depends on what is unknown.
fn holds(predicate: &Predicate, args: &[Option<u64>; 6]) -> Option<bool> {
    match predicate {
        Predicate::True => Some(true),
        Predicate::False => Some(false),
        Predicate::Not(inner) => holds(inner, args).map(|holds| !holds),
        Predicate::All(parts) => joined(parts, args, false),
        Predicate::Any(parts) => joined(parts, args, true),
        Predicate::Test(test) => tested(test, args),
    }
}

/// A conjunction, or a disjunction: `decisive` is the value that decides it.
fn joined(parts: &[Predicate], args: &[Option<u64>; 6], decisive: bool) -> Option<bool> {
    let mut all_known = true;
    for part in parts {
        match holds(part, args) {
            Some(value) if value == decisive => return Some(decisive),
            Some(_) => {}
            None => all_known = false,
        }
    }
    all_known.then_some(!decisive)
}

fn tested(test: &Test, args: &[Option<u64>; 6]) -> Option<bool> {
    Some(match test {
        Test::Compare { operand, op, value } => op.holds(read(*operand, args)?, *value),
        Test::Masked {
            operand,
            mask,
            value,
        } => read(*operand, args)? & mask == *value,
        Test::In { operand, set } => set.contains(read(*operand, args)?),
        Test::Between { left, op, right } => op.holds(read(*left, args)?, read(*right, args)?),
    })
}

fn read(operand: Operand, args: &[Option<u64>; 6]) -> Option<u64> {
    let OperandSource::Arg(index) = operand.source else {
        return None;
    };
    let value = args[index.index()]?;
    Some(match operand.part {
        Part::Full => value,
        Part::Low => value & 0xffff_ffff,
        Part::High => value >> 32,
    })
}
