//! Ordered decision diagrams: a decision that tests every word once, in one order.
//!
//! A rule list such as "arg1 is 1, or arg1 is 2 and arg0 below 5, or arg1 is 7" tests `arg1` several times if it is
//! lowered as written. An ordered diagram - an interval decision diagram with boolean nodes for questions that are
//! not about intervals, in the family of Bryant's reduced ordered diagrams - tests each word once: a node splits all
//! values of one word into runs, and nodes below it do not test the word again. For a given order the diagram of a
//! function is unique, so equal parts are shared and dead alternatives disappear.
//!
//! Parts of a condition are combined in pairs, and long lists of cases in halves, so `n` values with an action each
//! take `n log n` steps. Each new diagram reuses the memory of the one before.
//!
//! Some functions have diagrams that are exponentially larger than their formulas. Building therefore stops with
//! `None` when its budget is used up; the caller then lowers directly.

use tamis_abi::Word;

use crate::dag::{Dag, NodeId, Question};
use crate::direct::runs;
use crate::expected_calls::ExpectedCall;
use crate::formula::Formula;
use crate::hash::{Places, hash_of_words};
use crate::split::{Effort, Expected, Point, has_choice, split};
use crate::tree::Run;

/// The most boolean variables; together with the number of words it bounds the recursion.
const MAX_QUESTIONS: usize = 64;

/// The longest list of cases that is processed sequentially.
const FEW_CASES: usize = 8;

/// The order of words: the first is tested first.
pub(crate) type Order = [Word; Word::COUNT];

/// One alternative of a decision: where the formula holds and no earlier one does, the filter returns `ret`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Case {
    /// The condition.
    pub(crate) when: Formula,
    /// The value that the filter returns.
    pub(crate) ret: u32,
}

/// The index of a diagram node; children have smaller ids than parents.
type Id = u32;

/// The variable that a node decides by: the value of a word, or the answer to a question about it. Variables are
/// numbered in the order of tests.
type Variable = (Word, Option<Question>);

#[derive(Clone, Copy, Debug)]
enum Node {
    /// Not decided: the condition does not hold, or none of some cases does.
    Open,
    /// Decided. In a condition that holds, the value is [`HOLDS`].
    Leaf(u32),
    /// By the value of a word: the range of its runs among those of all nodes.
    Split { variable: u32, from: u32, to: u32 },
    /// By the answer to a question.
    Choice { variable: u32, yes: Id, no: Id },
}

impl Node {
    /// The runs of a split, wherever these are stored; other nodes have none.
    fn runs(self, runs: &[DiagramRun]) -> &[DiagramRun] {
        match self {
            Node::Split { from, to, .. } => &runs[from as usize..to as usize],
            Node::Open | Node::Leaf(_) | Node::Choice { .. } => &[],
        }
    }

    /// A hash of the node's decision; a split is hashed by its runs.
    fn hash(self, own: &[DiagramRun]) -> u64 {
        let packed = |first: u32, second: u32| u64::from(first) << 32 | u64::from(second);
        match self {
            Node::Open => hash_of_words([0]),
            Node::Leaf(ret) => hash_of_words([1, u64::from(ret)]),
            Node::Split { variable, .. } => {
                let own = own.iter().map(|(first, id)| packed(*first, *id));
                hash_of_words(std::iter::once(u64::from(variable)).chain(own))
            }
            Node::Choice { variable, yes, no } => {
                hash_of_words([u64::from(variable), packed(yes, no)])
            }
        }
    }

    /// Whether both decide the same. The caller gets this node's runs before it compares several others, so that
    /// memcheck sees no branch on fields that a node doesn't have.
    fn is_equal(self, own: &[DiagramRun], other: Node, runs: &[DiagramRun]) -> bool {
        match (self, other) {
            (Node::Open, Node::Open) => true,
            (Node::Leaf(one), Node::Leaf(two)) => one == two,
            (Node::Split { variable, .. }, Node::Split { variable: by, .. }) => {
                variable == by && own == other.runs(runs)
            }
            (
                Node::Choice { variable, yes, no },
                Node::Choice {
                    variable: by,
                    yes: if_yes,
                    no: if_no,
                },
            ) => (variable, yes, no) == (by, if_yes, if_no),
            _ => false,
        }
    }
}

