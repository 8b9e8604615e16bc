//! The node table: canonical, hash-consed decision diagrams with 32-bit values at the leaves.
//!
//! A node tests one variable and has a branch for each outcome; variables ascend along every path, no node has
//! equal branches, and no two nodes are equal. So two functions are equal exactly if their roots are the same node.
//! Booleans are functions with the values 0 and 1, so one table and one operation, [`Diagram::ite`], serve
//! conditions and filters alike.

use std::error::Error;
use std::fmt;

use crate::stop::{Share, Stop};

/// A node of the table. Equal functions have equal nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node(u32);

/// A variable of decision diagrams; smaller ones are tested first. [`Space::kind`](crate::Space::kind) returns its
/// meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(pub(crate) u32);

impl Variable {
    /// The variable of leaves; it sorts after every other.
    pub(crate) const LEAF: Variable = Variable(u32::MAX);
}

/// The constant false, and the filter that always returns 0.
pub(crate) const FALSE: Node = Node(0);
/// The constant true.
pub(crate) const TRUE: Node = Node(1);

/// A result, or the limit that was reached before it was found.
pub type Limited<T> = Result<T, LimitReached>;

/// A limit of [`Limits`](crate::Limits) was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// The decision diagrams need more than `max_nodes`.
    Nodes,
    /// A program has more than `max_states`.
    States,
    /// Composing the diagrams takes more than `max_steps`.
    Steps,
    /// Comparisons of two words leave more than `max_paths` open.
    Paths,
    /// The circuit of gates needs more than `max_gates`.
    Gates,
    /// The SAT solver had more than `max_conflicts`.
    Conflicts,
    /// The filters differ in more pairs of return values than are listed.
    Pairs,
    /// Diagrams, gates and the solver need more memory than [`Stop::with_memory`](crate::Stop::with_memory) allows.
    Memory,
    /// The caller cancelled, see [`Stop`](crate::Stop).
    Stopped,
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LimitReached::Nodes => "the decision diagrams need more nodes than allowed",
            LimitReached::Paths => {
                "more paths than are followed may be such that no call takes them"
            }
            LimitReached::Gates => "the circuit of the filters needs more gates than allowed",
            LimitReached::Conflicts => "the search met more conflicts than allowed",
            LimitReached::Pairs => {
                "the filters differ in more pairs of return values than are listed"
            }
            LimitReached::Memory => {
                "decision diagrams, gates and the SAT solver need more memory than allowed"
            }
            LimitReached::Stopped => "the search was stopped before it ended",
            LimitReached::Steps => "composing the decision diagrams takes more steps than allowed",
            LimitReached::States => "the program can be in more states than are followed",
        })
    }
}

impl Error for LimitReached {}

/// A row of the node table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    variable: Variable,
    /// The branch for 0; the value of a leaf.
    low: u32,
    /// The branch for 1; 0 in a leaf.
    high: u32,
}

impl Row {
    fn hash(self) -> u32 {
        hash3(self.variable.0, self.low, self.high)
    }
}

/// A cached result of [`Diagram::ite`].
#[derive(Clone, Copy)]
struct Remembered {
    condition: Node,
    yes: Node,
    no: Node,
    result: Node,
}

/// The contents of a node: a value, or a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Leaf(u32),
    Branch {
        variable: Variable,
        low: Node,
        high: Node,
    },
}

/// A pointwise operation, see [`Diagram::choose_pointwise`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tag {
    Precedence,
}

pub(crate) struct Diagram {
    rows: Vec<Row>,
    /// Open-addressing hash table of row numbers; [`EMPTY`] for free slots.
    unique: Vec<u32>,
    /// Direct-mapped and lossy: a collision overwrites the older result.
    memory: Vec<Remembered>,
    /// The count of rows before tables grow, a limit is reached or cancellation is checked.
    room: usize,
    max_nodes: usize,
    steps_left: u64,
    /// The count of ticks, see [`Diagram::tick`].
    ticks: u32,
    /// Checked periodically.
    stop: Stop,
    share: Share,
}

/// A chain of tests that decide one side each, from the first to the last.
pub(crate) struct Links {
    /// The variable, the decided side, and whether that is the one for 0.
    list: [(Variable, Node, bool); Links::MAX],
    count: usize,
}

impl Links {
    /// The bits of a word; longer chains are split.
    const MAX: usize = 32;

