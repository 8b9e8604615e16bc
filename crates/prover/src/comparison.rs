//! Comparing two functions: the pairs of different return values, and which function is stricter.
//!
//! Both functions are walked together into one whose leaves are pairs of different values. All results are derived
//! from that function: the two are equal if there is no pair, one is stricter if all pairs are, and a scope removes
//! pairs or calls.

use std::cmp::Ordering;

use tamis_abi::hash::WordHashMap;
use tamis_abi::{Action, ActionKind, Arch, Word, syscall};
use tamis_rules::{Input, IntervalSet, Section};

use crate::diagram::{FALSE, LimitReached, Node, TRUE, View};
use crate::order;
use crate::space::{Function, Space};

/// The most pairs of different return values that are listed. Filters that return computed values have any number, and
/// the first is as informative as the others.
const MAX_PAIRS: usize = 500;

/// The calls and the parts of return values that are compared. By default all calls, and the whole values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only calls of these architectures; if empty, of all audit values. x86_64 and x32 have only their own
    /// numbers.
    pub arches: Vec<Arch>,
    /// Only numbers below 2^30: without those of x32, and without the -1 of tracers that skip a call.
    pub native_only: bool,
    /// Only the kind of action: its data is ignored, and so is the difference between killing the process and the
    /// thread.
    pub actions_only: bool,
}

/// Two different return values for a call, one of each function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The return value of the first function.
    pub left: u32,
    /// The return value of the second.
    pub right: u32,
    /// A call with these values. `None` if none was found within the limits; possibly none exists.
    pub example: Option<Input>,
}

/// Two functions, compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    function: Function,
    /// The pairs by the value of the leaf; 0 means equal values.
    answers: Vec<(u32, u32)>,
    pairs: Vec<Pair>,
}

/// The result of a comparison of a first function, the subject, with a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonResult {
    /// They are equal.
    Equal,
    /// They have the same action for all calls, but not always the same data.
    SameActions,
    /// The first never has a looser action, and for some call a stricter one.
    Stricter,
    /// The first never has a stricter action, and for some call a looser one.
    Looser,
    /// Each is stricter for some call.
    Incomparable,
}

impl ComparisonResult {
    /// The result for one pair of different values: less if the first is stricter.
    pub const fn of_pair(strictness: Ordering) -> ComparisonResult {
        match strictness {
            Ordering::Less => ComparisonResult::Stricter,
            Ordering::Equal => ComparisonResult::SameActions,
            Ordering::Greater => ComparisonResult::Looser,
        }
    }

    /// The combined result of pairs.
    pub fn of_pairs(pairs: &[Pair]) -> ComparisonResult {
        combined_result(pairs.iter())
    }

    /// Combines two results, each for a part of the calls.
    ///
    /// ```
    /// use tamis_prover::ComparisonResult::{Equal, Incomparable, Looser, SameActions, Stricter};
    /// assert_eq!(Equal.and(SameActions).and(Stricter), Stricter);
    /// assert_eq!(Stricter.and(Looser), Incomparable);
    /// ```
    #[must_use]
    pub fn and(self, other: ComparisonResult) -> ComparisonResult {
        match (self, other) {
            (ComparisonResult::Equal, result) | (result, ComparisonResult::Equal) => result,
            (ComparisonResult::SameActions, result) | (result, ComparisonResult::SameActions) => {
                result
            }
            (result, other) if result == other => result,
            _ => ComparisonResult::Incomparable,
        }
    }
}

impl Scope {
    /// Whether a call is among those that are compared.
    pub fn has(&self, input: &Input) -> bool {
        let (nr, arch) = (input.data.nr, input.data.arch);
        let is_of = |known: &Arch| known.audit() == arch && Section::domain(*known).contains(nr);
        (self.arches.is_empty() || self.arches.iter().any(is_of))
            && !(self.native_only && nr >= 1 << 30)
    }

    /// Whether two return values count as equal.
    pub fn is_same(&self, left: u32, right: u32) -> bool {
        let without_data = |ret: u32| match Action::from_ret(ret).kind {
            ActionKind::KillThread => ActionKind::KillProcess,
            kind => kind,
        };
        left == right || self.actions_only && without_data(left) == without_data(right)
    }
}