/// The leaves of conditions: a condition does not hold or holds.
const OPEN: Id = 0;
const HOLDS: Id = 1;

/// First value and decision of a run.
type DiagramRun = (u32, Id);

/// A cursor over a node's runs for one word.
#[derive(Clone, Copy)]
struct Column {
    /// The decision of the current run.
    decided: Id,
    /// The range of the runs after it.
    next: u32,
    to: u32,
    /// The first value of the next run; [`Column::END`] if there is none.
    border: u64,
}

impl Column {
    /// Behind all values.
    const END: u64 = 1 << 32;
}

/// The index of the run of a split that contains a value.
fn last_from(runs: &[DiagramRun], value: u32) -> usize {
    /// The most runs that are searched sequentially.
    const FEW: usize = 8;
    if runs.len() > FEW {
        return runs.partition_point(|run| run.0 <= value) - 1;
    }
    let after = runs.iter().skip(1);
    after.take_while(|run| run.0 <= value).count()
}

/// The samples that reach each node.
#[derive(Debug, Default)]
struct Arriving {
    /// By run of a split, the weight of the samples that reach it; empty if the samples were not evaluated.
    weights: Vec<u64>,
    /// By node, the first entry of its list of samples; only for the thorough effort.
    first: Vec<u32>,
    entries: Vec<Entry>,
}

/// A sample that reaches a node, and the node's next entry.
#[derive(Clone, Copy, Debug)]
struct Entry {
    sample: u32,
    next: u32,
}

impl Arriving {
    /// The end of a list.
    const END: u32 = u32::MAX;

    fn clear(&mut self) {
        self.weights.clear();
        self.first.clear();
        self.entries.clear();
    }

    fn add(&mut self, node: Id, sample: u32) {
        if let Some(first) = self.first.get_mut(node as usize) {
            let next = *first;
            *first = self.entries.len() as u32;
            self.entries.push(Entry { sample, next });
        }
    }

    /// The samples that reach a node.
    fn at(&self, node: Id) -> impl Iterator<Item = usize> {
        let mut entry = self.first.get(node as usize).copied();
        std::iter::from_fn(move || {
            let Entry { sample, next } = *self.entries.get(entry? as usize)?;
            entry = Some(next);
            Some(sample as usize)
        })
    }
}

/// The values of a word in the samples that reach a node.
struct ArrivingValues<'a> {
    arriving: &'a Arriving,
    samples: &'a [ExpectedCall],
    node: Id,
    word: Word,
    /// The runs of the node, and the weight of the samples that reach each of them.
    runs: &'a [DiagramRun],
    weights: &'a [u64],
}

impl Expected for ArrivingValues<'_> {
    fn whole(&self) -> u64 {
        self.weights.iter().sum()
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        let samples = self.arriving.at(self.node).map(|at| &self.samples[at]);
        samples.map(|sample| Point {
            value: sample.word(self.word),
            weight: sample.weight,
        })
    }

    fn weigh(&self, line: &mut [Run]) {
        let mut at = 0;
        for (run, weight) in self.runs.iter().zip(self.weights) {
            at += usize::from(line.get(at + 1).is_some_and(|next| next.first <= run.0));
            line[at].weight += weight;
        }
    }
}

/// A decision as a diagram. It is built repeatedly, for other lists and in other orders, and reuses its memory.
#[derive(Debug, Default)]
pub(crate) struct Diagram {
    variables: Vec<Variable>,
    nodes: Vec<Node>,
    /// The runs of all splits, for each of them ascending from 0.
    runs: Vec<DiagramRun>,
    /// The runs so far of the unfinished splits, the innermost last.
    open: Vec<DiagramRun>,
    /// The parts so far of the unfinished formulas, the innermost last.
    parts: Vec<Id>,
    /// Indices of the nodes, by their decisions.
    known: Places,
    /// Results of [`choose`](Self::choose), by its arguments.
    chosen: Vec<([Id; 3], Id)>,
    known_choices: Places,
    budget: u64,
    root: Id,
    /// By node, whether it is reachable from the root.
    wanted: Vec<bool>,
    /// Whether the lowering of any split depends on the samples.
    depends_on_samples: bool,
    arriving: Arriving,
}

