//! Functions that are composed of those of filters, for results that diagrams can't hold.

use tamis_abi::{Action, ActionKind};
use tamis_rules::Input;

use super::graph::{Gate, Gates};
use super::words::Bits;
use super::{Circuit, function, strictness, words};
use crate::comparison::Scope;
use crate::diagram::Limited;
use crate::space::Limits;
use crate::stop::Stop;
use crate::subject::Subject;

/// A function of a call, from the functions of filters.
pub enum Composed<'a> {
    /// The return value of a filter.
    Filter(Subject<'a>),
    /// The value with the looser action; the newer one if both have the same.
    Looser {
        /// One value.
        older: Box<Composed<'a>>,
        /// The other.
        newer: Box<Composed<'a>>,
    },
    /// The older value, but another one if the actions of both execute the call.
    Without {
        /// The value that is kept.
        older: Box<Composed<'a>>,
        /// The one that only removes.
        newer: Box<Composed<'a>>,
        /// The value for calls that both execute.
        removed: Box<Composed<'a>>,
    },
    /// The value that two filters agree on, or else another one: that of the rules of a ruleset, if the two have these
    /// rules and different defaults.
    Agreed {
        /// The two filters.
        two: [Subject<'a>; 2],
        /// The value where they disagree.
        otherwise: Box<Composed<'a>>,
    },
}

impl Composed<'_> {
    /// An input for which a filter returns another value; `None` if there is none.
    ///
    /// # Errors
    /// If there are too many gates, the solver reaches its limit, or the caller stops.
    pub fn difference(
        &self,
        filter: &Subject<'_>,
        limits: &Limits,
        stop: &Stop,
    ) -> Limited<Option<Input>> {
        let mut gates = Gates::new(limits.max_gates, stop.clone());
        let left = function(&mut gates, filter)?;
        let right = self.value(&mut gates)?;
        let mut circuit = Circuit {
            gates,
            left,
            right,
            max_conflicts: limits.max_conflicts,
            stop,
        };
        let differ = circuit.difference()?;
        circuit.input_for(differ)
    }

    /// The value for one input, by the evaluators of the filters.
    pub fn answer(&self, input: &Input) -> u32 {
        let kind = |ret| Action::from_ret(ret).kind;
        match self {
            Composed::Filter(subject) => subject.answer(input),
            Composed::Looser { older, newer } => {
                let (older, newer) = (older.answer(input), newer.answer(input));
                if kind(older) > kind(newer) {
                    older
                } else {
                    newer
                }
            }
            Composed::Without {
                older,
                newer,
                removed,
            } => {
                let (older, newer) = (older.answer(input), newer.answer(input));
                match kind(older).executes() && kind(newer).executes() {
                    true => removed.answer(input),
                    false => older,
                }
            }
            Composed::Agreed { two, otherwise } => {
                let [one, other] = two.each_ref().map(|own| own.answer(input));
                if one == other {
                    one
                } else {
                    otherwise.answer(input)
                }
            }
        }
    }

    fn value(&self, gates: &mut Gates) -> Limited<Bits> {
        match self {
            Composed::Filter(subject) => function(gates, subject),
            Composed::Looser { older, newer } => {
                let (older, newer) = (older.value(gates)?, newer.value(gates)?);
                let scope = Scope::default();
                let older_rank = strictness(gates, &older, &scope)?;
                let newer_rank = strictness(gates, &newer, &scope)?;
                let is_older = words::greater(gates, &older_rank, &newer_rank, Gate::FALSE)?;
                words::select(gates, is_older, &older, &newer)
            }
            Composed::Without {
                older,
                newer,
                removed,
            } => {
                let (older, newer) = (older.value(gates)?, newer.value(gates)?);
                let removed = removed.value(gates)?;
                let [one, other] = [executes(gates, &older)?, executes(gates, &newer)?];
                let both = gates.and(one, other)?;
                words::select(gates, both, &removed, &older)
            }
            Composed::Agreed { two, otherwise } => {
                let one = function(gates, &two[0])?;
                let other = function(gates, &two[1])?;
                let agree = words::equal(gates, &one, &other)?;
                let otherwise = otherwise.value(gates)?;
                words::select(gates, agree, &one, &otherwise)
            }
        }
    }
}

/// The condition that the action of a return value executes the call.
fn executes(gates: &mut Gates, ret: &Bits) -> Limited<Gate> {
    let mut action = *ret;
    action[..16].fill(Gate::FALSE);
    let mut holds = Gate::FALSE;
    for kind in ActionKind::ALL {
        if kind.executes() {
            let is_kind = words::equal(gates, &action, &words::constant(kind.ret()))?;
            holds = gates.or(holds, is_kind)?;
        }
    }
    Ok(holds)
}
