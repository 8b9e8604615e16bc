//! Predicates over words: conditions on 64-bit values, translated to the 32-bit words of a filter.
//!
//! Classic BPF reads an argument as two words. A [`Formula`] is a predicate after that translation: negations are
//! pushed to the leaves, constants are folded, and a leaf is either a set of values of one word or a question that is
//! not about intervals (a mask, a comparison of two words). A 64-bit value set becomes groups of upper halves, each
//! with its set of lower halves, so that an upper half is tested once and not once per value.
//!
//! This file does not choose an order, share continuations or build trees.

use tamis_abi::Word;
use tamis_abi::hash::WordHashMap;
use tamis_rules::{CmpOp, IntervalSet, Operand, OperandSource, Part, Predicate, Test};

use crate::dag::Question;

/// A condition over words, without negation except at the leaves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Formula {
    /// Always.
    True,
    /// Never.
    False,
    /// All hold; at least two parts, which are neither constants nor `All`.
    All(Vec<Formula>),
    /// One holds; at least two parts, which are neither constants nor `Any`.
    Any(Vec<Formula>),
    /// The word's value is in the set; neither empty nor full.
    In(Word, IntervalSet<u32>),
    /// The question has this answer.
    Asked {
        /// The tested word.
        word: Word,
        /// A mask question or a comparison with another word.
        question: Question,
        /// The answer that satisfies the formula.
        answer: bool,
    },
}

/// Half of an operand: a word, or zero if the operand has no such half.
type Half = Option<Word>;

impl Formula {
    /// The formula of a predicate, or of its negation if `holds` is false. Recurses as deep as the predicate nests;
    /// callers bound the depth.
    pub(crate) fn from_predicate(predicate: &Predicate, holds: bool) -> Formula {
        match predicate {
            Predicate::True => Formula::constant(holds),
            Predicate::False => Formula::constant(!holds),
            Predicate::Not(inner) => Formula::from_predicate(inner, !holds),
            Predicate::All(parts) | Predicate::Any(parts) => {
                let parts = parts
                    .iter()
                    .map(|part| Formula::from_predicate(part, holds))
                    .collect();
                if matches!(predicate, Predicate::All(_)) == holds {
                    Formula::all(parts)
                } else {
                    Formula::any(parts)
                }
            }
            Predicate::Test(test) => Formula::of_test(test, holds),
        }
    }

    /// True or false.
    pub(crate) fn constant(value: bool) -> Formula {
        if value { Formula::True } else { Formula::False }
    }

    /// The conjunction, flattened; sets of one word are intersected.
    pub(crate) fn all(parts: Vec<Formula>) -> Formula {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Formula::True => {}
                Formula::False => return Formula::False,
                Formula::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let flat = combine_sets(flat, |sets| {
            let gaps: Vec<_> = sets.iter().map(IntervalSet::complement).collect();
            union(&gaps).complement()
        });
        if flat.contains(&Formula::False) {
            return Formula::False;
        }
        one_or(flat, Formula::True, Formula::All)
    }

    /// The disjunction, flattened; sets of one word are united.
    pub(crate) fn any(parts: Vec<Formula>) -> Formula {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Formula::False => {}
                Formula::True => return Formula::True,
                Formula::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let flat = combine_sets(flat, union);
        if flat.contains(&Formula::True) {
            return Formula::True;
        }
        one_or(flat, Formula::False, Formula::Any)
    }

    fn of_test(test: &Test, holds: bool) -> Formula {
        match test {
            Test::Compare { operand, op, value } => {
                let set = values_of(*op, *value);
                in_set(*operand, &if holds { set } else { set.complement() })
            }
            Test::In { operand, set } if holds => in_set(*operand, set),
            Test::In { operand, set } => in_set(*operand, &set.complement()),
            Test::Masked {
                operand,
                mask,
                value,
            } => masked(*operand, *mask, *value, holds),
            Test::Between { left, op, right } => {
                // A variable can be compared with but not loaded, so it becomes the right operand.
                let (left, op, right) = if is_variable(*left) {
                    (*right, op.swapped(), *left)
                } else {
                    (*left, *op, *right)
                };
                let (op, answer) = match op {
                    CmpOp::Eq | CmpOp::Ge => (op, holds),
                    CmpOp::Ne => (CmpOp::Eq, !holds),
                    CmpOp::Lt => (CmpOp::Ge, !holds),
                    CmpOp::Gt | CmpOp::Le if is_variable(right) => {
                        (CmpOp::Gt, holds == (op == CmpOp::Gt))
                    }
                    CmpOp::Gt => return between(right, CmpOp::Ge, left, !holds),
                    CmpOp::Le => return between(right, CmpOp::Ge, left, holds),
                };
                between(left, op, right, answer)
            }
        }
    }

