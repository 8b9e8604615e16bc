//! Differences: where two functions answer differently, grouped as cases are.
//!
//! Both diagrams are walked at once to one whose leaves are the pairs of answers; its cases are the
//! differences. Comparisons of arguments with each other may be told apart in ways that no input can take:
//! a difference without an example may be one of those.

use std::collections::BTreeMap;

use tamis_abi::SeccompData;
use tamis_rules::{IntervalSet, Predicate};

use crate::cases::{CaseLimits, Machine};
use crate::condition::Conditions;
use crate::diagram::{FALSE, LimitReached, Node, View};
use crate::space::{Function, Space};

/// Calls that two functions answer differently, all of them in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Whose calls.
    pub machine: Machine,
    /// Which calls.
    pub numbers: IntervalSet<u32>,
    /// Under which condition; `None` if it can't be said within the limits.
    pub when: Option<Predicate>,
    /// What the left function returns.
    pub left_ret: u32,
    /// What the right function returns.
    pub right_ret: u32,
    /// One of the calls; `None` if none was found, which is possible only where words are compared with
    /// each other.
    pub example: Option<SeccompData>,
}

/// Where two functions differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences {
    /// By architecture, then by the smallest number.
    pub list: Vec<Difference>,
    /// Whether the list has all of them; otherwise a limit was reached and there are more.
    pub is_complete: bool,
}

/// The pairs of different answers; a leaf of the walked diagram is a number in it, from 1.
#[derive(Default)]
struct Pairs {
    list: Vec<(u32, u32)>,
    numbers: BTreeMap<(u32, u32), u32>,
}

impl Space {
    /// Where two functions of this space differ, by architecture, number and arguments.
    ///
    /// # Errors
    /// If the space is full.
    pub fn differences(
        &mut self,
        left: Function,
        right: Function,
        limits: &CaseLimits,
    ) -> Result<Differences, LimitReached> {
        let mut pairs = Pairs::default();
        let walked = self.paired(left.0, right.0, &mut pairs, &mut BTreeMap::new())?;
        let (groups, mut is_complete) = self.groups(Function(walked), limits);
        let mut conditions = Conditions::new(limits.max_tests);
        let mut list = Vec::new();
        for group in groups {
            let (outcomes, all) = self.outcomes(group.node, limits.max_outcomes);
            is_complete &= all;
            for outcome in outcomes.into_iter().filter(|outcome| *outcome != 0) {
                if list.len() == limits.max_cases {
                    return Ok(Differences {
                        list,
                        is_complete: false,
                    });
                }
                let (left_ret, right_ret) = pairs.list[outcome as usize - 1];
                let holds = self.returns(group.node, outcome)?;
                let calls = self.calls_in(&group.machine, &group.numbers)?;
                let here = self.diagram.ite(calls, holds, FALSE)?;
                list.push(Difference {
                    machine: group.machine.clone(),
                    numbers: group.numbers.clone(),
                    when: conditions.of(self, holds)?,
                    left_ret,
                    right_ret,
                    example: self.witness(Function(here), Function(FALSE)),
                });
            }
        }
        Ok(Differences { list, is_complete })
    }

    /// The diagram of the pairs of answers; 0 where they are the same.
    fn paired(
        &mut self,
        left: Node,
        right: Node,
        pairs: &mut Pairs,
        known: &mut BTreeMap<(Node, Node), Node>,
    ) -> Result<Node, LimitReached> {
        if left == right {
            return Ok(FALSE);
        }
        if let Some(result) = known.get(&(left, right)) {
            return Ok(*result);
        }
        let result = match (self.diagram.view(left), self.diagram.view(right)) {
            (View::Leaf(left), View::Leaf(right)) => {
                let number = pairs.number(left, right);
                self.diagram.leaf(number)?
            }
            _ => {
                let variable = self.diagram.top(left).min(self.diagram.top(right));
                let (left_low, left_high) = self.diagram.cofactors(left, variable);
                let (right_low, right_high) = self.diagram.cofactors(right, variable);
                let low = self.paired(left_low, right_low, pairs, known)?;
                let high = self.paired(left_high, right_high, pairs, known)?;
                self.diagram.branch(variable, low, high)?
            }
        };
        known.insert((left, right), result);
        Ok(result)
    }
}

impl Pairs {
    fn number(&mut self, left: u32, right: u32) -> u32 {
        *self.numbers.entry((left, right)).or_insert_with(|| {
            self.list.push((left, right));
            self.list.len() as u32
        })
    }
}