    pub(crate) const fn new() -> Links {
        Links {
            list: [(Variable::LEAF, FALSE, false); Links::MAX],
            count: 0,
        }
    }

    /// Adds a test; `false` if there is no room.
    pub(crate) fn add(&mut self, variable: Variable, settled: Node, settles_low: bool) -> bool {
        let Some(link) = self.list.get_mut(self.count) else {
            return false;
        };
        *link = (variable, settled, settles_low);
        self.count += 1;
        true
    }

    /// The function of the chain, whose undecided last side is `last`.
    pub(crate) fn above(&self, diagram: &mut Diagram, last: Node) -> Result<Node, LimitReached> {
        let links = self.list[..self.count].iter().rev();
        links
            .copied()
            .try_fold(last, |rest, (variable, settled, settles_low)| {
                if settles_low {
                    diagram.branch(variable, settled, rest)
                } else {
                    diagram.branch(variable, rest, settled)
                }
            })
    }
}

const EMPTY: u32 = u32::MAX;
/// Node numbers from here on are operations in the cache of results.
const FIRST_TAG: u32 = u32::MAX - 0xff;
const INITIAL_SLOTS: usize = 1 << 14;
/// The ratio of slots of the hash table to those of the result cache: most functions consist of conditions that
/// need no cache, and fresh memory takes longer to allocate than to use.
const SLOTS_PER_RESULT: usize = 4;
/// The interval of checks for cancellation; some ten thousand steps take a millisecond.
const STEPS_BETWEEN_CHECKS: u64 = 1 << 13;
const TICKS_BETWEEN_CHECKS: u32 = 1 << 10;
const NODES_BETWEEN_CHECKS: usize = 1 << 12;
/// The largest result cache; a larger one would exceed the processor's cache.
const MAX_MEMORY_SLOTS: usize = 1 << 18;

impl Diagram {
    pub(crate) fn new(max_nodes: usize, max_steps: u64, stop: Stop) -> Diagram {
        let nothing = Remembered {
            condition: FALSE,
            yes: FALSE,
            no: FALSE,
            result: FALSE,
        };
        let mut diagram = Diagram {
            rows: Vec::with_capacity(INITIAL_SLOTS / 2),
            unique: vec![EMPTY; INITIAL_SLOTS],
            memory: vec![nothing; INITIAL_SLOTS / SLOTS_PER_RESULT],
            room: 2,
            max_nodes: max_nodes.clamp(2, FIRST_TAG as usize - 1),
            steps_left: max_steps,
            ticks: 0,
            share: stop.share(),
            stop,
        };
        for number in [0, 1] {
            let row = Row {
                variable: Variable::LEAF,
                low: number,
                high: 0,
            };
            diagram.rows.push(row);
            diagram.place(number, row.hash());
        }
        diagram
    }

