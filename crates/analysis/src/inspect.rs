//! Inspecting functions: parts of them, their values, and inputs with wanted values.
//!
//! Comparing filters needs only equality. Tools that explain or check a filter need more: the function of the calls
//! of one number, the words that matter there, a call that one filter allows and another denies. All are computed
//! on the diagrams, so they cover every input.

use std::collections::{BTreeSet, HashMap, HashSet};

use tamis_abi::Word;
use tamis_prover::{Function, LimitReached, Space, Variable, VariableKind, View};
use tamis_rules::Input;

/// The result of a search below some nodes.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Search {
    Found(Input),
    /// No path leads to wanted values.
    Absent,
    /// Paths lead there, but no input was found that takes one.
    NoInput,
}

/// A search for an input with wanted values.
struct Hunt<'a, const N: usize> {
    space: &'a Space,
    functions: &'a [Function; N],
    wanted: &'a dyn Fn(&[u32]) -> bool,
    /// The branches taken so far.
    path: Vec<(Variable, bool)>,
    /// Nodes without wanted values below them.
    absent: HashSet<[Function; N]>,
    paths_left: usize,
    /// The count of visited nodes.
    visits: usize,
}

/// The interval of checks for cancellation, in visits of nodes.
const VISITS_BETWEEN_CHECKS: usize = 1 << 10;

/// The function for inputs with this value in a word. It no longer depends on the word, so inputs found for it need
/// not have the value; a comparison of the word with another one is unchanged.
///
/// # Errors
/// If the space is full.
pub fn with_word(
    space: &mut Space,
    function: Function,
    word: Word,
    value: u32,
) -> Result<Function, LimitReached> {
    with_bits(space, function, word, u32::MAX, value)
}

/// The same for the bits of a word in the mask: the function for inputs in which they have the values of the same
/// bits of `value`.
///
/// # Errors
/// If the space is full.
pub fn with_bits(
    space: &mut Space,
    function: Function,
    word: Word,
    mask: u32,
    value: u32,
) -> Result<Function, LimitReached> {
    fix(space, function, word, (mask, value), &mut HashMap::new())
}

fn fix(
    space: &mut Space,
    node: Function,
    word: Word,
    (mask, value): (u32, u32),
    known: &mut HashMap<Function, Function>,
) -> Result<Function, LimitReached> {
    let View::Branch {
        variable,
        low,
        high,
    } = space.view(node)
    else {
        return Ok(node);
    };
    if variable > Variable::of_bit(word, 0) {
        return Ok(node);
    }
    if let Some(fixed) = known.get(&node) {
        return Ok(*fixed);
    }
    if let VariableKind::Bit(tested, bit) = space.kind(variable)
        && tested == word
        && mask >> bit & 1 == 1
    {
        // To follow at most 32 bits again costs less than to remember each.
        let next = if value >> bit & 1 == 1 { high } else { low };
        return fix(space, next, word, (mask, value), known);
    }
    let low = fix(space, low, word, (mask, value), known)?;
    let high = fix(space, high, word, (mask, value), known)?;
    let fixed = space.branch(variable, low, high)?;
    known.insert(node, fixed);
    Ok(fixed)
}

/// The words on which a function depends. Proportional to the diagram.
pub fn words(space: &Space, function: Function) -> BTreeSet<Word> {
    let mut words = BTreeSet::new();
    visit(space, function, &mut |view| {
        let View::Branch { variable, .. } = view else {
            return;
        };
        match space.kind(variable) {
            VariableKind::Bit(word, _) => {
                words.insert(word);
            }
            VariableKind::Relation(relation) => words.extend(relation.words()),
        }
    });
    words
}

fn visit(space: &Space, function: Function, see: &mut impl FnMut(View)) {
    let mut seen = HashSet::from([function]);
    let mut waiting = vec![function];
    while let Some(node) = waiting.pop() {
        let view = space.view(node);
        see(view);
        if let View::Branch { low, high, .. } = view {
            waiting.extend([low, high].into_iter().filter(|next| seen.insert(*next)));
        }
    }
}

/// An input for which the values of these functions, in their order, are wanted; checked against all of them. Other
/// bits are 0 unless needed. `None` if there is none; where several comparisons of two words only have to differ,
/// one may be missed.
///
/// # Errors
/// If more than [`Limits::max_paths`](tamis_prover::Limits::max_paths) paths with comparisons of two words had to be
/// solved, or the caller has cancelled.
pub fn find<const N: usize>(
    space: &Space,
    functions: &[Function; N],
    wanted: &dyn Fn(&[u32]) -> bool,
) -> Result<Option<Input>, LimitReached> {
    let mut hunt = Hunt {
        space,
        functions,
        wanted,
        path: Vec::new(),
        absent: HashSet::new(),
        paths_left: space.limits().max_paths,
        visits: 0,
    };
    match hunt.search(*functions)? {
        Search::Found(input) => Ok(Some(input)),
        Search::Absent | Search::NoInput => Ok(None),
    }
}