    /// The set of one word, or a constant if it is empty or full.
    fn in_word(word: Word, set: IntervalSet<u32>) -> Formula {
        if set.is_empty() {
            Formula::False
        } else if set.is_full() {
            Formula::True
        } else {
            Formula::In(word, set)
        }
    }
}

/// The union of many sets: linear apart from one sort.
fn union(sets: &[IntervalSet<u32>]) -> IntervalSet<u32> {
    let pieces = sets.iter().flat_map(IntervalSet::intervals);
    pieces.map(|(first, last)| *first..=*last).collect()
}

/// Replaces the sets of each word by one, at the position of the first.
fn combine_sets(
    parts: Vec<Formula>,
    combine: impl Fn(&[IntervalSet<u32>]) -> IntervalSet<u32>,
) -> Vec<Formula> {
    let mut seen = [false; Word::COUNT];
    let mut is_again = |part: &Formula| match part {
        Formula::In(word, _) => std::mem::replace(&mut seen[word.index()], true),
        _ => false,
    };
    if !parts.iter().any(&mut is_again) {
        return parts;
    }
    let mut sets: WordHashMap<Word, Vec<IntervalSet<u32>>> = WordHashMap::default();
    for part in &parts {
        if let Formula::In(word, set) = part {
            sets.entry(*word).or_default().push(set.clone());
        }
    }
    parts
        .into_iter()
        .filter_map(|part| match part {
            Formula::In(word, _) => {
                let sets = sets.remove(&word)?;
                Some(Formula::in_word(word, combine(&sets)))
            }
            other => Some(other),
        })
        .collect()
}

fn one_or(
    mut parts: Vec<Formula>,
    none: Formula,
    many: impl FnOnce(Vec<Formula>) -> Formula,
) -> Formula {
    match parts.len() {
        0 => none,
        1 => parts.remove(0),
        _ => many(parts),
    }
}

/// The values that satisfy `value op constant`.
fn values_of(op: CmpOp, constant: u64) -> IntervalSet<u64> {
    let range = |first: Option<u64>, last: Option<u64>| match (first, last) {
        (Some(first), Some(last)) => [first..=last].into_iter().collect(),
        _ => IntervalSet::empty(),
    };
    match op {
        CmpOp::Eq => IntervalSet::single(constant),
        CmpOp::Ne => IntervalSet::single(constant).complement(),
        CmpOp::Lt => range(Some(0), constant.checked_sub(1)),
        CmpOp::Le => range(Some(0), Some(constant)),
        CmpOp::Gt => range(constant.checked_add(1), Some(u64::MAX)),
        CmpOp::Ge => range(Some(constant), Some(u64::MAX)),
    }
}

/// The words of an operand's value: low, high.
fn halves(operand: Operand) -> (Half, Half) {
    let (low, high) = operand.words();
    match operand.part {
        Part::Full => (Some(low), Some(high)),
        Part::Low => (Some(low), None),
        Part::High => (Some(high), None),
    }
}

fn in_set(operand: Operand, set: &IntervalSet<u64>) -> Formula {
    let (Some(low), high) = halves(operand) else {
        return Formula::constant(set.contains(0));
    };
    let groups = by_upper_half(set);
    let Some(high) = high else {
        let mut lows = IntervalSet::empty();
        for (uppers, group) in groups {
            if uppers.contains(0) {
                lows = group;
            }
        }
        return Formula::in_word(low, lows);
    };
    let parts = groups
        .into_iter()
        .map(|(uppers, lows)| {
            Formula::all(vec![
                Formula::in_word(low, lows),
                Formula::in_word(high, uppers),
            ])
        })
        .collect();
    Formula::any(parts)
}

/// Intervals of words, ascending.
type Intervals = Vec<(u32, u32)>;

