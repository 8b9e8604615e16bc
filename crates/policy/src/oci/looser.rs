//! Calls that libseccomp's program allows although no entry of the profile does.
//!
//! libseccomp shares the tests of several rules for one call, so a condition on a later argument can be reached by a
//! path on which the earlier conditions of its rule do not hold. The rules of the tree are compared with the entries,
//! on a call for each possible comparison of the halves of arguments with those of the constants: less, equal, greater.
//! Beyond a limit of combinations, and for bits under several masks, the calls are a sample: a found call is certain,
//! but the absence of one proves nothing.

use tamis_abi::{Action, Arch, SeccompData};
use tamis_rules::Values;
use tamis_scmp::{CallRule, Comparison, Condition, Conditions};

/// The most calls tried for one system call.
const MAX_CALLS: usize = 1 << 15;

/// A system call on an architecture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) arch: Arch,
    pub(super) nr: u32,
    /// The action if nothing matches.
    pub(super) default: Action,
}

/// A call that libseccomp's program treats less strictly than the text of the profile.
#[derive(Debug)]
pub(super) struct Grant<T> {
    pub(super) args: [u64; 6],
    /// The action of libseccomp's program.
    pub(super) action: Action,
    /// The rule that has it; `None` for the default.
    pub(super) tag: Option<T>,
    /// The loosest action of the matching entries, or the default if none matches.
    pub(super) said: Action,
}

/// The first call that the rules treat less strictly than every matching clause. Makes at most `budget` tests of
/// clauses and rules, and subtracts them.
pub(super) fn find<T: Copy>(
    target: Target,
    clauses: &[(Conditions, Action)],
    rules: &[CallRule<T>],
    budget: &mut usize,
) -> Option<Grant<T>> {
    let has_plain = clauses.iter().any(|(conditions, _)| conditions.is_empty());
    let mut conditions = clauses.iter().flat_map(|(conditions, _)| conditions.iter());
    let is_exact = |condition: &Condition| {
        matches!(
            condition.comparison,
            Comparison::Eq | Comparison::Masked { .. }
        )
    };
    // Tests of equal bits share nothing.
    if clauses.len() < 2 || has_plain || conditions.all(is_exact) {
        return None;
    }
    let tests = clauses.len() + rules.len();
    let bits = compared_bits(target.arch);
    let values = [0, 1, 2, 3, 4, 5].map(|arg| values_of(arg, clauses, bits));
    let count: usize = values.iter().map(Vec::len).fold(1, usize::saturating_mul);
    let tried = count.min(MAX_CALLS).min(*budget / tests);
    *budget -= tried * tests;
    (0..tried).find_map(|at| {
        // If there are too many calls, the sample is spread evenly.
        let mut at = (at as u128 * count as u128 / tried as u128) as usize;
        let args = [0, 1, 2, 3, 4, 5].map(|arg: usize| {
            let choices = &values[arg];
            let value = choices[at % choices.len()];
            at /= choices.len();
            value
        });
        granted(target, args, clauses, rules)
    })
}

/// The bits of an argument that libseccomp compares: of x32 the lower 32, too.
fn compared_bits(arch: Arch) -> u64 {
    match arch.is_64_bit() {
        true => u64::MAX,
        false => u64::from(u32::MAX),
    }
}

/// Whether a call is treated less strictly than in the text.
fn granted<T: Copy>(
    target: Target,
    args: [u64; 6],
    clauses: &[(Conditions, Action)],
    rules: &[CallRule<T>],
) -> Option<Grant<T>> {
    let data = SeccompData {
        nr: target.nr,
        arch: target.arch.audit(),
        ip: 0,
        args,
    };
    let rule = rules
        .iter()
        .find(|rule| rule.when.holds(&data, &Values::ZERO));
    let action = rule.map_or(target.default, |rule| rule.action);
    let mask = compared_bits(target.arch);
    let matching = clauses.iter().filter(|(conditions, _)| {
        conditions
            .iter()
            .all(|condition| holds(condition, args[condition.arg.index()], mask))
    });
    let said = matching.map(|(_, action)| *action);
    let said = said
        .max_by_key(|action| action.kind)
        .unwrap_or(target.default);
    (action.kind > said.kind).then_some(Grant {
        args,
        action,
        tag: rule.map(|rule| rule.tag),
        said,
    })
}

/// Whether a condition holds for the compared bits.
fn holds(condition: &Condition, arg: u64, bits: u64) -> bool {
    let (arg, value) = (arg & bits, condition.value & bits);
    match condition.comparison {
        Comparison::Ne => arg != value,
        Comparison::Lt => arg < value,
        Comparison::Le => arg <= value,
        Comparison::Eq => arg == value,
        Comparison::Ge => arg >= value,
        Comparison::Gt => arg > value,
        Comparison::Masked { mask } => arg & mask == value & mask,
    }
}

/// The values of an argument to try: 0 without conditions on it, otherwise one for each possible comparison of its
/// halves with those of the constants. `bits` are the compared ones.
fn values_of(arg: usize, clauses: &[(Conditions, Action)], bits: u64) -> Vec<u64> {
    let conditions = clauses.iter().flat_map(|(conditions, _)| conditions.iter());
    let own: Vec<&Condition> = conditions
        .filter(|condition| condition.arg.index() == arg)
        .collect();
    let [high, low] = [32, 0].map(|shift| halves_of(&own, (bits >> shift) as u32, shift));
    let pairs = high.iter().flat_map(|high| {
        low.iter()
            .map(|low| u64::from(*high) << 32 | u64::from(*low))
    });
    pairs.collect()
}

/// The values of one half: the constants, their successors, and 0; for masks also values with the masked bits and all
/// others, or neither.
fn halves_of(conditions: &[&Condition], bits: u32, shift: u32) -> Vec<u32> {
    let mut values = vec![0];
    for condition in conditions {
        let value = (condition.value >> shift) as u32;
        values.extend([value, value.saturating_add(1)]);
        if let Comparison::Masked { mask } = condition.comparison {
            let mask = (mask >> shift) as u32;
            values.extend([value & mask, value | !mask, !value]);
        }
    }
    for value in &mut values {
        *value &= bits;
    }
    values.sort_unstable();
    values.dedup();
    values
}
