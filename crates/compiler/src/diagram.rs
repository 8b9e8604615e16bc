//! Ordered decision diagrams: a decision that asks about every word once, in one order.
//!
//! A rule list such as "arg1 is 1, or arg1 is 2 and arg0 below 5, or arg1 is 7" asks about `arg1` again
//! and again if it is lowered as written. An ordered diagram - an interval decision diagram with
//! boolean nodes for what is not an interval, in the family of Bryant's reduced ordered diagrams - asks
//! each word once: a node splits all values of one word into runs, and below it the word is settled.
//! For a given order the diagram of a function is unique, so sharing and the discovery of dead
//! alternatives come for free.
//!
//! The price: some functions have diagrams that are exponentially larger than their formulas. Building
//! stops with `None` when its budget is used up; the caller then lowers directly.

use std::cell::OnceCell;
use std::hash::BuildHasherDefault;

use tamis_abi::Word;

use crate::dag::{Dag, NodeId, Question};
use crate::formula::Formula;
use crate::hash::{FastMap, hash_of};
use crate::samples::Sample;
use crate::split::{Effort, Point, Points, split};

/// The most boolean variables; bounds the recursion together with the number of words.
const MAX_QUESTIONS: usize = 64;

/// How many nodes there is room for at first; most diagrams have fewer.
const FEW_NODES: usize = 28;

/// The order in which words are asked about: the first is asked first.
pub(crate) type Order = [Word; Word::COUNT];

/// One alternative of a decision: where the formula holds and no earlier one does, this is returned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Case {
    /// The condition.
    pub(crate) when: Formula,
    /// What the filter returns.
    pub(crate) ret: u32,
}

/// The decision of the first case that holds, else `default`, asking about words in this order.
/// `None` if that takes more than `budget` elementary steps.
pub(crate) fn build(cases: &[Case], default: u32, order: &Order, budget: u64) -> Option<Decision> {
    let mut diagram = Diagram::new(cases, order, budget)?;
    let mut root = diagram.leaf(default);
    for case in cases.iter().rev() {
        let condition = diagram.formula(&case.when)?;
        let ret = diagram.leaf(case.ret);
        root = diagram.choose(condition, ret, root)?;
    }
    Some(Decision { diagram, root })
}

/// A decision as a diagram.
pub(crate) struct Decision {
    diagram: Diagram,
    root: Id,
}

impl Decision {
    /// Adds the decision to a graph.
    pub(crate) fn emit(&self, dag: &mut Dag, samples: &[Sample], effort: Effort) -> NodeId {
        self.diagram.emit(dag, self.root, samples, effort)
    }
}

/// The index of a diagram node; children have smaller ids than parents.
type Id = u32;

/// What a node decides by: the value of a word, or the answer to a question about it. Variables are
/// numbered in the order of asking.
type Variable = (Word, Option<Question>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    /// Decided. In conditions 1 stands for true and 0 for false.
    Leaf(u32),
    /// By the value of a word: the place of its runs among those of all nodes.
    Split { variable: u32, from: u32, to: u32 },
    /// By the answer to a question.
    Choice { variable: u32, yes: Id, no: Id },
}

/// First value and decision of a run.
type Run = (u32, Id);

/// What a node decides by the value of a word: the runs of a split, or one for all values.
#[derive(Clone, Copy)]
enum Column {
    One(Id),
    Many { from: u32, to: u32 },
}

/// Which samples come to which node: a list per node, all in one place.
struct Arriving {
    /// By node, its first entry.
    first: Vec<u32>,
    entries: Vec<Entry>,
}

/// A sample that comes to a node, and the node's next entry.
#[derive(Clone, Copy)]
struct Entry {
    sample: u32,
    next: u32,
}

impl Arriving {
    /// The index of no entry.
    const END: u32 = u32::MAX;

