//! Common functions of passes over conditions: lists of either kind, traversal, and tests as sets of values.

use tamis_rules::{CmpOp, IntervalSet, Operand, Predicate, Test};

/// The most values that are enumerated.
const MAX_VALUES: u64 = 64;

/// The two kinds of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::passes) enum ListKind {
    All,
    Any,
}

impl ListKind {
    /// The kind and the parts, if a predicate is a list.
    pub(in crate::passes) fn split(predicate: &Predicate) -> Option<(ListKind, &[Predicate])> {
        match predicate {
            Predicate::All(parts) => Some((ListKind::All, parts)),
            Predicate::Any(parts) => Some((ListKind::Any, parts)),
            _ => None,
        }
    }

    /// The other kind.
    pub(in crate::passes) const fn dual(self) -> ListKind {
        match self {
            ListKind::All => ListKind::Any,
            ListKind::Any => ListKind::All,
        }
    }

    /// The value of a list without parts.
    pub(in crate::passes) const fn neutral(self) -> Predicate {
        match self {
            ListKind::All => Predicate::True,
            ListKind::Any => Predicate::False,
        }
    }

    /// The list, or its only part.
    pub(in crate::passes) fn join(self, mut parts: Vec<Predicate>) -> Predicate {
        match (parts.len(), self) {
            (0, _) => self.neutral(),
            (1, _) => parts.remove(0),
            (_, ListKind::All) => Predicate::All(parts),
            (_, ListKind::Any) => Predicate::Any(parts),
        }
    }

    /// The parts of a list of this kind; any other predicate is its own only part.
    pub(in crate::passes) fn parts(self, predicate: &Predicate) -> &[Predicate] {
        match ListKind::split(predicate) {
            Some((kind, parts)) if kind == self => parts,
            _ => std::slice::from_ref(predicate),
        }
    }
}

/// Rewrites every list, parts first; `None` if nothing changes. A list of fewer than two parts becomes its part or
/// its value. Recurses as deep as the predicate nests.
pub(in crate::passes) fn rewrite_lists(
    predicate: &Predicate,
    rewrite: &impl Fn(ListKind, &[Predicate]) -> Option<Predicate>,
) -> Option<Predicate> {
    if let Predicate::Not(inner) = predicate {
        let inner = rewrite_lists(inner, rewrite)?;
        return Some(Predicate::Not(Box::new(inner)));
    }
    let (kind, parts) = ListKind::split(predicate)?;
    let made = rewrite_parts(parts, |part| rewrite_lists(part, rewrite));
    let rewritten = rewrite(kind, made.as_deref().unwrap_or(parts));
    rewritten.or_else(|| match made {
        Some(made) => Some(kind.join(made)),
        None => (parts.len() < 2).then(|| kind.join(parts.to_vec())),
    })
}

/// The parts, some of them rewritten; `None` if none changes.
pub(in crate::passes) fn rewrite_parts(
    parts: &[Predicate],
    mut rewrite: impl FnMut(&Predicate) -> Option<Predicate>,
) -> Option<Vec<Predicate>> {
    let mut made: Option<Vec<Predicate>> = None;
    for (place, part) in parts.iter().enumerate() {
        match (rewrite(part), &mut made) {
            (None, None) => {}
            (None, Some(made)) => made.push(part.clone()),
            (Some(rewritten), Some(made)) => made.push(rewritten),
            (Some(rewritten), None) => {
                let mut first = Vec::with_capacity(parts.len());
                first.extend_from_slice(&parts[..place]);
                first.push(rewritten);
                made = Some(first);
            }
        }
    }
    made
}

/// The operand and the values that satisfy a test, if it tests the value of one operand. A mask of a contiguous run of
/// leading bits is a range.
pub(in crate::passes) fn values(test: &Test) -> Option<(Operand, IntervalSet<u64>)> {
    match test {
        Test::In { operand, set } => Some((*operand, set.clone())),
        Test::Compare { operand, op, value } => {
            let below = value.checked_sub(1).map(|last| 0..=last);
            let above = value.checked_add(1).map(|first| first..=u64::MAX);
            let set = match op {
                CmpOp::Eq => IntervalSet::single(*value),
                CmpOp::Ne => IntervalSet::single(*value).complement(),
                CmpOp::Lt => below.into_iter().collect(),
                CmpOp::Le => [0..=*value].into_iter().collect(),
                CmpOp::Gt => above.into_iter().collect(),
                CmpOp::Ge => [*value..=u64::MAX].into_iter().collect(),
            };
            Some((*operand, set))
        }
        Test::Masked {
            operand,
            mask,
            value,
        } => {
            let free = Operand::max(*operand) & !mask;
            let is_range = value & !mask == 0
                && mask & !Operand::max(*operand) == 0
                && free & free.wrapping_add(1) == 0;
            is_range.then(|| (*operand, [*value..=value | free].into_iter().collect()))
        }
        Test::Between { .. } => None,
    }
}

/// The simplest test for a set of values of an operand.
pub(in crate::passes) fn test_of(operand: Operand, set: &IntervalSet<u64>) -> Predicate {
    let largest = operand.max();
    let possible: IntervalSet<u64> = [0..=largest].into_iter().collect();
    let set = set.intersection(&possible);
    let gaps = possible.difference(&set);
    let compare = |op, value| Predicate::compare(operand, op, value);
    match (set.intervals(), gaps.intervals()) {
        ([], _) => Predicate::False,
        (_, []) => Predicate::True,
        ([(value, last)], _) if value == last => compare(CmpOp::Eq, *value),
        (_, [(value, last)]) if value == last => compare(CmpOp::Ne, *value),
        ([(first, last)], _) if *last == largest => compare(CmpOp::Ge, *first),
        ([(0, last)], _) => compare(CmpOp::Le, *last),
        _ => Predicate::Test(Test::In { operand, set }),
    }
}

/// The values of a small set.
pub(in crate::passes) fn single_values(set: &IntervalSet<u64>) -> Option<Vec<u64>> {
    let mut values = Vec::new();
    for (first, last) in set.intervals() {
        if last - first >= MAX_VALUES - values.len() as u64 {
            return None;
        }
        values.extend(*first..=*last);
    }
    Some(values)
}