impl Pair {
    /// The order of the two values by strictness: less if the first is stricter. The kernel's order of actions,
    /// without data.
    pub fn strictness(&self) -> Ordering {
        let place = |ret: u32| Action::from_ret(ret).kind.ret().cast_signed();
        place(self.left).cmp(&place(self.right))
    }
}

impl Comparison {
    /// The pairs of different values that occur, ascending.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The function from calls to pairs: 0 if the values count as equal, else an argument for
    /// [`answers`](Self::answers).
    pub fn function(&self) -> Function {
        self.function
    }

    /// The return values of the two functions for a value of [`function`](Self::function) other than 0.
    ///
    /// # Panics
    /// If the function never has this value.
    pub fn answers(&self, value: u32) -> (u32, u32) {
        assert_ne!(value, 0, "0 stands for all equal answers");
        self.answers[value as usize]
    }

    /// The result; `None` if it depends on a pair without an example.
    pub fn result(&self) -> Option<ComparisonResult> {
        let all = combined_result(self.pairs.iter());
        let sure = combined_result(self.pairs.iter().filter(|pair| pair.example.is_some()));
        (all == sure).then_some(all)
    }
}

/// The combined result of pairs.
pub(crate) fn combined_result<'a>(pairs: impl Iterator<Item = &'a Pair>) -> ComparisonResult {
    let each = pairs.map(|pair| ComparisonResult::of_pair(pair.strictness()));
    each.fold(ComparisonResult::Equal, ComparisonResult::and)
}

impl Space {
    /// Compares two functions for the calls of a scope.
    ///
    /// # Errors
    /// If the space is full, or there are more than 500 pairs.
    pub fn comparison(
        &mut self,
        left: Function,
        right: Function,
        scope: &Scope,
    ) -> Result<Comparison, LimitReached> {
        let (function, answers) = self.differences(left, right, scope, Leaves::Pairs)?;
        let mut pairs = Vec::new();
        for (value, example) in self.examples(function)? {
            let (left, right) = answers[value as usize];
            pairs.push(Pair {
                left,
                right,
                example,
            });
        }
        pairs.sort_by_key(|pair| (pair.left, pair.right));
        Ok(Comparison {
            function,
            answers,
            pairs,
        })
    }

    /// Compares two functions by strictness alone, for filters with more pairs of values than are listed: a pair of
    /// each strictness that occurs, with a call. Without one, the values are those of other calls.
    ///
    /// # Errors
    /// If the space is full.
    pub fn strictness(
        &mut self,
        left: Function,
        right: Function,
        scope: &Scope,
    ) -> Result<Vec<Pair>, LimitReached> {
        let (function, answers) = self.differences(left, right, scope, Leaves::Strictness)?;
        let examples = self.examples(function)?.into_iter();
        let pairs = examples.map(|(value, example)| {
            let known = answers[value as usize];
            let of_example = |input| (self.value(left, &input), self.value(right, &input));
            let (left, right) = example.map_or(known, of_example);
            Pair {
                left,
                right,
                example,
            }
        });
        Ok(pairs.collect())
    }

    /// The function to the places of pairs in a list, 0 if the values count as equal.
    fn differences(
        &mut self,
        left: Function,
        right: Function,
        scope: &Scope,
        leaves: Leaves,
    ) -> Result<(Function, Vec<(u32, u32)>), LimitReached> {
        let mut walk = Walk {
            scope,
            leaves,
            known: WordHashMap::default(),
            answers: vec![(0, 0)],
        };
        let everywhere = walk.pairs(self, left.0, right.0)?;
        let domain = self.domain(scope)?;
        let node = self.diagram.ite(domain, everywhere, FALSE)?;
        Ok((Function(node), walk.answers))
    }

    /// The values of a function other than 0, each with an input, familiar if possible.
    fn examples(&mut self, function: Function) -> Result<Vec<(u32, Option<Input>)>, LimitReached> {
        let familiar = self.familiar()?;
        let mut examples = Vec::new();
        for value in self.values(function) {
            if value != 0 {
                let holds = self.returns(function, value)?.0;
                examples.push((value, self.preferred_example(holds, &familiar)?));
            }
        }
        Ok(examples)
    }

