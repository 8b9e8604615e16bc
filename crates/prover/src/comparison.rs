//! Comparing two functions: the pairs of different return values, and which function is stricter.
//!
//! Both functions are walked together into one whose leaves are pairs of different values. All results are derived
//! from that function: the two are equal if there is no pair, one is stricter if all pairs are, and a scope removes
//! pairs or calls.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use tamis_abi::{Action, ActionKind, Arch, Word, syscall};
use tamis_rules::{Input, IntervalSet, Section};

use crate::diagram::{FALSE, LimitReached, Node, TRUE, View};
use crate::order;
use crate::space::{Function, Space};

/// The calls and the parts of return values that are compared. By default all calls, and the whole values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only calls of these architectures; if empty, of all audit values. x86_64 and x32 have only their own
    /// numbers.
    pub arches: Vec<Arch>,
    /// Only numbers below 2^30: without those of x32, and the -1 with which a tracer skips a call.
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

/// Whether two return values count as equal.
fn is_same(left: u32, right: u32, scope: &Scope) -> bool {
    let without_data = |ret: u32| match Action::from_ret(ret).kind {
        ActionKind::KillThread => ActionKind::KillProcess,
        kind => kind,
    };
    left == right || scope.actions_only && without_data(left) == without_data(right)
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
    /// If the space is full.
    pub fn comparison(
        &mut self,
        left: Function,
        right: Function,
        scope: &Scope,
    ) -> Result<Comparison, LimitReached> {
        let mut walk = Walk {
            scope,
            known: BTreeMap::new(),
            answers: vec![(0, 0)],
        };
        let everywhere = walk.pairs(self, left.0, right.0)?;
        let domain = self.domain(scope)?;
        let node = self.diagram.ite(domain, everywhere, FALSE)?;
        let function = Function(node);
        let familiar = self.familiar()?;
        let mut pairs = Vec::new();
        for value in self
            .values(function)
            .into_iter()
            .filter(|value| *value != 0)
        {
            let (left_ret, right_ret) = walk.answers[value as usize];
            let holds = self.returns(function, value)?.0;
            pairs.push(Pair {
                left: left_ret,
                right: right_ret,
                example: self.preferred_example(holds, &familiar)?,
            });
        }
        pairs.sort_by_key(|pair| (pair.left, pair.right));
        Ok(Comparison {
            function,
            answers: walk.answers,
            pairs,
        })
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

/// A simultaneous walk over two functions.
struct Walk<'a> {
    scope: &'a Scope,
    known: BTreeMap<(Node, Node), Node>,
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
            (View::Leaf(left), View::Leaf(right)) if is_same(left, right, self.scope) => FALSE,
            (View::Leaf(left), View::Leaf(right)) => {
                self.answers.push((left, right));
                space.diagram.leaf(self.answers.len() as u32 - 1)?
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
}