    /// The count of nodes.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The memory of all tables, in bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
            + self.unique.len() * size_of::<u32>()
            + self.memory.len() * size_of::<Remembered>()
    }

    /// The constant function of this value.
    pub(crate) fn leaf(&mut self, value: u32) -> Result<Node, LimitReached> {
        self.intern(Row {
            variable: Variable::LEAF,
            low: value,
            high: 0,
        })
    }

    /// The condition that a variable is 1.
    pub(crate) fn variable(&mut self, variable: Variable) -> Result<Node, LimitReached> {
        self.branch(variable, FALSE, TRUE)
    }

    /// The function that is `low` if the variable is 0 and `high` if it is 1; both must depend on later variables
    /// only.
    #[inline]
    pub(crate) fn branch(
        &mut self,
        variable: Variable,
        low: Node,
        high: Node,
    ) -> Result<Node, LimitReached> {
        if low == high {
            return Ok(low);
        }
        debug_assert!(variable < self.row(low).variable.min(self.row(high).variable));
        self.intern(Row {
            variable,
            low: low.0,
            high: high.0,
        })
    }

    pub(crate) fn view(&self, node: Node) -> View {
        let Row {
            variable,
            low,
            high,
        } = self.row(node);
        match variable {
            Variable::LEAF => View::Leaf(low),
            _ => View::Branch {
                variable,
                low: Node(low),
                high: Node(high),
            },
        }
    }

    /// The first variable that a function depends on; greater than every variable if it is constant.
    pub(crate) fn top(&self, node: Node) -> Variable {
        self.row(node).variable
    }

    /// The function that is `yes` if the condition holds and `no` otherwise.
    ///
    /// Proportional to the number of distinct triples of sub-diagrams that occur; a condition on one word above
    /// both branches costs one step per node of the condition.
    pub(crate) fn ite(
        &mut self,
        condition: Node,
        yes: Node,
        no: Node,
    ) -> Result<Node, LimitReached> {
        if condition == TRUE || yes == no {
            return Ok(yes);
        }
        if condition == FALSE {
            return Ok(no);
        }
        if yes == TRUE && no == FALSE {
            return Ok(condition);
        }
        let rows = [condition, yes, no].map(|node| self.row(node));
        let [asked, ..] = rows;
        let top_of_branches = rows[1].variable.min(rows[2].variable);
        let is_above = asked.variable < top_of_branches;
        let (decides_low, decides_high) = (asked.low <= TRUE.0, asked.high <= TRUE.0);
        if is_above && decides_low && decides_high {
            // A single variable above both branches: the result is one node.
            let chosen = |value: u32| if value == TRUE.0 { yes } else { no };
            return self.branch(asked.variable, chosen(asked.low), chosen(asked.high));
        }
        if let Some(result) = self.recall(condition, yes, no)? {
            return Ok(result);
        }
        let result = if is_above && (decides_low || decides_high) {
            self.ite_along(condition, yes, no, top_of_branches)?
        } else {
            let variable = asked.variable.min(top_of_branches);
            let half = |node: Node, row: Row, half: u32| match row.variable == variable {
                true => Node(half),
                false => node,
            };
            let low = self.ite(
                half(condition, asked, asked.low),
                half(yes, rows[1], rows[1].low),
                half(no, rows[2], rows[2].low),
            )?;
            let high = self.ite(
                half(condition, asked, asked.high),
                half(yes, rows[1], rows[1].high),
                half(no, rows[2], rows[2].high),
            )?;
            self.branch(variable, low, high)?
        };
        self.remember(condition, yes, no, result);
        Ok(result)
    }

    /// [`Diagram::ite`] if the condition is a chain above both branches: each node decides one side or leads to the
    /// next, as in a comparison with a constant. Only the ends are cached.
    fn ite_along(
        &mut self,
        condition: Node,
        yes: Node,
        no: Node,
        top_of_branches: Variable,
    ) -> Result<Node, LimitReached> {
        let chosen = |value: u32| if value == TRUE.0 { yes } else { no };
        let mut links = Links::new();
        let mut rest = condition;
        loop {
            let row = self.row(rest);
            if row.variable >= top_of_branches || (row.low > TRUE.0) == (row.high > TRUE.0) {
                break;
            }
            let decides_low = row.low <= TRUE.0;
            let (decided, next) = match decides_low {
                true => (row.low, row.high),
                false => (row.high, row.low),
            };
            if !links.add(row.variable, chosen(decided), decides_low) {
                break;
            }
            self.count_step()?;
            rest = Node(next);
        }
        let result = self.ite(rest, yes, no)?;
        links.above(self, result)
    }

    /// The function that is `yes` if one of two others is, and `no` otherwise. Both have only these two values,
    /// which are constants.
    ///
    /// Common parts of the two are shared with the result, unlike those of a condition with `TRUE` and `FALSE`. For
    /// a chain of tests that decide one side each, only the result is cached.
    pub(crate) fn either(
        &mut self,
        mut a: Node,
        mut b: Node,
        yes: Node,
        no: Node,
    ) -> Result<Node, LimitReached> {
        debug_assert!(matches!(self.view(yes), View::Leaf(_)));
        let known = |a: Node, b: Node| match () {
            () if a == b || a == yes || b == no => Some(a),
            () if b == yes || a == no => Some(b),
            () => None,
        };
        if let Some(result) = known(a, b) {
            return Ok(result);
        }
        let pair = (a.min(b), a.max(b));
        // No choice by a condition is cached under a constant.
        if let Some(result) = self.recall(yes, pair.0, pair.1)? {
            return Ok(result);
        }
        let mut links = Links::new();
        let mut result = loop {
            let variable = self.top(a).min(self.top(b));
            let ((a0, a1), (b0, b1)) = (self.cofactors(a, variable), self.cofactors(b, variable));
            match (known(a0, b0), known(a1, b1)) {
                (Some(low), Some(high)) => break self.branch(variable, low, high)?,
                (Some(low), None) if links.add(variable, low, true) => (a, b) = (a1, b1),
                (None, Some(high)) if links.add(variable, high, false) => (a, b) = (a0, b0),
                _ => {
                    let low = self.either(a0, b0, yes, no)?;
                    let high = self.either(a1, b1, yes, no)?;
                    break self.branch(variable, low, high)?;
                }
            }
            self.count_step()?;
        };
        result = links.above(self, result)?;
        self.remember(yes, pair.0, pair.1, result);
        Ok(result)
    }

    /// The function whose value is chosen from the values of two others: that of `a` if `keeps` is true for the
    /// two, else that of `b`.
    ///
    /// `tag` identifies the operation; the same tag must always have the same `keeps`.
    pub(crate) fn choose_pointwise(
        &mut self,
        tag: Tag,
        keeps: fn(u32, u32) -> bool,
        a: Node,
        b: Node,
    ) -> Result<Node, LimitReached> {
        if a == b {
            return Ok(a);
        }
        let variable = match (self.view(a), self.view(b)) {
            (View::Leaf(value_a), View::Leaf(value_b)) => {
                return Ok(if keeps(value_a, value_b) { a } else { b });
            }
            _ => self.top(a).min(self.top(b)),
        };
        let operation = Node(FIRST_TAG + tag as u32);
        if let Some(result) = self.recall(operation, a, b)? {
            return Ok(result);
        }
        let [(a0, a1), (b0, b1)] = [a, b].map(|node| self.cofactors(node, variable));
        let low = self.choose_pointwise(tag, keeps, a0, b0)?;
        let high = self.choose_pointwise(tag, keeps, a1, b1)?;
        let result = self.branch(variable, low, high)?;
        self.remember(operation, a, b, result);
        Ok(result)
    }

    /// Counts one step.
    pub(crate) fn count_step(&mut self) -> Result<(), LimitReached> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(LimitReached::Steps)?;
        if self.steps_left.is_multiple_of(STEPS_BETWEEN_CHECKS) {
            self.stop.check()?;
        }
        Ok(())
    }

    /// Checks for cancellation now and then: to be called in loops that may create no nodes.
    pub(crate) fn tick(&mut self) -> Result<(), LimitReached> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(TICKS_BETWEEN_CHECKS) {
            self.stop.check()?;
        }
        Ok(())
    }

    /// An error if the caller has cancelled.
    pub(crate) fn check_stop(&self) -> Result<(), LimitReached> {
        self.stop.check()
    }

    /// A share of the memory for results outside of the diagram.
    pub(crate) fn share(&self) -> Share {
        self.stop.share()
    }

    /// A cached result. Each lookup counts for [`LimitReached::Steps`].
    fn recall(&mut self, a: Node, b: Node, c: Node) -> Result<Option<Node>, LimitReached> {
        self.count_step()?;
        let known = self.memory[self.slot(a, b, c)];
        let is_known = (known.condition, known.yes, known.no) == (a, b, c);
        Ok(is_known.then_some(known.result))
    }

    fn remember(&mut self, condition: Node, yes: Node, no: Node, result: Node) {
        let slot = self.slot(condition, yes, no);
        self.memory[slot] = Remembered {
            condition,
            yes,
            no,
            result,
        };
    }

    fn slot(&self, a: Node, b: Node, c: Node) -> usize {
        hash3(a.0, b.0, c.0) as usize & (self.memory.len() - 1)
    }

    /// The negation of a condition.
    pub(crate) fn not(&mut self, condition: Node) -> Result<Node, LimitReached> {
        self.ite(condition, FALSE, TRUE)
    }

    /// The two cofactors of a function: for 0 and for 1.
    pub(crate) fn cofactors(&self, node: Node, variable: Variable) -> (Node, Node) {
        let row = self.row(node);
        if row.variable == variable {
            (Node(row.low), Node(row.high))
        } else {
            (node, node)
        }
    }

    fn row(&self, node: Node) -> Row {
        self.rows[node.0 as usize]
    }

    /// The node of a row. Inlined, because it is the inner loop of nearly all that the prover does.
    #[inline(always)]
    fn intern(&mut self, row: Row) -> Result<Node, LimitReached> {
        let hash = row.hash() as usize;
        loop {
            let mask = self.unique.len() - 1;
            let mut slot = hash & mask;
            // There is no row `EMPTY`.
            while let Some(known) = self.rows.get(self.unique[slot] as usize) {
                if *known == row {
                    return Ok(Node(self.unique[slot]));
                }
                slot = (slot + 1) & mask;
            }
            if self.rows.len() < self.room {
                let number = self.rows.len() as u32;
                self.rows.push(row);
                self.unique[slot] = number;
                return Ok(Node(number));
            }
            self.make_room()?;
        }
    }

    /// Makes room for at least one row.
    #[cold]
    fn make_room(&mut self) -> Result<(), LimitReached> {
        let len = self.rows.len();
        if len >= self.max_nodes {
            return Err(LimitReached::Nodes);
        }
        self.stop.check()?;
        if len * 2 > self.unique.len() {
            // With the larger tables, while the smaller ones are still there.
            self.share.set(3 * self.len_bytes())?;
            self.grow();
            self.share.set(self.len_bytes())?;
        }
        self.room = (len + NODES_BETWEEN_CHECKS)
            .min(self.unique.len() / 2 + 1)
            .min(self.max_nodes);
        Ok(())
    }

    fn place(&mut self, number: u32, hash: u32) {
        let mask = self.unique.len() - 1;
        let mut slot = hash as usize & mask;
        while self.unique[slot] != EMPTY {
            slot = (slot + 1) & mask;
        }
        self.unique[slot] = number;
    }

    fn grow(&mut self) {
        self.unique = vec![EMPTY; self.unique.len() * 2];
        for number in 0..self.rows.len() {
            let row = self.rows[number];
            self.place(number as u32, row.hash());
        }
        let nothing = Remembered {
            condition: FALSE,
            yes: FALSE,
            no: FALSE,
            result: FALSE,
        };
        let slots = (self.unique.len() / SLOTS_PER_RESULT).min(MAX_MEMORY_SLOTS);
        if slots > self.memory.len() {
            self.memory = vec![nothing; slots];
        }
    }
}