    fn new(nodes: usize, samples: usize) -> Arriving {
        Arriving {
            first: vec![Arriving::END; nodes],
            entries: Vec::with_capacity(4 * samples),
        }
    }

    fn add(&mut self, node: Id, sample: usize) {
        let first = &mut self.first[node as usize];
        self.entries.push(Entry {
            sample: sample as u32,
            next: *first,
        });
        *first = self.entries.len() as u32 - 1;
    }

    /// The samples that come to a node.
    fn at(&self, node: usize) -> impl Iterator<Item = usize> {
        let mut entry = self.first[node];
        std::iter::from_fn(move || {
            let Entry { sample, next } = *self.entries.get(entry as usize)?;
            entry = next;
            Some(sample as usize)
        })
    }
}

struct Diagram {
    variables: Vec<Variable>,
    nodes: Vec<Node>,
    /// The runs of all splits, for each of them ascending from 0.
    runs: Vec<Run>,
    /// The runs so far of the splits that are being made, the innermost last.
    open: Vec<Run>,
    /// The leaves and choices.
    known: FastMap<Node, Id>,
    /// The splits, by a hash of variable and runs, or by the next number that was free.
    splits: FastMap<u64, Id>,
    chosen: FastMap<(Id, Id, Id), Id>,
    budget: u64,
}

impl Diagram {
    fn new(cases: &[Case], order: &Order, budget: u64) -> Option<Diagram> {
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
        // The worklist is a stack: turn the questions back into the order of the formula.
        questions.reverse();
        let mut variables = Vec::with_capacity(Word::COUNT + questions.len());
        for (place, word) in order.iter().enumerate() {
            variables.push((*word, None));
            for (asked, question) in &questions {
                let other = match question {
                    Question::EqWord(other) | Question::GeWord(other) => *other,
                    _ => *asked,
                };
                let settled = |word: Word| order[..=place].contains(&word);
                if (*asked == *word || other == *word) && settled(*asked) && settled(other) {
                    variables.push((*asked, Some(*question)));
                }
            }
        }
        Some(Diagram {
            variables,
            nodes: Vec::with_capacity(FEW_NODES),
            runs: Vec::with_capacity(4 * FEW_NODES),
            open: Vec::with_capacity(FEW_NODES),
            splits: FastMap::with_capacity_and_hasher(FEW_NODES, BuildHasherDefault::default()),
            known: FastMap::with_capacity_and_hasher(FEW_NODES, BuildHasherDefault::default()),
            chosen: FastMap::with_capacity_and_hasher(FEW_NODES, BuildHasherDefault::default()),
            budget,
        })
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
        let (yes, no) = (self.leaf(1), self.leaf(0));
        Some(match formula {
            Formula::True => yes,
            Formula::False => no,
            Formula::All(parts) => self.combine(parts, |diagram, a, b| diagram.choose(a, b, no))?,
            Formula::Any(parts) => {
                self.combine(parts, |diagram, a, b| diagram.choose(a, yes, b))?
            }
            Formula::In(word, set) => {
                self.spend(set.intervals().len())?;
                let start = self.open.len();
                for (first, last) in set.intervals() {
                    if self.open.len() == start && *first > 0 {
                        self.open.push((0, no));
                    }
                    self.open.push((*first, yes));
                    self.open
                        .extend(last.checked_add(1).map(|after| (after, no)));
                }
                self.split(self.variable((*word, None)), start)
            }
            Formula::Asked {
                word,
                question,
                answer,
            } => {
                let variable = self.variable((*word, Some(*question)));
                let (yes, no) = if *answer { (yes, no) } else { (no, yes) };
                self.choice(variable, yes, no)
            }
        })
    }