impl Diagram {
    /// Builds the diagram of the first case that holds, else `default`, with words in this order. `None` if that
    /// takes more than `budget` elementary steps; then there is no diagram to emit.
    pub(crate) fn build(
        &mut self,
        cases: &[Case],
        default: u32,
        order: &Order,
        budget: u64,
    ) -> Option<()> {
        self.begin(cases, order, budget)?;
        let default = self.leaf(default);
        self.root = self.cases(cases, default)?;
        self.find_wanted();
        Some(())
    }

    /// The decision of the first case that holds, else `rest`. Each half of a long list is decided separately, so
    /// that a value takes part in a logarithmic number of steps.
    fn cases(&mut self, cases: &[Case], rest: Id) -> Option<Id> {
        if cases.len() > FEW_CASES {
            let (first, second) = cases.split_at(cases.len() / 2);
            let first = self.cases(first, OPEN)?;
            let second = self.cases(second, rest)?;
            return self.choose(first, first, second);
        }
        let mut decision = rest;
        for case in cases.iter().rev() {
            let condition = self.formula(&case.when)?;
            let ret = self.leaf(case.ret);
            decision = self.choose(condition, ret, decision)?;
        }
        Some(decision)
    }

    fn begin(&mut self, cases: &[Case], order: &Order, budget: u64) -> Option<()> {
        let mut questions: Vec<(Word, Question)> = Vec::new();
        let mut open: Vec<&Formula> = cases.iter().map(|case| &case.when).collect();
        while let Some(formula) = open.pop() {
            match formula {
                Formula::All(parts) | Formula::Any(parts) => open.extend(parts),
                Formula::Asked { word, question, .. } => {
                    if !questions.contains(&(*word, *question)) {
                        questions.push((*word, *question));
                    }
                    if questions.len() > MAX_QUESTIONS {
                        return None;
                    }
                }
                Formula::True | Formula::False | Formula::In(..) => {}
            }
        }
        // The worklist is a stack: reverse the questions into the order of the formula.
        questions.reverse();
        self.variables.clear();
        for (place, word) in order.iter().enumerate() {
            self.variables.push((*word, None));
            for (asked, question) in &questions {
                let other = match question {
                    Question::EqWord(other) | Question::GeWord(other) => *other,
                    _ => *asked,
                };
                let settled = |word: Word| order[..=place].contains(&word);
                if (*asked == *word || other == *word) && settled(*asked) && settled(other) {
                    self.variables.push((*asked, Some(*question)));
                }
            }
        }
        self.nodes.clear();
        self.runs.clear();
        self.open.clear();
        self.parts.clear();
        self.known.clear();
        self.chosen.clear();
        self.known_choices.clear();
        self.budget = budget;
        // In the order of their ids.
        self.intern(Node::Open);
        self.leaf(1);
        Some(())
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.budget = self.budget.checked_sub(steps as u64)?;
        Some(())
    }

    fn leaf(&mut self, ret: u32) -> Id {
        self.intern(Node::Leaf(ret))
    }

    fn variable(&self, wanted: Variable) -> u32 {
        let place = self.variables.iter().position(|known| *known == wanted);
        place.expect("every word and every question of the formula is a variable") as u32
    }

