//! Looking into functions: parts of them, their values, and inputs with wanted values.
//!
//! Comparing filters needs equality only. Tools that explain or criticise a filter ask other questions:
//! what happens to the calls of one number, which words matter there, is there a call that this filter
//! allows and that one refuses. They are answered on the diagrams, so they are about every input.

use std::collections::{BTreeSet, HashMap, HashSet};

use tamis_abi::{SeccompData, Word};

use crate::diagram::{LimitReached, Node, View};
use crate::order;
use crate::space::{Function, Space};
use crate::witness::Path;

/// What a search below some nodes came to.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Search {
    Found(SeccompData),
    /// No path leads to wanted values.
    Absent,
    /// Paths lead there, but no input was found that takes one.
    NoInput,
}

/// A search for an input with wanted values.
struct Hunt<'a> {
    functions: &'a [Function],
    wanted: &'a dyn Fn(&[u32]) -> bool,
    path: Path,
    /// Nodes below which nothing is wanted.
    absent: HashSet<Vec<Node>>,
    paths_left: usize,
}

impl Space {
    /// The function for inputs with this value in a word. It doesn't look at the word any more, so
    /// inputs that are found for it need not have the value; a comparison of the word with another one
    /// stays as it is.
    ///
    /// # Errors
    /// If the space is full.
    pub fn with_word(
        &mut self,
        function: Function,
        word: Word,
        value: u32,
    ) -> Result<Function, LimitReached> {
        self.with_bits(function, word, u32::MAX, value)
    }

    /// The same for those bits of a word that are in the mask: the function for inputs where they have
    /// the values of the same bits of `value`.
    ///
    /// # Errors
    /// If the space is full.
    pub fn with_bits(
        &mut self,
        function: Function,
        word: Word,
        mask: u32,
        value: u32,
    ) -> Result<Function, LimitReached> {
        let node = self.fix(function.0, word, (mask, value), &mut HashMap::new())?;
        Ok(Function(node))
    }

    fn fix(
        &mut self,
        node: Node,
        word: Word,
        (mask, value): (u32, u32),
        known: &mut HashMap<Node, Node>,
    ) -> Result<Node, LimitReached> {
        let View::Branch {
            variable,
            low,
            high,
        } = self.diagram.view(node)
        else {
            return Ok(node);
        };
        if variable > order::variable(word, 0) {
            return Ok(node);
        }
        if let Some(fixed) = known.get(&node) {
            return Ok(*fixed);
        }
        let fixed = match order::input_bit(variable) {
            Some((tested, bit)) if tested == word && mask >> bit & 1 == 1 => {
                let next = if value >> bit & 1 == 1 { high } else { low };
                self.fix(next, word, (mask, value), known)?
            }
            _ => {
                let low = self.fix(low, word, (mask, value), known)?;
                let high = self.fix(high, word, (mask, value), known)?;
                self.diagram.branch(variable, low, high)?
            }
        };
        known.insert(node, fixed);
        Ok(fixed)
    }

    /// The function that is 1 where a bit of a word is set and 0 elsewhere; bit 0 is the lowest.
    ///
    /// # Errors
    /// If the space is full.
    pub fn bit(&mut self, word: Word, bit: u32) -> Result<Function, LimitReached> {
        let variable = order::variable(word, bit & 31);
        self.diagram.variable(variable).map(Function)
    }

    /// The function that is `yes` where the condition is 1 and `no` where it is 0; the condition must
    /// have no other values.
    ///
    /// # Errors
    /// If the space is full.
    pub fn choose(
        &mut self,
        condition: Function,
        yes: Function,
        no: Function,
    ) -> Result<Function, LimitReached> {
        self.diagram.ite(condition.0, yes.0, no.0).map(Function)
    }

    /// The values of a function, ascending; some may belong to no input where words are compared with
    /// each other. Proportional to the diagram.
    pub fn values(&self, function: Function) -> BTreeSet<u32> {
        let mut values = BTreeSet::new();
        self.visit(function, &mut |view| {
            if let View::Leaf(value) = view {
                values.insert(value);
            }
        });
        values
    }

    /// The words that a function looks at. Proportional to the diagram.
    pub fn words(&self, function: Function) -> BTreeSet<Word> {
        let mut words = BTreeSet::new();
        self.visit(function, &mut |view| {
            let View::Branch { variable, .. } = view else {
                return;
            };
            match order::input_bit(variable) {
                Some((word, _)) => {
                    words.insert(word);
                }
                None => words.extend(self.relations.of_variable(variable).words()),
            }
        });
        words
    }

    fn visit(&self, function: Function, see: &mut impl FnMut(View)) {
        let mut seen = HashSet::from([function.0]);
        let mut waiting = vec![function.0];
        while let Some(node) = waiting.pop() {
            let view = self.diagram.view(node);
            see(view);
            if let View::Branch { low, high, .. } = view {
                waiting.extend([low, high].into_iter().filter(|next| seen.insert(*next)));
            }
        }
    }

