//! Functions that are one thing on each of a few intervals of a word.
//!
//! A filter looks a number up by a chain or a tree of comparisons. Composing them one by one makes a
//! diagram of the whole word for each, of which only the last is of use. While the comparisons are of
//! one word with constants, what they compute is kept as a list of intervals instead, and the diagram
//! is made once at the end, with a node for every bit at which the list really divides.
//!
//! What a piece is may depend on words that are tested before the divided one, as where a program looks at the
//! low half of an argument first and at the high half only then. The few functions of that kind are
//! replaced by what is left of them for each outcome of the earlier tests when the diagram is made.

use std::hash::Hash;

use tamis_abi::Word;
use tamis_bpf::Test;

use crate::diagram::{Diagram, LimitReached, Links, Node, Variable, View};
use crate::hash::FastMap;
use crate::order;

/// The most functions of earlier words that a list of intervals has.
const MAX_EARLIER: usize = 128;

/// A function of the input that is a known function on each of some intervals of a word.
#[derive(Clone, Debug)]
pub(crate) struct Piecewise {
    word: Word,
    /// Where each interval begins, ascending from 0, and the function there; neighbours differ.
    pieces: Vec<(u32, Node)>,
    /// Functions that may be pieces and depend on words that are tested before this one.
    earlier: Vec<Node>,
}

impl Piecewise {
    /// The function that is the same everywhere and depends on no word that is tested before this one.
    pub(crate) fn everywhere(word: Word, node: Node) -> Piecewise {
        // Most get a few more.
        let mut pieces = Vec::with_capacity(4);
        pieces.push((0, node));
        Piecewise {
            word,
            pieces,
            earlier: Vec::new(),
        }
    }

    /// The function that is this on each interval, given by where it begins, ascending from 0. None depends on a
    /// word that is tested before this one.
    pub(crate) fn of_pieces(word: Word, mut pieces: Vec<(u32, Node)>) -> Piecewise {
        debug_assert!(pieces.first().is_some_and(|(start, _)| *start == 0));
        debug_assert!(pieces.is_sorted_by(|one, next| one.0 < next.0));
        pieces.dedup_by_key(|(_, node)| *node);
        Piecewise {
            word,
            pieces,
            earlier: Vec::new(),
        }
    }

    /// The function that is the same everywhere.
    pub(crate) fn of(diagram: &Diagram, word: Word, node: Node) -> Piecewise {
        let mut pieces = Piecewise::everywhere(word, node);
        if diagram.top(node) < first_variable(word) {
            pieces.earlier.push(node);
        }
        pieces
    }

    /// Whether both can become one: together they have few functions of earlier words.
    pub(crate) fn fits(&self, other: &Piecewise) -> bool {
        let more = other.earlier.iter();
        let more = more.filter(|node| !self.earlier.contains(node));
        self.earlier.len() + more.count() <= MAX_EARLIER
    }

    /// The word that is divided.
    pub(crate) fn word(&self) -> Word {
        self.word
    }

    /// How many intervals there are.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The function where the word has this value.
    pub(crate) fn at(&self, value: u32) -> Node {
        self.pieces[self.index_of(value)].1
    }

    /// `yes` on the interval, `no` elsewhere.
    pub(crate) fn choose(on: Interval, yes: &Piecewise, mut no: Piecewise) -> Piecewise {
        for node in &yes.earlier {
            if !no.earlier.contains(node) {
                no.earlier.push(*node);
            }
        }
        match on {
            Interval::Nothing => no,
            Interval::Value(value) => no.with_value(value, yes.at(value)),
            Interval::From(0) => yes.clone(),
            Interval::From(from) => no.until(from).followed_by(from, yes),
        }
    }