    fn formula(&mut self, formula: &Formula) -> Option<Id> {
        Some(match formula {
            Formula::True => HOLDS,
            Formula::False => OPEN,
            Formula::All(parts) => {
                self.combine(parts, |diagram, a, b| diagram.choose(a, b, OPEN))?
            }
            Formula::Any(parts) => {
                self.combine(parts, |diagram, a, b| diagram.choose(a, HOLDS, b))?
            }
            Formula::In(word, set) => {
                self.spend(set.intervals().len())?;
                let start = self.open.len();
                self.open.extend(runs(set, HOLDS, OPEN));
                self.split(self.variable((*word, None)), start)
            }
            Formula::Asked {
                word,
                question,
                answer,
            } => {
                let variable = self.variable((*word, Some(*question)));
                let (yes, no) = if *answer {
                    (HOLDS, OPEN)
                } else {
                    (OPEN, HOLDS)
                };
                self.choice(variable, yes, no)
            }
        })
    }

    /// Combines neighbours, then the results, and so on, so that every part takes part in `log n` steps.
    fn combine(
        &mut self,
        parts: &[Formula],
        mut two: impl FnMut(&mut Diagram, Id, Id) -> Option<Id>,
    ) -> Option<Id> {
        let start = self.parts.len();
        for part in parts {
            let id = self.formula(part)?;
            self.parts.push(id);
        }
        let mut left = parts.len();
        while left > 1 {
            for pair in 0..left / 2 {
                let [one, other] = [0, 1].map(|side| self.parts[start + 2 * pair + side]);
                self.parts[start + pair] = two(self, one, other)?;
            }
            if left % 2 == 1 {
                self.parts[start + left / 2] = self.parts[start + left - 1];
            }
            left = left.div_ceil(2);
        }
        let all = self.parts[start];
        self.parts.truncate(start);
        Some(all)
    }

    /// The decision `no` where the condition is open and `yes` where it is decided, with any value. Recurses at most
    /// once per variable.
    #[inline(always)]
    fn choose(&mut self, condition: Id, yes: Id, no: Id) -> Option<Id> {
        match self.nodes[condition as usize] {
            Node::Open => Some(no),
            Node::Leaf(_) => Some(yes),
            _ if yes == no => Some(yes),
            _ => self.choose_among([condition, yes, no]),
        }
    }

    /// The same for a condition that is not a leaf.
    #[inline(never)]
    fn choose_among(&mut self, three: [Id; 3]) -> Option<Id> {
        let [condition, yes, no] = three;
        let hash = hash_of_words([u64::from(condition), u64::from(yes) << 32 | u64::from(no)]);
        let known = self
            .known_choices
            .find(hash, |place| self.chosen[place].0 == three);
        if let Some(place) = known {
            return Some(self.chosen[place].1);
        }
        let top = self.top(condition).min(self.top(yes)).min(self.top(no));
        let result = if self.variables[top as usize].1.is_some() {
            self.spend(1)?;
            let [yes_c, yes_y, yes_n] = three.map(|id| self.answer(id, top, true));
            let [no_c, no_y, no_n] = three.map(|id| self.answer(id, top, false));
            let if_yes = self.choose(yes_c, yes_y, yes_n)?;
            let if_no = self.choose(no_c, no_y, no_n)?;
            self.choice(top, if_yes, if_no)
        } else {
            self.choose_by_runs(three, top)?
        };
        self.known_choices.insert(hash, self.chosen.len());
        self.chosen.push((three, result));
        Some(result)
    }

    /// [`choose`](Self::choose) run by run, if the first variable is a word.
    fn choose_by_runs(&mut self, three: [Id; 3], top: u32) -> Option<Id> {
        let start = self.open.len();
        let steps = match three.map(|id| self.top(id) == top) {
            [true, false, false] => self.choose_by_one(three, 0)?,
            [false, true, false] => self.choose_by_one(three, 1)?,
            [false, false, true] => self.choose_by_one(three, 2)?,
            _ => self.choose_by_all(three, top)?,
        };
        self.spend(steps)?;
        Some(self.split(top, start))
    }

