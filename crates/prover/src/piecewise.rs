//! Functions that are given separately on each of a few intervals of a word.
//!
//! A filter looks a number up by a chain or a tree of comparisons. Composing them one by one creates a diagram of
//! the whole word for each, of which only the last is used. So while comparisons of one word with constants follow
//! each other, their function is a list of intervals, and the diagram is created once at the end, with a node for
//! every bit at which the list divides.
//!
//! A piece may depend on words that are tested before the divided one, for example if a program tests the low half
//! of an argument before the high half. When the diagram is created, these few functions are replaced by their
//! cofactors for each outcome of the earlier tests.

use std::hash::Hash;

use tamis_abi::Word;
use tamis_abi::hash::WordHashMap;
use tamis_bpf::Test;

use crate::diagram::{Diagram, LimitReached, Links, Node, Variable, View};
use crate::order;

/// The most functions of earlier words that a list of intervals has.
const MAX_EARLIER: usize = 128;

/// A function of the input that is a known function on each of some intervals of a word.
#[derive(Clone, Debug)]
pub(crate) struct Piecewise {
    word: Word,
    /// The beginning of each interval, ascending from 0, and its function; neighbours differ.
    pieces: Vec<(u32, Node)>,
    /// Functions that may be pieces and depend on earlier words in the order.
    earlier: Vec<Node>,
}

impl Piecewise {
    /// A function without intervals that depends on no earlier word in the order.
    pub(crate) fn everywhere(word: Word, node: Node) -> Piecewise {
        // Most lists grow by a few pieces.
        let mut pieces = Vec::with_capacity(4);
        pieces.push((0, node));
        Piecewise {
            word,
            pieces,
            earlier: Vec::new(),
        }
    }

    /// The function of these pieces, given by the beginnings of their intervals, ascending from 0. None depends on
    /// an earlier word in the order.
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

    /// A function without intervals.
    pub(crate) fn from_node(diagram: &Diagram, word: Word, node: Node) -> Piecewise {
        let mut pieces = Piecewise::everywhere(word, node);
        if diagram.top(node) < first_variable(word) {
            pieces.earlier.push(node);
        }
        pieces
    }

    /// Whether both can be combined: together they have few functions of earlier words.
    pub(crate) fn fits(&self, other: &Piecewise) -> bool {
        let more = other.earlier.iter();
        let more = more.filter(|node| !self.earlier.contains(node));
        self.earlier.len() + more.count() <= MAX_EARLIER
    }

    /// The word that is divided.
    pub(crate) fn word(&self) -> Word {
        self.word
    }

    /// The count of intervals.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The function for this value of the word.
    pub(crate) fn at(&self, value: u32) -> Node {
        self.pieces[self.index_of(value)].1
    }

    /// `yes` on the interval, `no` outside.
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

    /// The same except for one value of the word.
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
        // Neighbours may have become equal.
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

    /// The intervals up to a value, which is excluded and not 0; the last of them is unbounded.
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
    /// At most proportional to the number of intervals times 32, for every combination of outcomes of earlier tests
    /// with different functions.
    pub(crate) fn to_node(&self, diagram: &mut Diagram) -> Result<Node, LimitReached> {
        if let [(_, node)] = self.pieces[..] {
            return Ok(node);
        }
        let is_piece = |node: &&Node| self.pieces.iter().any(|(_, piece)| piece == *node);
        let earlier: Vec<Node> = self.earlier.iter().filter(is_piece).copied().collect();
        match earlier[..] {
            [] => self.block(diagram, 32, 0, &self.pieces),
            [one] => self.replaced(diagram, &earlier, [one], &mut WordHashMap::default()),
            [one, two] => self.replaced(diagram, &earlier, [one, two], &mut WordHashMap::default()),
            _ => self.replaced(
                diagram,
                &earlier,
                earlier.clone(),
                &mut WordHashMap::default(),
            ),
        }
    }