    /// The conditions that a call is well known, the best known first.
    fn familiar(&mut self) -> Result<[Node; 2], LimitReached> {
        let mut any = FALSE;
        for arch in Arch::all() {
            let calls = self.calls_with_names(arch)?;
            any = self.diagram.ite(calls, TRUE, any)?;
        }
        Ok([self.calls_with_names(Arch::X86_64)?, any])
    }

    /// The condition that a call is an architecture's, up to the last number with a name.
    fn calls_with_names(&mut self, arch: Arch) -> Result<Node, LimitReached> {
        let last = syscall::last(arch).map_or(0, |nr| nr.0);
        let numbers = Section::domain(arch).intersection(&IntervalSet::from_iter([0..=last]));
        self.calls(&IntervalSet::single(arch.audit()), &numbers)
            .map(|calls| calls.0)
    }

    /// A call for which a condition holds, familiar if possible.
    fn preferred_example(
        &mut self,
        holds: Node,
        familiar: &[Node],
    ) -> Result<Option<Input>, LimitReached> {
        for calls in familiar {
            let both = self.diagram.ite(*calls, holds, FALSE)?;
            if let Some(example) = self.witness(Function(both), Function(FALSE)) {
                return Ok(Some(example));
            }
        }
        Ok(self.witness(Function(holds), Function(FALSE)))
    }

    /// The condition that a call is in the scope.
    fn domain(&mut self, scope: &Scope) -> Result<Node, LimitReached> {
        let mut domain = if scope.arches.is_empty() { TRUE } else { FALSE };
        for arch in &scope.arches {
            let audit = IntervalSet::single(arch.audit());
            let calls = self.calls(&audit, &Section::domain(*arch))?;
            domain = self.diagram.ite(calls.0, TRUE, domain)?;
        }
        if scope.native_only {
            for bit in [30, 31] {
                let is_set = self.diagram.variable(order::variable(Word::NR, bit))?;
                domain = self.diagram.ite(is_set, FALSE, domain)?;
            }
        }
        Ok(domain)
    }
}

/// The distinctions of a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Pairs,
    Strictness,
}

/// A simultaneous walk over two functions.
struct Walk<'a> {
    scope: &'a Scope,
    leaves: Leaves,
    known: WordHashMap<(Node, Node), Node>,
    answers: Vec<(u32, u32)>,
}

impl Walk<'_> {
    /// The function of pairs, 0 if the values are equal.
    fn pairs(&mut self, space: &mut Space, left: Node, right: Node) -> Result<Node, LimitReached> {
        if left == right {
            return Ok(FALSE);
        }
        if let Some(node) = self.known.get(&(left, right)) {
            return Ok(*node);
        }
        space.diagram.count_step()?;
        let diagram = &space.diagram;
        let node = match (diagram.view(left), diagram.view(right)) {
            (View::Leaf(left), View::Leaf(right)) if self.scope.is_same(left, right) => FALSE,
            (View::Leaf(left), View::Leaf(right)) => {
                let place = self.place(left, right)?;
                space.diagram.leaf(place)?
            }
            _ => {
                let variable = diagram.top(left).min(diagram.top(right));
                let (left_low, left_high) = diagram.cofactors(left, variable);
                let (right_low, right_high) = diagram.cofactors(right, variable);
                let low = self.pairs(space, left_low, right_low)?;
                let high = self.pairs(space, left_high, right_high)?;
                space.diagram.branch(variable, low, high)?
            }
        };
        self.known.insert((left, right), node);
        Ok(node)
    }

    /// The place of a pair of different values in the list.
    fn place(&mut self, left: u32, right: u32) -> Result<u32, LimitReached> {
        let strictness = |left, right| {
            let example = None;
            Pair {
                left,
                right,
                example,
            }
            .strictness()
        };
        if self.leaves == Leaves::Strictness {
            let wanted = strictness(left, right);
            let mut known = self.answers.iter().skip(1);
            if let Some(place) = known.position(|known| strictness(known.0, known.1) == wanted) {
                return Ok(place as u32 + 1);
            }
        } else if self.answers.len() > MAX_PAIRS {
            return Err(LimitReached::Pairs);
        }
        self.answers.push((left, right));
        Ok(self.answers.len() as u32 - 1)
    }
}