    /// Combines neighbours, then the results, and so on: every part takes part in `log n` steps.
    fn combine(
        &mut self,
        parts: &[Formula],
        mut two: impl FnMut(&mut Diagram, Id, Id) -> Option<Id>,
    ) -> Option<Id> {
        let mut ids = parts
            .iter()
            .map(|part| self.formula(part))
            .collect::<Option<Vec<Id>>>()?;
        while ids.len() > 1 {
            ids = ids
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => two(self, *a, *b),
                    _ => Some(pair[0]),
                })
                .collect::<Option<Vec<Id>>>()?;
        }
        Some(ids[0])
    }

    /// `yes` where the condition is 1, `no` where it is 0. Recurses once per variable at most.
    fn choose(&mut self, condition: Id, yes: Id, no: Id) -> Option<Id> {
        if let Node::Leaf(value) = self.nodes[condition as usize] {
            return Some(if value == 1 { yes } else { no });
        }
        if yes == no {
            return Some(yes);
        }
        if let Some(known) = self.chosen.get(&(condition, yes, no)) {
            return Some(*known);
        }
        let three = [condition, yes, no];
        let top = three.iter().filter_map(|id| self.top(*id)).min()?;
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
        self.chosen.insert((condition, yes, no), result);
        Some(result)
    }

    /// [`choose`](Self::choose) where the first variable is a word: run by run.
    fn choose_by_runs(&mut self, three: [Id; 3], top: u32) -> Option<Id> {
        let columns = three.map(|id| self.column(id, top));
        let start = self.open.len();
        let mut places = [0; 3];
        let mut first = 0;
        loop {
            self.spend(1)?;
            let [condition, yes, no] =
                std::array::from_fn(|column| self.decided(columns[column], places[column]));
            let chosen = self.choose(condition, yes, no)?;
            if self.open.len() == start || self.open.last().is_none_or(|run| run.1 != chosen) {
                self.open.push((first, chosen));
            }
            let next: [_; 3] =
                std::array::from_fn(|column| self.border(columns[column], places[column] + 1));
            let Some(border) = next.into_iter().flatten().min() else {
                return Some(self.split(top, start));
            };
            for (place, next) in places.iter_mut().zip(next) {
                *place += u32::from(next == Some(border));
            }
            first = border;
        }
    }

    fn top(&self, id: Id) -> Option<u32> {
        match self.nodes[id as usize] {
            Node::Leaf(_) => None,
            Node::Split { variable, .. } | Node::Choice { variable, .. } => Some(variable),
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

    fn column(&self, id: Id, by: u32) -> Column {
        match self.nodes[id as usize] {
            Node::Split { variable, from, to } if variable == by => Column::Many { from, to },
            _ => Column::One(id),
        }
    }

    /// The decision of a column's run.
    fn decided(&self, column: Column, place: u32) -> Id {
        match column {
            Column::One(id) => id,
            Column::Many { from, .. } => self.runs[(from + place) as usize].1,
        }
    }

    /// Where a column's run begins, if there is one.
    fn border(&self, column: Column, place: u32) -> Option<u32> {
        match column {
            Column::Many { from, to } if from + place < to => {
                Some(self.runs[(from + place) as usize].0)
            }
            _ => None,
        }
    }

    /// The split by the runs that were opened from `start` on, of which neighbours differ.
    fn split(&mut self, variable: u32, start: usize) -> Id {
        if let [(_, only)] = self.open[start..] {
            self.open.truncate(start);
            return only;
        }
        let mut hash = hash_of(&(variable, &self.open[start..]));
        while let Some(id) = self.splits.get(&hash) {
            if let Node::Split { from, to, .. } = self.nodes[*id as usize]
                && self.top(*id) == Some(variable)
                && *self.runs(from, to) == self.open[start..]
            {
                self.open.truncate(start);
                return *id;
            }
            hash = hash.wrapping_add(1);
        }
        let from = self.runs.len() as u32;
        self.runs.extend(self.open.drain(start..));
        let to = self.runs.len() as u32;
        let id = self.nodes.len() as Id;
        self.nodes.push(Node::Split { variable, from, to });
        self.splits.insert(hash, id);
        id
    }

    fn choice(&mut self, variable: u32, yes: Id, no: Id) -> Id {
        if yes == no {
            return yes;
        }
        self.intern(Node::Choice { variable, yes, no })
    }

    fn intern(&mut self, node: Node) -> Id {
        *self.known.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() as Id - 1
        })
    }

    /// The runs of a split.
    fn runs(&self, from: u32, to: u32) -> &[Run] {
        &self.runs[from as usize..to as usize]
    }

    /// Turns the diagram below `root` into questions; splits become decisions by value, in which each
    /// value counts as much as the samples that come there with it.
    fn emit(&self, dag: &mut Dag, root: Id, samples: &[Sample], effort: Effort) -> NodeId {
        let wanted = self.below(root);
        let arriving = OnceCell::new();
        let arriving = || arriving.get_or_init(|| self.arriving(root, samples));
        let mut emitted: Vec<NodeId> = Vec::with_capacity(self.nodes.len());
        // What is not wanted gets any node: nothing refers to it.
        let unused = dag.ret(0);
        for (id, node) in self.nodes.iter().enumerate() {
            let child = |id: Id| emitted[id as usize];
            let made = match *node {
                _ if !wanted[id] => unused,
                Node::Leaf(ret) => dag.ret(ret),
                Node::Choice { variable, yes, no } => {
                    let (word, question) = self.question(variable);
                    dag.ask(word, question, child(yes), child(no))
                }
                Node::Split { variable, from, to } => {
                    let word = self.variables[variable as usize].0;
                    let runs = self.runs(from, to).iter();
                    let runs = runs.map(|(first, id)| (*first, child(*id)));
                    let point = |at: usize| {
                        let sample = &samples[at];
                        Point {
                            value: sample.data.word(word),
                            weight: sample.weight,
                        }
                    };
                    let points = || Points::new(arriving().at(id).map(point).collect());
                    split(dag, word, runs, points, effort)
                }
            };
            emitted.push(made);
        }
        emitted[root as usize]
    }

    /// The question that a choice decides by.
    fn question(&self, variable: u32) -> (Word, Question) {
        let (word, question) = self.variables[variable as usize];
        (word, question.expect("a choice is about a question"))
    }

    /// For each node the samples that come there.
    fn arriving(&self, root: Id, samples: &[Sample]) -> Arriving {
        let mut arriving = Arriving::new(self.nodes.len(), samples.len());
        for sample in 0..samples.len() {
            arriving.add(root, sample);
        }
        for id in (0..=root as usize).rev() {
            let mut entry = arriving.first[id];
            while let Some(Entry { sample, next }) = arriving.entries.get(entry as usize).copied() {
                entry = next;
                let data = &samples[sample as usize].data;
                let next = match self.nodes[id] {
                    Node::Leaf(_) => break,
                    Node::Choice { variable, yes, no } => {
                        let (word, question) = self.question(variable);
                        if question.holds(word, data) { yes } else { no }
                    }
                    Node::Split { variable, from, to } => {
                        let value = data.word(self.variables[variable as usize].0);
                        let runs = self.runs(from, to);
                        runs[runs.partition_point(|run| run.0 <= value) - 1].1
                    }
                };
                arriving.add(next, sample as usize);
            }
        }
        arriving
    }

    /// For each node, whether a path from `root` leads to it.
    fn below(&self, root: Id) -> Vec<bool> {
        let mut seen = vec![false; self.nodes.len()];
        seen[root as usize] = true;
        for id in (0..=root as usize).rev() {
            if !seen[id] {
                continue;
            }
            match self.nodes[id] {
                Node::Leaf(_) => {}
                Node::Choice { yes, no, .. } => {
                    seen[yes as usize] = true;
                    seen[no as usize] = true;
                }
                Node::Split { from, to, .. } => {
                    for (_, child) in self.runs(from, to) {
                        seen[*child as usize] = true;
                    }
                }
            }
        }
        seen
    }
}