    /// The function in which `left` is the remainder of these functions of earlier words. For a chain of tests that
    /// decide one side each, as in a comparison with a constant, only the result is cached.
    fn replaced<L>(
        &self,
        diagram: &mut Diagram,
        earlier: &[Node],
        left: L,
        known: &mut WordHashMap<L, Node>,
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
        // The last decided side, and its result.
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

    /// The function for this remainder of the functions of earlier words, in which no earlier test is left.
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

    /// The function on the numbers with the bits of `base` from `bit` up, given the intervals that intersect them.
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
            // If a half is one piece, only the other one remains.
            match (&pieces[..split], &pieces[high_from..]) {
                ([(_, node)], high)
                    if links.add(variable, self.under(diagram, bit, base, *node), true) =>
                {
                    (base, pieces) = (middle, high);
                }
                (low, [(_, node)])
                    if links.add(variable, self.under(diagram, bit, middle, *node), false) =>
                {
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

    /// `node` if the lowest `bits` of the word are those of the value, else `other`.
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

    /// Whether both functions depend only on later words in the order.
    fn is_above(&self, diagram: &Diagram, one: Node, other: Node) -> bool {
        order::variable(self.word, 0) < diagram.top(one).min(diagram.top(other))
    }

    /// A function for the bits of `base` from `bit` up.
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
    /// This value and all greater ones.
    From(u32),
}

impl Interval {
    /// The values for which a test with a constant holds, if they are such an interval.
    pub(crate) fn from_test(test: Test, k: u32) -> Option<Interval> {
        match test {
            Test::Eq => Some(Interval::Value(k)),
            Test::Gt => Some(k.checked_add(1).map_or(Interval::Nothing, Interval::From)),
            Test::Ge => Some(Interval::From(k)),
            Test::Set if k == 0 => Some(Interval::Nothing),
            // The highest bits: one of them is set in all numbers that are at least the lowest of them.
            Test::Set if k.leading_ones() + k.trailing_zeros() == 32 => {
                Some(Interval::From(k & k.wrapping_neg()))
            }
            Test::Set => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use tamis_abi::ArgIndex;

    use super::*;
    use crate::diagram::{FALSE, TRUE};
    use crate::stop::Stop;

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

    fn value(diagram: &Diagram, node: Node, nr: u32) -> u32 {
        value_for(diagram, node, &[(Word::NR, nr)])
    }

    /// The value for these values of the words; no other words are tested, and none twice or out of order.
    fn value_for(diagram: &Diagram, mut node: Node, words: &[(Word, u32)]) -> u32 {
        let mut latest = None;
        loop {
            match diagram.view(node) {
                View::Leaf(value) => return value,
                View::Branch {
                    variable,
                    low,
                    high,
                } => {
                    assert!(latest < Some(variable));
                    latest = Some(variable);
                    let (word, bit) = order::input_bit(variable).unwrap();
                    let (_, value) = words.iter().find(|(known, _)| *known == word).unwrap();
                    node = if value >> bit & 1 == 1 { high } else { low };
                }
            }
        }
    }

    /// Chains and trees of tests: every choice between two of the functions so far is another one.
    #[test]
    fn choices_and_their_diagrams_agree_with_the_tests() {
        let mut diagram = Diagram::new(1 << 20, 1 << 20, Stop::default());
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
            let Some(on) = Interval::from_test(test, k) else {
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

    const HIGH: Word = Word::arg_high(ArgIndex::ALL[0]);
    const LOW: Word = Word::arg_low(ArgIndex::ALL[0]);

    /// `yes` if the words have these values, else `no`, node by node. Words ascend in the order.
    fn where_equal(diagram: &mut Diagram, words: &[(Word, u32)], yes: Node, no: Node) -> Node {
        let bits = words.iter().rev();
        let mut bits = bits.flat_map(|word| (0..32).map(move |bit| (word, bit)));
        bits.try_fold(yes, |rest, ((word, value), bit)| {
            let variable = order::variable(*word, bit);
            match value >> bit & 1 {
                1 => diagram.branch(variable, no, rest),
                _ => diagram.branch(variable, rest, no),
            }
        })
        .unwrap()
    }

    /// The leaf of a function of the number and both halves.
    type Oracle = Box<dyn Fn(u32, u32, u32) -> u32>;

    /// The high halves in comparisons, which diverge at different bits.
    const HIGHS: [u32; 5] = [0x5555_5555, 0x5555_aaaa, 0, u32::MAX, 0x8000_0001];
    const NUMBER: u32 = 0xc000_003b;

    /// Functions of the high half, or of it and the number, that are leaves or in one case also depend on the low
    /// half.
    fn functions(diagram: &mut Diagram, count: usize, with_number: bool) -> Vec<(Node, Oracle)> {
        let odd = diagram.variable(order::variable(LOW, 0)).unwrap();
        let functions = HIGHS.into_iter().zip(0..).take(count);
        functions
            .map(|(asked, index)| {
                let [mut yes, no] = [10, 20].map(|value| diagram.leaf(value + index).unwrap());
                if index == 3 {
                    yes = odd;
                }
                let words = [(Word::NR, NUMBER), (HIGH, asked)];
                let words = &words[usize::from(!with_number)..];
                let mut node = where_equal(diagram, words, yes, no);
                // Neither side of the first test is a leaf.
                if index == 4 {
                    let first = order::variable(words[0].0, 31);
                    let (_, matched) = diagram.cofactors(node, first);
                    node = diagram.branch(first, odd, matched).unwrap();
                }
                let oracle: Oracle = Box::new(move |number, high, low| {
                    let top = if with_number { number } else { high };
                    match index {
                        4 if top >> 31 == 0 => low & 1,
                        _ if high != asked || with_number && number != NUMBER => 20 + index,
                        3 => low & 1,
                        _ => 10 + index,
                    }
                });
                (node, oracle)
            })
            .collect()
    }

    /// A value and its neighbours at a distance of one bit.
    fn around(value: u32) -> impl Iterator<Item = u32> {
        std::iter::once(value).chain((0..32).map(move |bit| value ^ 1 << bit))
    }

    /// The division of a low half: the upper bounds of consecutive functions, and two more values.
    const DIVIDED: [Interval; 8] = [
        Interval::From(3),
        Interval::From(4),
        Interval::From(9),
        Interval::From(0x7fff_ffff),
        Interval::From(0xaaaa_aaaa),
        Interval::From(u32::MAX),
        Interval::Value(0x100),
        Interval::Value(0xbbbb_0000),
    ];

    fn contains(on: Interval, low: u32) -> bool {
        match on {
            Interval::Nothing => false,
            Interval::Value(value) => low == value,
            Interval::From(from) => low >= from,
        }
    }

    /// Compares a division into these functions in turns with composing them one by one.
    fn check_division(diagram: &mut Diagram, parts: &[(Node, Oracle)]) {
        let chosen = (1..)
            .zip(DIVIDED)
            .map(|(index, on)| (on, index % parts.len()));
        let mut pieces = Piecewise::from_node(diagram, LOW, parts[0].0);
        // The canonical node of the function, composed one by one.
        let mut composed = parts[0].0;
        for (on, part) in chosen.clone() {
            let node = parts[part].0;
            pieces = Piecewise::choose(on, &Piecewise::from_node(diagram, LOW, node), pieces);
            let [yes, no] = [TRUE, FALSE].map(|node| Piecewise::everywhere(LOW, node));
            let condition = Piecewise::choose(on, &yes, no).to_node(diagram).unwrap();
            composed = diagram.ite(condition, node, composed).unwrap();
        }
        for (node, _) in parts {
            assert!(pieces.pieces.iter().any(|(_, piece)| piece == node));
        }
        let made = pieces.to_node(diagram).unwrap();
        assert_eq!(made, composed);
        let borders = DIVIDED.into_iter().flat_map(|on| match on {
            Interval::From(k) | Interval::Value(k) => [k - 1, k, k.wrapping_add(1)],
            Interval::Nothing => unreachable!(),
        });
        for low in borders {
            let latest = chosen.clone().filter(|(on, _)| contains(*on, low)).last();
            let (_, oracle) = &parts[latest.map_or(0, |(_, part)| part)];
            for number in around(NUMBER) {
                for high in HIGHS.into_iter().flat_map(around) {
                    let words = [(Word::NR, number), (HIGH, high), (LOW, low)];
                    let expected = oracle(number, high, low);
                    assert_eq!(value_for(diagram, made, &words), expected, "{words:x?}");
                }
            }
        }
    }

    /// A low half is divided into functions of earlier words: few and many, by chains of tests that are longer than
    /// the limit of a chain.
    #[test]
    fn functions_of_earlier_words_are_pieces_too() {
        for count in [1, 2, 5] {
            for with_number in [false, true] {
                let mut diagram = Diagram::new(1 << 20, 1 << 24, Stop::default());
                let mut parts = functions(&mut diagram, count, with_number);
                let odd = diagram.variable(order::variable(LOW, 0)).unwrap();
                parts.push((odd, Box::new(|_, _, low| low & 1)));
                parts.push((diagram.leaf(7).unwrap(), Box::new(|_, _, _| 7)));
                check_division(&mut diagram, &parts);
            }
        }
    }

    /// One value of a word among functions of the word itself: a test of each bit, of which every second decides
    /// the upper side.
    #[test]
    fn a_test_for_every_bit_of_the_word() {
        const VALUE: u32 = 0x5555_5555;
        let mut diagram = Diagram::new(1 << 10, 1 << 10, Stop::default());
        let [one, two] = [7, 8].map(|value| diagram.leaf(value).unwrap());
        let first_bit = diagram.variable(order::variable(Word::NR, 31)).unwrap();
        let pieces = Piecewise::everywhere(Word::NR, one).with_value(VALUE, first_bit);
        let pieces = pieces.with_all_from(VALUE + 1, two);
        let made = pieces.to_node(&mut diagram).unwrap();
        for nr in around(VALUE).chain([VALUE - 1, VALUE + 1, 0, u32::MAX]) {
            let expected = match nr.cmp(&VALUE) {
                Ordering::Less => 7,
                Ordering::Equal => VALUE >> 31,
                Ordering::Greater => 8,
            };
            assert_eq!(value(&diagram, made, nr), expected, "{nr:#x}");
        }
    }
}