/// Mixes three words; the low bits depend on all of them.
fn hash3(a: u32, b: u32, c: u32) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (u64::from(a) << 32 | u64::from(b)).wrapping_mul(ODD) ^ u64::from(c);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(ODD);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The truth table of a function of the first four variables.
    fn values(diagram: &Diagram, node: Node) -> [u32; 16] {
        std::array::from_fn(|input| {
            let mut node = node;
            loop {
                match diagram.view(node) {
                    View::Leaf(value) => return value,
                    View::Branch {
                        variable,
                        low,
                        high,
                    } => {
                        node = if input >> variable.0 & 1 == 1 {
                            high
                        } else {
                            low
                        };
                    }
                }
            }
        })
    }

    #[test]
    fn ite_is_pointwise_and_equal_functions_are_equal_nodes() {
        let mut diagram = Diagram::new(1 << 16, 1 << 20, Stop::default());
        let v: Vec<Node> = (0..4)
            .map(|v| diagram.variable(Variable(v)).unwrap())
            .collect();
        let five = diagram.leaf(5).unwrap();
        let and = diagram.ite(v[0], v[2], FALSE).unwrap();
        let or = diagram.ite(v[1], TRUE, and).unwrap();
        let function = diagram.ite(or, five, v[3]).unwrap();
        for (input, value) in values(&diagram, function).into_iter().enumerate() {
            let bit = |n: usize| input >> n & 1 == 1;
            let expected = if bit(1) || bit(0) && bit(2) {
                5
            } else {
                u32::from(bit(3))
            };
            assert_eq!(value, expected);
        }
        // The same function, composed in another order.
        let inner = diagram.ite(v[2], five, v[3]).unwrap();
        let outer = diagram.ite(v[0], inner, v[3]).unwrap();
        assert_eq!(diagram.ite(v[1], five, outer).unwrap(), function);
    }

    #[test]
    fn the_limit_is_an_error() {
        let mut diagram = Diagram::new(10, 1 << 20, Stop::default());
        let made: Vec<_> = (0..20).map(|v| diagram.variable(Variable(v))).collect();
        assert_eq!(made[19], Err(LimitReached::Nodes));
        assert_eq!(diagram.len(), 10);
    }
}