    /// An input for which the values of these functions, in their order, are wanted; checked against
    /// all of them. Bits that don't matter are 0 where nothing else is needed. `None` if there is none,
    /// or none was found within [`Limits::max_paths`](crate::Limits::max_paths).
    pub fn find(
        &self,
        functions: &[Function],
        wanted: &dyn Fn(&[u32]) -> bool,
    ) -> Option<SeccompData> {
        let nodes = functions.iter().map(|function| function.0).collect();
        let mut hunt = Hunt {
            functions,
            wanted,
            path: Path::default(),
            absent: HashSet::new(),
            paths_left: self.limits.max_paths,
        };
        match self.hunt(nodes, &mut hunt) {
            Search::Found(data) => Some(data),
            Search::Absent | Search::NoInput => None,
        }
    }

    fn hunt(&self, nodes: Vec<Node>, hunt: &mut Hunt) -> Search {
        let views: Vec<View> = nodes.iter().map(|node| self.diagram.view(*node)).collect();
        let first = views.iter().filter_map(|view| match view {
            View::Branch { variable, .. } => Some(*variable),
            View::Leaf(_) => None,
        });
        let Some(variable) = first.min() else {
            return self.arrive(&views, hunt);
        };
        if hunt.absent.contains(&nodes) {
            return Search::Absent;
        }
        let (low, high): (Vec<Node>, Vec<Node>) = nodes
            .iter()
            .map(|node| self.diagram.cofactors(*node, variable))
            .unzip();
        let mut result = Search::Absent;
        for (value, next) in [(false, low), (true, high)] {
            hunt.path.taken.push((variable, value));
            let found = self.hunt(next, hunt);
            hunt.path.taken.pop();
            match found {
                Search::Found(_) => return found,
                Search::NoInput => result = Search::NoInput,
                Search::Absent => {}
            }
        }
        if matches!(result, Search::Absent) {
            hunt.absent.insert(nodes);
        }
        result
    }

    /// The end of a path.
    fn arrive(&self, leaves: &[View], hunt: &mut Hunt) -> Search {
        let value = |view: &View| match view {
            View::Leaf(value) => Some(*value),
            View::Branch { .. } => None,
        };
        let values: Vec<u32> = leaves.iter().filter_map(value).collect();
        if !(hunt.wanted)(&values) {
            return Search::Absent;
        }
        if hunt.paths_left == 0 {
            return Search::NoInput;
        }
        hunt.paths_left -= 1;
        let Some(data) = self.input_on(&hunt.path) else {
            return Search::NoInput;
        };
        let values: Vec<u32> = hunt
            .functions
            .iter()
            .map(|function| self.value(*function, &data))
            .collect();
        if (hunt.wanted)(&values) {
            Search::Found(data)
        } else {
            Search::NoInput
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::{Action, Arch, ArgIndex};
    use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Rule, Ruleset, Section, Test};

    use super::*;
    use crate::space::Limits;

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
        let function = space.with_word(function, Word::ARCH, arch).unwrap();
        space.with_word(function, Word::NR, 0).unwrap()
    }

    #[test]
    fn a_part_has_the_values_and_words_of_its_call() {
        let mut space = Space::new(Limits::default());
        let when = Predicate::compare(Operand::arg_low(FIRST), CmpOp::Eq, 7);
        let function = read_if(&mut space, when);
        let read = read_of(&mut space, function);
        let values: Vec<u32> = space.values(read).into_iter().collect();
        assert_eq!(values, [Action::KILL_THREAD.ret(), Action::ALLOW.ret()]);
        let words: Vec<Word> = space.words(read).into_iter().collect();
        assert_eq!(words, [Word::arg_low(FIRST)]);
        let seven = space.with_word(read, Word::arg_low(FIRST), 7).unwrap();
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
        let data = space.find(&[narrow, wide], &differs).unwrap();
        assert_eq!((data.nr, data.arch), (0, Arch::X86_64.audit()));
        assert_eq!(data.args[0] as u32, 7);
        assert_ne!(data.args[0], 7);
        assert_eq!(space.find(&[wide, narrow], &differs), None);
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
        assert!(space.find(&[function], &allowed).is_some());
        let impossible = [between(CmpOp::Gt), one, other];
        let function = read_if(&mut space, Predicate::All(impossible.to_vec()));
        assert_eq!(space.find(&[function], &allowed), None);
    }

    #[test]
    fn a_choice_takes_each_side_where_its_condition_says() {
        let mut space = Space::new(Limits::default());
        let bit = space.bit(Word::NR, 0).unwrap();
        let (five, six) = (space.constant(5).unwrap(), space.constant(6).unwrap());
        let chosen = space.choose(bit, five, six).unwrap();
        let at = |nr| SeccompData {
            nr,
            ..SeccompData::default()
        };
        assert_eq!(space.value(chosen, &at(1)), 5);
        assert_eq!(space.value(chosen, &at(2)), 6);
    }
}