impl<const N: usize> Hunt<'_, N> {
    /// Continues from the current nodes of the functions.
    fn search(&mut self, nodes: [Function; N]) -> Result<Search, LimitReached> {
        self.visits += 1;
        if self.visits.is_multiple_of(VISITS_BETWEEN_CHECKS) {
            self.space.check_stop()?;
        }
        let views = nodes.map(|node| self.space.view(node));
        let first = views.iter().filter_map(|view| match view {
            View::Branch { variable, .. } => Some(*variable),
            View::Leaf(_) => None,
        });
        let Some(variable) = first.min() else {
            return Ok(self.arrive(&views));
        };
        if self.absent.contains(&nodes) {
            return Ok(Search::Absent);
        }
        let cofactors = nodes.map(|node| self.space.cofactors(node, variable));
        let low = cofactors.map(|(low, _)| low);
        let high = cofactors.map(|(_, high)| high);
        let mut result = Search::Absent;
        for (value, next) in [(false, low), (true, high)] {
            self.path.push((variable, value));
            let found = match self.is_open(variable)? {
                true => self.search(next)?,
                false => Search::NoInput,
            };
            self.path.pop();
            match found {
                Search::Found(_) => return Ok(found),
                Search::NoInput => result = Search::NoInput,
                Search::Absent => {}
            }
        }
        if matches!(result, Search::Absent) {
            self.absent.insert(nodes);
        }
        Ok(result)
    }

    /// Whether the path, which ends with this variable, may have an input. One that ends in a comparison of two words
    /// is solved, so that a contradiction ends it, and counted.
    fn is_open(&mut self, variable: Variable) -> Result<bool, LimitReached> {
        if matches!(self.space.kind(variable), VariableKind::Bit(..)) {
            return Ok(true);
        }
        self.paths_left = self.paths_left.checked_sub(1).ok_or(LimitReached::Paths)?;
        self.space.check_stop()?;
        Ok(self.space.input_on(&self.path).is_some())
    }

    /// The end of a path: all views are leaves.
    fn arrive(&mut self, leaves: &[View; N]) -> Search {
        let value = |view: View| match view {
            View::Leaf(value) => value,
            View::Branch { .. } => unreachable!("a branch has a variable"),
        };
        let values = leaves.map(value);
        if !(self.wanted)(&values) {
            return Search::Absent;
        }
        let Some(input) = self.space.input_on(&self.path) else {
            return Search::NoInput;
        };
        let values = self
            .functions
            .map(|function| self.space.value(function, &input));
        if (self.wanted)(&values) {
            Search::Found(input)
        } else {
            Search::NoInput
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Arch, ArgIndex};
    use tamis_prover::Limits;
    use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};

    use super::*;

    const FIRST: ArgIndex = ArgIndex::ALL[0];

    /// `read` is allowed if the condition holds, everything else is killed.
    fn read_if(space: &mut Space, when: Predicate) -> Function {
        let rule = Rule {
            syscalls: IntervalSet::single(0),
            when,
            action: Action::ALLOW,
            origin: None,
        };
        let section = Section {
            arch: Arch::X86_64,
            rules: vec![rule],
            default: Action::KILL_THREAD,
        };
        let ruleset = Ruleset::new(vec![section], Action::KILL_THREAD).unwrap();
        space.ruleset(&ruleset).unwrap()
    }

    fn read_of(space: &mut Space, function: Function) -> Function {
        let arch = Arch::X86_64.audit();
        let function = with_word(space, function, Word::ARCH, arch).unwrap();
        with_word(space, function, Word::NR, 0).unwrap()
    }

    #[test]
    fn a_part_has_the_values_and_words_of_its_call() {
        let mut space = Space::new(Limits::default());
        let when = Predicate::compare(Operand::arg_low(FIRST), CmpOp::Eq, 7);
        let function = read_if(&mut space, when);
        let read = read_of(&mut space, function);
        let values: Vec<u32> = space.values(read).into_iter().collect();
        assert_eq!(values, [Action::KILL_THREAD.ret(), Action::ALLOW.ret()]);
        let words: Vec<Word> = words(&space, read).into_iter().collect();
        assert_eq!(words, [Word::arg_low(FIRST)]);
        let seven = with_word(&mut space, read, Word::arg_low(FIRST), 7).unwrap();
        assert_eq!(space.values(seven), BTreeSet::from([Action::ALLOW.ret()]));
    }

    #[test]
    fn an_input_is_found_that_one_function_allows_and_the_other_does_not() {
        let mut space = Space::new(Limits::default());
        let narrow = read_if(
            &mut space,
            Predicate::compare(Operand::arg(FIRST), CmpOp::Eq, 7),
        );
        let wide = read_if(
            &mut space,
            Predicate::compare(Operand::arg_low(FIRST), CmpOp::Eq, 7),
        );
        let differs = |values: &[u32]| values[0] == 0 && values[1] != 0;
        let data = find(&space, &[narrow, wide], &differs)
            .unwrap()
            .unwrap()
            .data;
        assert_eq!((data.nr, data.arch), (0, Arch::X86_64.audit()));
        assert_eq!(data.args[0] as u32, 7);
        assert_ne!(data.args[0], 7);
        assert_eq!(find(&space, &[wide, narrow], &differs), Ok(None));
    }

    #[test]
    fn contradicting_comparisons_give_no_input() {
        let mut space = Space::new(Limits::default());
        let between = |op| {
            Predicate::Test(Test::Between {
                left: Operand::arg_low(FIRST),
                op,
                right: Operand::arg_low(ArgIndex::ALL[1]),
            })
        };
        let one = Predicate::compare(Operand::arg_low(FIRST), CmpOp::Eq, 1);
        let other = Predicate::compare(Operand::arg_low(ArgIndex::ALL[1]), CmpOp::Eq, 2);
        let possible = [between(CmpOp::Lt), one.clone(), other.clone()];
        let function = read_if(&mut space, Predicate::All(possible.to_vec()));
        let allowed = |values: &[u32]| values[0] != 0;
        assert!(find(&space, &[function], &allowed).unwrap().is_some());
        let impossible = [between(CmpOp::Gt), one, other];
        let function = read_if(&mut space, Predicate::All(impossible.to_vec()));
        assert_eq!(find(&space, &[function], &allowed), Ok(None));
    }
}