    /// Pushes the runs if only one of the three decides by the word; returns the number of steps.
    fn choose_by_one(&mut self, mut three: [Id; 3], which: usize) -> Option<usize> {
        let Node::Split { from, to, .. } = self.nodes[three[which] as usize] else {
            unreachable!("what decides by a word is a split");
        };
        let mut last = None;
        for at in from..to {
            let (first, id) = self.runs[at as usize];
            three[which] = id;
            let [condition, yes, no] = three;
            let chosen = self.choose(condition, yes, no)?;
            if last.replace(chosen) != Some(chosen) {
                self.open.push((first, chosen));
            }
        }
        Some((to - from) as usize)
    }

    /// Pushes the runs if several of the three decide by the word; returns the number of steps.
    fn choose_by_all(&mut self, three: [Id; 3], top: u32) -> Option<usize> {
        let [mut condition, mut yes, mut no] = three.map(|id| self.column(id, top));
        let mut first = 0;
        let mut last = None;
        let mut steps = 0;
        while first < Column::END {
            steps += 1;
            let chosen = self.choose(condition.decided, yes.decided, no.decided)?;
            if last.replace(chosen) != Some(chosen) {
                self.open.push((first as u32, chosen));
            }
            first = condition.border.min(yes.border).min(no.border);
            for column in [&mut condition, &mut yes, &mut no] {
                if column.border == first {
                    self.advance(column);
                }
            }
        }
        Some(steps)
    }

    /// The first variable that a node tests; `u32::MAX` if it tests none.
    #[inline]
    fn top(&self, id: Id) -> u32 {
        match self.nodes[id as usize] {
            Node::Open | Node::Leaf(_) => u32::MAX,
            Node::Split { variable, .. } | Node::Choice { variable, .. } => variable,
        }
    }

    fn answer(&self, id: Id, asked: u32, answer: bool) -> Id {
        match self.nodes[id as usize] {
            Node::Choice { variable, yes, no } if variable == asked => {
                if answer {
                    yes
                } else {
                    no
                }
            }
            _ => id,
        }
    }

    /// The cursor over a node's decisions by the values of this word, at the first run.
    #[inline]
    fn column(&self, id: Id, by: u32) -> Column {
        let mut column = Column {
            decided: id,
            next: 0,
            to: 0,
            border: Column::END,
        };
        if let Node::Split { variable, from, to } = self.nodes[id as usize]
            && variable == by
        {
            (column.next, column.to) = (from, to);
            self.advance(&mut column);
        }
        column
    }

    /// Moves to the next run, if there is one.
    #[inline]
    fn advance(&self, column: &mut Column) {
        if column.next < column.to {
            column.decided = self.runs[column.next as usize].1;
            column.next += 1;
            column.border = match column.next < column.to {
                true => u64::from(self.runs[column.next as usize].0),
                false => Column::END,
            };
        }
    }

    /// The split by the open runs from `start` on, which differ from their neighbours.
    fn split(&mut self, variable: u32, start: usize) -> Id {
        if let [(_, only)] = self.open[start..] {
            self.open.truncate(start);
            return only;
        }
        let from = self.runs.len() as u32;
        self.runs.extend_from_slice(&self.open[start..]);
        self.open.truncate(start);
        let to = self.runs.len() as u32;
        self.intern(Node::Split { variable, from, to })
    }

    fn choice(&mut self, variable: u32, yes: Id, no: Id) -> Id {
        if yes == no {
            return yes;
        }
        self.intern(Node::Choice { variable, yes, no })
    }

    /// The id of the node: that of an equal earlier node, or a new one. The runs of a split are the last ones; if the
    /// node is not added, they are dropped.
    fn intern(&mut self, node: Node) -> Id {
        let Diagram {
            nodes, runs, known, ..
        } = self;
        let own = node.runs(runs);
        let eq = |id: usize| node.is_equal(own, nodes[id], runs);
        let Some(id) = known.find_or_insert(node.hash(own), nodes.len(), eq) else {
            nodes.push(node);
            return nodes.len() as Id - 1;
        };
        if let Node::Split { from, .. } = node {
            runs.truncate(from as usize);
        }
        id as Id
    }