    /// The same but for one value of the word.
    pub(crate) fn with_value(self, value: u32, node: Node) -> Piecewise {
        if self.at(value) == node {
            return self;
        }
        let mut index = self.index_of(value);
        let Piecewise {
            word,
            mut pieces,
            earlier,
        } = self;
        let (start, outside) = pieces[index];
        let next = pieces.get(index + 1).map(|(start, _)| *start);
        if value
            .checked_add(1)
            .is_some_and(|after| next != Some(after))
        {
            pieces.insert(index + 1, (value + 1, outside));
        }
        if start < value {
            index += 1;
            pieces.insert(index, (value, node));
        } else {
            pieces[index].1 = node;
        }
        // Neighbours may have become alike.
        if pieces.get(index + 1).is_some_and(|(_, next)| *next == node) {
            pieces.remove(index + 1);
        }
        if index > 0 && pieces[index - 1].1 == node {
            pieces.remove(index);
        }
        Piecewise {
            word,
            pieces,
            earlier,
        }
    }

    /// The same below `from`, and this function from there on.
    pub(crate) fn with_all_from(self, from: u32, node: Node) -> Piecewise {
        let all = Piecewise::everywhere(self.word, node);
        Piecewise::choose(Interval::From(from), &all, self)
    }

    /// The intervals up to a value that is excluded and not 0; the last of them goes on for ever.
    fn until(mut self, end: u32) -> Piecewise {
        let kept = self.pieces.partition_point(|(start, _)| *start < end);
        self.pieces.truncate(kept);
        self
    }

    /// This up to `from`, which is excluded, then the other.
    fn followed_by(mut self, from: u32, other: &Piecewise) -> Piecewise {
        let index = other.index_of(from);
        let first = other.pieces[index].1;
        if self.pieces.last().is_none_or(|(_, last)| *last != first) {
            self.pieces.push((from, first));
        }
        self.pieces.extend_from_slice(&other.pieces[index + 1..]);
        self
    }

    fn index_of(&self, value: u32) -> usize {
        self.pieces.partition_point(|(start, _)| *start <= value) - 1
    }

    /// The diagram of the function.
    ///
    /// Proportional to the number of intervals times 32 at most, for every way in which the outcomes of
    /// earlier tests leave different functions.
    pub(crate) fn to_node(&self, diagram: &mut Diagram) -> Result<Node, LimitReached> {
        if let [(_, node)] = self.pieces[..] {
            return Ok(node);
        }
        let is_piece = |node: &&Node| self.pieces.iter().any(|(_, piece)| piece == *node);
        let earlier: Vec<Node> = self.earlier.iter().filter(is_piece).copied().collect();
        match earlier[..] {
            [] => self.block(diagram, 32, 0, &self.pieces),
            [one] => self.replaced(diagram, &earlier, [one], &mut FastMap::default()),
            [one, two] => self.replaced(diagram, &earlier, [one, two], &mut FastMap::default()),
            _ => self.replaced(diagram, &earlier, earlier.clone(), &mut FastMap::default()),
        }
    }

    /// The function where `left` is left of these functions of earlier words. Of a chain of tests that decide one
    /// way each, as in a comparison with a constant, only the result is remembered.
    fn replaced<L>(
        &self,
        diagram: &mut Diagram,
        earlier: &[Node],
        left: L,
        known: &mut FastMap<L, Node>,
    ) -> Result<Node, LimitReached>
    where
        L: AsRef<[Node]> + AsMut<[Node]> + Clone + Eq + Hash,
    {
        if let Some(node) = known.get(&left) {
            return Ok(*node);
        }
        let end = first_variable(self.word);
        let first_of = |diagram: &Diagram, left: &L| {
            let tops = left.as_ref().iter().map(|node| diagram.top(*node));
            tops.fold(Variable::LEAF, Variable::min)
        };
        let mut links = Links::new();
        let mut rest = left.clone();
        let mut variable = first_of(diagram, &rest);
        // What the last of the decided sides was, and what comes of it.
        let mut latest: Option<(L, Node)> = None;
        let last = loop {
            if variable >= end {
                break self.with_left(diagram, earlier, rest.as_ref())?;
            }
            diagram.count_step()?;
            let (mut low, mut high) = (rest.clone(), rest.clone());
            for (low, high) in low.as_mut().iter_mut().zip(high.as_mut()) {
                (*low, *high) = diagram.cofactors(*low, variable);
            }
            let [low_first, high_first] = [&low, &high].map(|side| first_of(diagram, side));
            if (low_first >= end) == (high_first >= end) {
                let low = self.replaced(diagram, earlier, low, known)?;
                let high = self.replaced(diagram, earlier, high, known)?;
                break diagram.branch(variable, low, high)?;
            }
            let decides_low = low_first >= end;
            let (side, next, next_first) = match decides_low {
                true => (low, high, high_first),
                false => (high, low, low_first),
            };
            let decided = match &latest {
                Some((known_side, decided)) if *known_side == side => *decided,
                _ => self.replaced(diagram, earlier, side.clone(), known)?,
            };
            latest = Some((side, decided));
            if !links.add(variable, decided, decides_low) {
                break self.replaced(diagram, earlier, rest, known)?;
            }
            (rest, variable) = (next, next_first);
        };
        let made = links.above(diagram, last)?;
        known.insert(left, made);
        Ok(made)
    }