/// Splits a set into groups of upper halves with their lower halves. No upper half is in two groups, and no two
/// groups have equal lower halves. In order of first upper half.
fn by_upper_half(set: &IntervalSet<u64>) -> Vec<(IntervalSet<u32>, IntervalSet<u32>)> {
    // Most sets have only one upper half.
    if let (Some((first, _)), Some((_, last))) = (set.intervals().first(), set.intervals().last())
        && first >> 32 == last >> 32
    {
        let lows = set.intervals().iter();
        let lows = lows.map(|(first, last)| *first as u32..=*last as u32);
        return vec![(IntervalSet::single((first >> 32) as u32), lows.collect())];
    }
    let mut pieces: Vec<(u32, u32, Intervals)> = Vec::new();
    let mut add = |first: u32, last: u32, lows: (u32, u32)| match pieces.last_mut() {
        Some((start, end, known)) if *start == first && *end == last => known.push(lows),
        _ => pieces.push((first, last, vec![lows])),
    };
    for (first, last) in set.intervals() {
        let (high_first, low_first) = ((first >> 32) as u32, *first as u32);
        let (high_last, low_last) = ((last >> 32) as u32, *last as u32);
        if high_first == high_last {
            add(high_first, high_first, (low_first, low_last));
            continue;
        }
        add(high_first, high_first, (low_first, u32::MAX));
        if high_first + 1 < high_last {
            add(high_first + 1, high_last - 1, (0, u32::MAX));
        }
        add(high_last, high_last, (0, low_last));
    }
    let to_set = |pieces: Intervals| -> IntervalSet<u32> {
        pieces
            .into_iter()
            .map(|(first, last)| first..=last)
            .collect()
    };
    let mut place: WordHashMap<Intervals, usize> = WordHashMap::default();
    let mut groups: Vec<(Intervals, Intervals)> = Vec::new();
    for (first, last, lows) in pieces {
        let at = *place.entry(lows.clone()).or_insert_with(|| {
            groups.push((Vec::new(), lows));
            groups.len() - 1
        });
        groups[at].0.push((first, last));
    }
    groups
        .into_iter()
        .map(|(uppers, lows)| (to_set(uppers), to_set(lows)))
        .collect()
}

fn masked(operand: Operand, mask: u64, value: u64, holds: bool) -> Formula {
    let (low, high) = halves(operand);
    if value & !mask != 0 {
        return Formula::constant(!holds);
    }
    let parts = vec![
        masked_half(low, mask as u32, value as u32, holds),
        masked_half(high, (mask >> 32) as u32, (value >> 32) as u32, holds),
    ];
    if holds {
        Formula::all(parts)
    } else {
        Formula::any(parts)
    }
}

fn masked_half(half: Half, mask: u32, value: u32, holds: bool) -> Formula {
    let Some(word) = half.filter(|_| mask != 0) else {
        return Formula::constant((value == 0) == holds);
    };
    if mask.leading_ones() + mask.trailing_zeros() == u32::BITS {
        let set: IntervalSet<u32> = [value..=value | !mask].into_iter().collect();
        return Formula::in_word(word, if holds { set } else { set.complement() });
    }
    let (question, yes) = if value == 0 {
        (Question::AnySet(mask), false)
    } else if mask.is_power_of_two() {
        (Question::AnySet(mask), true)
    } else {
        (Question::Masked { mask, value }, true)
    };
    Formula::Asked {
        word,
        question,
        answer: yes == holds,
    }
}

fn is_variable(operand: Operand) -> bool {
    matches!(operand.source, OperandSource::Variable(_))
}

/// The formula of `left op right` for `==`, `>=` and, for a variable, `>`, or of its negation if `holds` is false.
fn between(left: Operand, op: CmpOp, right: Operand, holds: bool) -> Formula {
    let ((left_low, left_high), (right_low, right_high)) = (halves(left), halves(right));
    let equal = |holds: bool| compare_halves(left_high, CmpOp::Eq, right_high, holds);
    let low = compare_halves(left_low, op, right_low, holds);
    if op == CmpOp::Eq {
        let parts = vec![low, equal(holds)];
        return if holds {
            Formula::all(parts)
        } else {
            Formula::any(parts)
        };
    }
    // The upper halves decide unless they are equal.
    let high = compare_halves(left_high, CmpOp::Ge, right_high, holds);
    Formula::any(vec![
        Formula::all(vec![equal(true), low]),
        Formula::all(vec![equal(false), high]),
    ])
}

/// The formula of `left op right` for two words or zeros; operators as in [`between`].
fn compare_halves(left: Half, op: CmpOp, right: Half, holds: bool) -> Formula {
    let zero_is = |word: Word, holds: bool| {
        let zero = IntervalSet::single(0);
        Formula::in_word(word, if holds { zero } else { zero.complement() })
    };
    match (left, right) {
        (None, None) => Formula::constant(holds == (op != CmpOp::Gt)),
        (Some(word), None) if op == CmpOp::Eq => zero_is(word, holds),
        (Some(word), None) if op == CmpOp::Gt => zero_is(word, !holds),
        (Some(_), None) => Formula::constant(holds),
        (None, Some(_)) if op == CmpOp::Gt => Formula::constant(!holds),
        (None, Some(word)) => zero_is(word, holds),
        (Some(left), Some(right)) if left == right => Formula::constant(holds),
        (Some(left), Some(right)) => Formula::Asked {
            word: left,
            question: match (op, right.is_variable()) {
                (CmpOp::Eq, true) => Question::EqVariable(right),
                (CmpOp::Gt, _) => Question::GtVariable(right),
                (_, true) => Question::GeVariable(right),
                (CmpOp::Eq, false) => Question::EqWord(right),
                (_, false) => Question::GeWord(right),
            },
            answer: holds,
        },
    }
}
