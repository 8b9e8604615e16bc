//! Parts of the calls of one number, as conditions on their arguments.

use std::collections::HashMap;

use tamis_abi::Word;
use tamis_prover::{Function, LimitReached, Limited, Space, Variable, View};

/// The function whose values are replaced by others.
pub(crate) fn map(
    space: &mut Space,
    function: Function,
    replacement: &dyn Fn(u32) -> u32,
    known: &mut HashMap<Function, Function>,
) -> Limited<Function> {
    if let Some(mapped) = known.get(&function) {
        return Ok(*mapped);
    }
    let mapped = match space.view(function) {
        View::Leaf(value) => space.constant(replacement(value))?,
        View::Branch {
            variable,
            low,
            high,
        } => {
            let low = map(space, low, replacement, known)?;
            let high = map(space, high, replacement, known)?;
            space.branch(variable, low, high)?
        }
    };
    known.insert(function, mapped);
    Ok(mapped)
}

/// The condition that a function has a wanted value.
pub(crate) fn values_where(
    space: &mut Space,
    function: Function,
    is_wanted: &dyn Fn(u32) -> bool,
) -> Limited<Function> {
    let replacement = |value| u32::from(is_wanted(value));
    map(space, function, &replacement, &mut HashMap::new())
}

/// The condition that both hold.
pub(crate) fn both(space: &mut Space, left: Function, right: Function) -> Limited<Function> {
    if left == Function::FALSE || right == Function::TRUE {
        return Ok(left);
    }
    if left == Function::TRUE || right == Function::FALSE {
        return Ok(right);
    }
    space.choose(left, right, Function::FALSE)
}

/// The condition that one of them holds.
pub(crate) fn either(space: &mut Space, left: Function, right: Function) -> Limited<Function> {
    space.choose(left, Function::TRUE, right)
}

/// The condition that the first holds and the second doesn't.
pub(crate) fn without(space: &mut Space, left: Function, right: Function) -> Limited<Function> {
    space.choose(right, Function::FALSE, left)
}

/// The most blocks of numbers that are visited: a function that tests low bits alone has as many as numbers.
const MAX_BLOCKS: usize = 1 << 16;

/// The parts of a range of numbers with the same function each, ascending; the function depends on no earlier word.
pub(crate) fn runs(
    space: &Space,
    function: Function,
    range: (u32, u32),
) -> Limited<Vec<(u32, u32)>> {
    let is_of_number = |variable: Variable| {
        (Variable::of_bit(Word::NR, 31)..=Variable::of_bit(Word::NR, 0)).contains(&variable)
    };
    let mut blocks = 0;
    let mut runs: Vec<(Function, (u32, u32))> = Vec::new();
    // Blocks of 2^bits numbers, the one with the smallest numbers last.
    let mut open = vec![(function, 0_u32, 32_u32)];
    while let Some((node, first, bits)) = open.pop() {
        let last = first | (u32::MAX.checked_shr(32 - bits).unwrap_or(0));
        let within = (first.max(range.0), last.min(range.1));
        if within.0 > within.1 {
            continue;
        }
        blocks += 1;
        if blocks > MAX_BLOCKS {
            return Err(LimitReached::Paths);
        }
        match (space.view(node), bits.checked_sub(1)) {
            (View::Branch { variable, .. }, Some(bit)) if is_of_number(variable) => {
                let (low, high) = space.cofactors(node, Variable::of_bit(Word::NR, bit));
                open.push((high, first | 1 << bit, bit));
                open.push((low, first, bit));
            }
            _ => match runs.last_mut() {
                Some((same, run)) if *same == node => run.1 = within.1,
                _ => runs.push((node, within)),
            },
        }
    }
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Arch};
    use tamis_prover::Limits;
    use tamis_rules::{IntervalSet, Predicate, Rule, Ruleset, Section};

    use super::*;

    #[test]
    fn runs_divide_a_range_at_each_change_of_the_function() {
        let rule = |numbers| Rule {
            syscalls: numbers,
            when: Predicate::True,
            action: Action::ALLOW,
            origin: None,
        };
        let allowed = [3..=3, 7..=8, 600..=0x3fff_ffff];
        let section = Section {
            arch: Arch::X86_64,
            rules: vec![rule(IntervalSet::from_iter(allowed))],
            default: Action::errno(1),
        };
        let ruleset = Ruleset::new(vec![section], Action::KILL_PROCESS).unwrap();
        let mut space = Space::new(Limits::default());
        let all = space.ruleset(&ruleset).unwrap();
        let audit = Arch::X86_64.audit();
        let own = tamis_analysis::with_word(&mut space, all, Word::ARCH, audit).unwrap();
        let divided = runs(&space, own, (2, 0x3fff_ffff)).unwrap();
        let changes = [(2, 2), (3, 3), (4, 6), (7, 8), (9, 599), (600, 0x3fff_ffff)];
        assert_eq!(divided, changes);
        assert_eq!(runs(&space, own, (7, 7)).unwrap(), [(7, 7)]);
    }
}