    /// The function where this is left of these functions of earlier words, and no test of those remains.
    fn with_left(
        &self,
        diagram: &mut Diagram,
        earlier: &[Node],
        left: &[Node],
    ) -> Result<Node, LimitReached> {
        let replaced = |node: Node| {
            let place = earlier.iter().position(|earlier| *earlier == node);
            place.map_or(node, |place| left[place])
        };
        let pieces = self.pieces.iter();
        let mut pieces: Vec<(u32, Node)> = pieces
            .map(|(start, node)| (*start, replaced(*node)))
            .collect();
        pieces.dedup_by_key(|(_, node)| *node);
        self.block(diagram, 32, 0, &pieces)
    }

    /// The function on the numbers that share their bits from `bit` up with `base`, given the
    /// intervals that meet them.
    fn block(
        &self,
        diagram: &mut Diagram,
        mut bit: u32,
        mut base: u32,
        mut pieces: &[(u32, Node)],
    ) -> Result<Node, LimitReached> {
        let mut links = Links::new();
        let last = loop {
            match *pieces {
                [(_, node)] => break self.under(diagram, bit, base, node),
                [(_, other), (value, node), (next, after)]
                    if other == after
                        && next - value == 1
                        && self.is_above(diagram, node, other) =>
                {
                    break self.value(diagram, bit, value, node, other)?;
                }
                _ => {}
            }
            bit -= 1;
            let middle = base | 1 << bit;
            let split = pieces.partition_point(|(start, _)| *start < middle);
            let starts_there = pieces.get(split).is_some_and(|(start, _)| *start == middle);
            let high_from = if starts_there { split } else { split - 1 };
            let variable = order::variable(self.word, bit);
            // Where a half is one piece, the other one is all that is left to do. There is room for every bit.
            match (&pieces[..split], &pieces[high_from..]) {
                ([(_, node)], high) => {
                    links.add(variable, self.under(diagram, bit, base, *node), true);
                    (base, pieces) = (middle, high);
                }
                (low, [(_, node)]) => {
                    links.add(variable, self.under(diagram, bit, middle, *node), false);
                    pieces = low;
                }
                (low, high) => {
                    let low = self.block(diagram, bit, base, low)?;
                    let high = self.block(diagram, bit, middle, high)?;
                    break diagram.branch(variable, low, high)?;
                }
            }
        };
        links.above(diagram, last)
    }

    /// `node` where the lowest `bits` of the word are those of the value, else `other`.
    fn value(
        &self,
        diagram: &mut Diagram,
        bits: u32,
        value: u32,
        node: Node,
        other: Node,
    ) -> Result<Node, LimitReached> {
        (0..bits).try_fold(node, |node, bit| {
            let variable = order::variable(self.word, bit);
            if value >> bit & 1 == 1 {
                diagram.branch(variable, other, node)
            } else {
                diagram.branch(variable, node, other)
            }
        })
    }

    /// Whether both functions depend on words that are tested after this one only.
    fn is_above(&self, diagram: &Diagram, one: Node, other: Node) -> bool {
        order::variable(self.word, 0) < diagram.top(one).min(diagram.top(other))
    }