    /// The runs of a split.
    fn runs(&self, from: u32, to: u32) -> &[DiagramRun] {
        &self.runs[from as usize..to as usize]
    }

    /// Turns the diagram into questions. Splits become decisions by value; each value has the weight of the samples
    /// that reach the node with it.
    pub(crate) fn emit(
        &mut self,
        dag: &mut Dag,
        samples: &[ExpectedCall],
        effort: Effort,
    ) -> NodeId {
        if self.depends_on_samples {
            self.lead(samples, effort);
        }
        let mut emitted: Vec<NodeId> = Vec::with_capacity(self.nodes.len());
        // Unreachable nodes get any id: no node refers to them.
        let unused = dag.ret(0);
        for (id, (node, is_wanted)) in (0..=self.root).zip(self.nodes.iter().zip(&self.wanted)) {
            let child = |id: Id| emitted[id as usize];
            let made = match *node {
                _ if !is_wanted => unused,
                Node::Open => unused,
                Node::Leaf(ret) => dag.ret(ret),
                Node::Choice { variable, yes, no } => {
                    let (word, question) = self.question(variable);
                    dag.ask(word, question, child(yes), child(no))
                }
                Node::Split { variable, from, to } => {
                    let word = self.variables[variable as usize].0;
                    let runs = self.runs(from, to);
                    let weights = match self.depends_on_samples {
                        true => &self.arriving.weights[from as usize..to as usize],
                        false => &[],
                    };
                    let values = ArrivingValues {
                        arriving: &self.arriving,
                        samples,
                        node: id,
                        word,
                        runs,
                        weights,
                    };
                    let decided = runs.iter().map(|(first, id)| (*first, child(*id)));
                    split(dag, word, decided, &values, effort)
                }
            };
            emitted.push(made);
        }
        emitted[self.root as usize]
    }

    /// The question that a choice decides by.
    fn question(&self, variable: u32) -> (Word, Question) {
        let (word, question) = self.variables[variable as usize];
        (word, question.expect("a choice is about a question"))
    }

    /// Evaluates the diagram for the samples, and records the nodes that they reach.
    fn lead(&mut self, samples: &[ExpectedCall], effort: Effort) {
        let mut arriving = std::mem::take(&mut self.arriving);
        arriving.clear();
        arriving.weights.resize(self.runs.len(), 0);
        if effort == Effort::Thorough {
            arriving.first.resize(self.nodes.len(), Arriving::END);
        }
        for (number, sample) in (0..).zip(samples) {
            let mut id = self.root;
            loop {
                id = match self.nodes[id as usize] {
                    Node::Open | Node::Leaf(_) => break,
                    Node::Choice { variable, yes, no } => {
                        let (word, question) = self.question(variable);
                        match sample.answer(word, question) {
                            true => yes,
                            false => no,
                        }
                    }
                    Node::Split { variable, from, to } => {
                        arriving.add(id, number);
                        let value = sample.word(self.variables[variable as usize].0);
                        let runs = self.runs(from, to);
                        let run = last_from(runs, value);
                        arriving.weights[from as usize + run] += sample.weight;
                        runs[run].1
                    }
                };
            }
        }
        self.arriving = arriving;
    }

    /// Marks the nodes that are reachable from the root.
    fn find_wanted(&mut self) {
        self.depends_on_samples = false;
        self.wanted.clear();
        self.wanted.resize(self.nodes.len(), false);
        self.wanted[self.root as usize] = true;
        for id in (0..=self.root as usize).rev() {
            if !self.wanted[id] {
                continue;
            }
            match self.nodes[id] {
                Node::Open | Node::Leaf(_) => {}
                Node::Choice { yes, no, .. } => {
                    self.wanted[yes as usize] = true;
                    self.wanted[no as usize] = true;
                }
                Node::Split { from, to, .. } => {
                    let runs = &self.runs[from as usize..to as usize];
                    self.depends_on_samples |= has_choice(runs, |run| *run);
                    for (_, child) in runs {
                        self.wanted[*child as usize] = true;
                    }
                }
            }
        }
    }
}