    /// A function where the word's bits from `bit` up are those of `base`.
    fn under(&self, diagram: &Diagram, bit: u32, base: u32, mut node: Node) -> Node {
        let first = first_variable(self.word);
        while let View::Branch {
            variable,
            low,
            high,
        } = diagram.view(node)
            && variable.0 < first.0 + 32 - bit
        {
            let at = 31 - (variable.0 - first.0);
            node = if base >> at & 1 == 1 { high } else { low };
        }
        node
    }
}

fn first_variable(word: Word) -> Variable {
    order::variable(word, 31)
}

/// Values of a word for which a comparison with a constant holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interval {
    Nothing,
    Value(u32),
    /// This one and all that are greater.
    From(u32),
}

impl Interval {
    /// The values for which a test with a constant holds, if they are such an interval.
    pub(crate) fn of(test: Test, k: u32) -> Option<Interval> {
        match test {
            Test::Eq => Some(Interval::Value(k)),
            Test::Gt => Some(k.checked_add(1).map_or(Interval::Nothing, Interval::From)),
            Test::Ge => Some(Interval::From(k)),
            Test::Set if k == 0 => Some(Interval::Nothing),
            // The highest bits: one of them is set in all numbers from the lowest of them on.
            Test::Set if k.leading_ones() + k.trailing_zeros() == 32 => {
                Some(Interval::From(k & k.wrapping_neg()))
            }
            Test::Set => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagram::FALSE;

    const CONSTANTS: [u32; 9] = [
        0,
        1,
        2,
        5,
        6,
        0x4000_0000,
        0xc000_0000,
        u32::MAX - 1,
        u32::MAX,
    ];

    fn value(diagram: &Diagram, mut node: Node, nr: u32) -> u32 {
        loop {
            match diagram.view(node) {
                View::Leaf(value) => return value,
                View::Branch {
                    variable,
                    low,
                    high,
                } => {
                    let (word, bit) = order::input_bit(variable).unwrap();
                    assert_eq!(word, Word::NR);
                    node = if nr >> bit & 1 == 1 { high } else { low };
                }
            }
        }
    }

    /// Chains and trees of tests: every choice of two of the functions made so far is another.
    #[test]
    fn choices_and_their_diagrams_agree_with_the_tests() {
        let mut diagram = Diagram::new(1 << 20, 1 << 20);
        let one = diagram.leaf(7).unwrap();
        let odd = diagram.variable(order::variable(Word::NR, 0)).unwrap();
        let starts = [FALSE, one, odd].map(|node| Piecewise::everywhere(Word::NR, node));
        let mut made: Vec<(Piecewise, [u32; 9])> = starts
            .into_iter()
            .map(|start| {
                let values = CONSTANTS.map(|nr| value(&diagram, start.at(nr), nr));
                (start, values)
            })
            .collect();
        for (step, k) in CONSTANTS.into_iter().cycle().take(200).enumerate() {
            let test = Test::ALL[step % 4];
            let Some(on) = Interval::of(test, k) else {
                continue;
            };
            let (yes, no) = (&made[step * 7 % made.len()], &made[step * 5 % made.len()]);
            let expected = std::array::from_fn(|index| {
                let holds = test.holds(CONSTANTS[index], k);
                if holds { yes.1[index] } else { no.1[index] }
            });
            let chosen = Piecewise::choose(on, &yes.0, no.0.clone());
            let node = chosen.to_node(&mut diagram).unwrap();
            for (nr, expected) in CONSTANTS.into_iter().zip(expected) {
                assert_eq!(
                    value(&diagram, node, nr),
                    expected,
                    "{test:?} {k:#x} {nr:#x}"
                );
                assert_eq!(value(&diagram, chosen.at(nr), nr), expected);
            }
            assert!(chosen.pieces.windows(2).all(|two| two[0].0 < two[1].0));
            assert!(chosen.pieces.windows(2).all(|two| two[0].1 != two[1].1));
            made.push((chosen, expected));
        }
    }
}
