//! The dataflow of a graph, updated incrementally as passes change the graph.
//!
//! Passes change a few blocks and then look at all blocks again. A flow therefore stores the inputs of each block:
//! its instructions, its test, and the edges that enter it. After a change it recomputes only the blocks whose inputs
//! changed, and their successors as long as the states that enter them change. The result equals that of a new flow
//! of the changed graph.
//!
//! Blocks that only return a constant have no results, nor have the edges into them: most edges lead there, and no
//! pass needs these results.

use std::ops::Range;

use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::{Op, Operand, Test};

use super::lists::List;
use super::live::may_end;
use super::state::State;
use super::value::Values;

/// The most values and facts per block that may accumulate over all changes before a flow starts again.
const MAX_KEPT: usize = 256;

/// The states in each block of a graph.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The values to which states refer.
    pub(crate) values: Values,
    /// By block, its results.
    blocks: Vec<Known>,
    entry: Option<BlockId>,
    /// The number of updates since the start.
    updates: u32,
    /// The number of names given to blocks.
    names: u32,
    /// The instructions of blocks when they were last processed.
    ops: Vec<Op>,
    edges: Edges,
    /// The edges before the last change, for comparison.
    old_edges: Edges,
}

/// The effect of a block's end on the state. Targets of edges do not matter, except that no results are needed for
/// edges to returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndEffect {
    Return,
    GoOn,
    /// A test, with the outcomes whose results are needed.
    Ask(Test, Operand, [bool; 2]),
}

/// The results for a block.
#[derive(Clone, Debug)]
struct Known {
    /// The block's name in values; it stays when the block's id changes.
    name: u32,
    ops: Range<usize>,
    does: EndEffect,
    /// The range of the edges that enter it.
    edges: Range<usize>,
    /// The last update that found the block reachable.
    updates: u32,
    /// The state on entry; `None` if no input reaches the block.
    entry: Option<State>,
    /// The state before its end.
    last: Option<State>,
    /// The facts on both sides of its branch; `None` if no input takes the side, or if it leads to a return of a
    /// constant.
    sides: [Option<List>; 2],
    /// The outcome of its test, if known.
    answer: Option<bool>,
    /// Whether an instruction writes the value that its destination already holds.
    has_redundant: bool,
    /// Whether its results changed with the last update.
    is_new: bool,
}

/// An edge into a block.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The block where it begins, and that block's name.
    from: BlockId,
    name: u32,
    /// For a side of a branch, the outcome that takes it.
    side: Option<bool>,
}

/// The edges into each block that is not a return, in the order of visits to the blocks where they begin.
#[derive(Debug, Default)]
struct Edges {
    list: Vec<Edge>,
    /// By block, its first edge; with one more entry for the end.
    starts: Vec<usize>,
}

impl Flow {
    /// The state on entry to a block; `None` if no input reaches it, or if it only returns a constant.
    pub(crate) fn entry(&self, id: BlockId) -> Option<State> {
        self.blocks[id.index()].entry
    }

    /// The state after the last instruction of a block, before its end.
    pub(crate) fn at_end(&self, id: BlockId) -> Option<State> {
        self.blocks[id.index()].last
    }

    /// The state on one side of the branch that ends a block; `None` if no input takes that side, or if it leads to a
    /// block that only returns a constant.
    pub(crate) fn along(&self, id: BlockId, holds: bool) -> Option<State> {
        let known = &self.blocks[id.index()];
        let [yes, no] = known.sides;
        let facts = if holds { yes? } else { no? };
        known.last.map(|last| last.with_facts(facts))
    }

    /// The outcome of the test that ends a block, if known.
    pub(crate) fn answer(&self, id: BlockId) -> Option<bool> {
        self.blocks[id.index()].answer
    }

    /// Whether a block has a test of unknown outcome and a single edge into it.
    pub(crate) fn is_undecided(&self, id: BlockId) -> bool {
        let known = &self.blocks[id.index()];
        let is_open = known.entry.is_some() && known.answer.is_none();
        is_open && matches!(known.does, EndEffect::Ask(..)) && self.edges.entering(id).len() == 1
    }

    /// Whether a block has an instruction that writes the value that is already there, and can therefore be removed.
    pub(crate) fn has_redundant(&self, id: BlockId) -> bool {
        self.blocks[id.index()].has_redundant
    }

    /// Applies new ids of blocks; removed blocks have none.
    pub(crate) fn renumber(&mut self, new_ids: &[Option<BlockId>]) {
        let mut ids = new_ids.iter().map(Option::is_some);
        self.blocks.retain(|_| ids.next().unwrap_or(false));
        self.entry = self.entry.and_then(|entry| new_ids[entry.index()]);
    }

    /// Starts again at the next update.
    pub(crate) fn clear(&mut self) {
        self.entry = None;
    }

    /// Computes the states of the present graph, with its blocks in [reverse postorder](Cfg::reverse_postorder).
    /// Linear time.
    pub(crate) fn update(&mut self, graph: &Cfg, order: &[BlockId]) {
        let kept = self.values.len() + self.ops.len();
        if self.entry != Some(graph.entry()) || kept > MAX_KEPT * graph.len() {
            self.values.clear();
            self.blocks.clear();
            self.ops.clear();
            self.names = 0;
            self.updates = 1;
            self.entry = Some(graph.entry());
        }
        let names = self.names..self.names + (graph.len() - self.blocks.len()) as u32;
        self.names = names.end;
        self.blocks.extend(names.map(Known::nothing));
        self.updates += 1;
        std::mem::swap(&mut self.edges, &mut self.old_edges);
        self.edges.find(graph, order, &self.blocks);
        for id in order {
            if !graph.block(*id).is_return() {
                self.visit(graph, *id);
            }
        }
    }

    /// Recomputes a block if its inputs may have changed.
    fn visit(&mut self, graph: &Cfg, id: BlockId) {
        let block = graph.block(id);
        let does = EndEffect::at_end(graph, block.end);
        let edges = self.edges.entering(id);
        let known = &self.blocks[id.index()];
        let is_first = known.updates + 1 != self.updates;
        let has_new_code =
            is_first || does != known.does || self.ops[known.ops.clone()] != block.ops;
        let may_enter_otherwise = is_first
            || !self.edges.are_equal(&edges, &self.old_edges, &known.edges)
            || self.edges.list[edges.clone()]
                .iter()
                .any(|edge| self.blocks[edge.from.index()].is_new);
        let has_new_entry = may_enter_otherwise && {
            let entry = self.arriving(id, edges.clone());
            let known = &mut self.blocks[id.index()];
            let is_equal = are_equal(entry.as_ref(), known.entry.as_ref(), &self.values);
            known.entry = entry;
            !is_equal || is_first
        };
        let known = &mut self.blocks[id.index()];
        known.updates = self.updates;
        known.edges = edges;
        known.is_new = false;
        if has_new_code {
            let start = self.ops.len();
            self.ops.extend(&block.ops);
            known.ops = start..self.ops.len();
            known.does = does;
        }
        if has_new_entry || has_new_code {
            self.run(id);
        }
    }

    /// The state on entry to a block with these edges.
    fn arriving(&mut self, id: BlockId, edges: Range<usize>) -> Option<State> {
        if self.entry == Some(id) {
            return Some(State::at_start(&mut self.values));
        }
        let name = self.blocks[id.index()].name;
        let mut entry: Option<State> = None;
        for edge in edges {
            let Edge { from, side, .. } = self.edges.list[edge];
            let arriving = match side {
                Some(holds) => self.along(from, holds),
                None => self.at_end(from),
            };
            match (&mut entry, arriving) {
                (Some(known), Some(state)) => known.meet(&state, name, &mut self.values),
                (unknown, Some(state)) => *unknown = Some(state),
                (_, None) => {}
            }
        }
        entry
    }

    /// Computes the state at the end of a block from its state on entry.
    fn run(&mut self, id: BlockId) {
        let known = &mut self.blocks[id.index()];
        let values = &mut self.values;
        let mut last = known.entry;
        let mut sides = [None; 2];
        known.has_redundant = false;
        known.answer = None;
        if let Some(state) = &mut last {
            for op in &self.ops[known.ops.clone()] {
                let is_redundant = state.step(*op, values);
                known.has_redundant |= is_redundant && !may_end(*op);
            }
            if let EndEffect::Ask(test, operand, is_asked) = known.does {
                known.answer = state.answer(test, operand, values);
                sides = state.sides(test, operand, known.answer, is_asked, values);
            }
        }
        let is_side_equal = |side: usize| match (sides[side], known.sides[side]) {
            (Some(one), Some(two)) => values.lists.are_equal(one, two),
            (one, two) => one.is_none() && two.is_none(),
        };
        known.is_new = !are_equal(last.as_ref(), known.last.as_ref(), values)
            || !is_side_equal(0)
            || !is_side_equal(1);
        known.last = last;
        known.sides = sides;
    }
}

fn are_equal(one: Option<&State>, two: Option<&State>, values: &Values) -> bool {
    match (one, two) {
        (Some(one), Some(two)) => one.is_equal(two, values),
        (one, two) => one.is_none() && two.is_none(),
    }
}

impl EndEffect {
    fn at_end(graph: &Cfg, end: End) -> EndEffect {
        match end {
            End::Ret(_) | End::RetA => EndEffect::Return,
            End::Goto(_) => EndEffect::GoOn,
            End::Branch {
                test,
                operand,
                yes,
                no,
            } => {
                let is_asked = [yes, no].map(|next| !graph.block(next).is_return());
                EndEffect::Ask(test, operand, is_asked)
            }
        }
    }
}

impl Known {
    const fn nothing(name: u32) -> Known {
        Known {
            name,
            ops: 0..0,
            does: EndEffect::Return,
            edges: 0..0,
            updates: 0,
            entry: None,
            last: None,
            sides: [None; 2],
            answer: None,
            has_redundant: false,
            is_new: false,
        }
    }
}

impl Edges {
    /// Finds the edges between the blocks in this order.
    fn find(&mut self, graph: &Cfg, order: &[BlockId], known: &[Known]) {
        self.starts.clear();
        self.starts.resize(graph.len() + 1, 0);
        for id in order {
            let mut count = |next: BlockId| {
                self.starts[next.index()] += usize::from(!graph.block(next).is_return());
            };
            match graph.block(*id).end {
                End::Ret(_) | End::RetA => {}
                End::Goto(next) => count(next),
                End::Branch { yes, no, .. } => [yes, no].into_iter().for_each(count),
            }
        }
        let mut total = 0;
        for start in &mut self.starts {
            total += *start;
            *start = total;
        }
        // Here each start is the end of the block's edges; filling in the edges from the last to the first moves it
        // down.
        let nowhere = Edge {
            from: graph.entry(),
            name: 0,
            side: None,
        };
        self.list.clear();
        self.list.resize(total, nowhere);
        for from in order.iter().rev() {
            let sides = match graph.block(*from).end {
                End::Ret(_) | End::RetA => [None; 2],
                End::Goto(next) => [Some((next, None)), None],
                End::Branch { yes, no, .. } => [Some((no, Some(false))), Some((yes, Some(true)))],
            };
            for (next, side) in sides.into_iter().flatten() {
                if graph.block(next).is_return() {
                    continue;
                }
                let start = &mut self.starts[next.index()];
                *start -= 1;
                self.list[*start] = Edge {
                    from: *from,
                    name: known[from.index()].name,
                    side,
                };
            }
        }
    }

    fn entering(&self, id: BlockId) -> Range<usize> {
        self.starts[id.index()]..self.starts[id.index() + 1]
    }

    /// Whether these edges have the same origins as those of another graph.
    fn are_equal(&self, here: &Range<usize>, other: &Edges, there: &Range<usize>) -> bool {
        let (here, there) = (&self.list[here.clone()], &other.list[there.clone()]);
        let is_equal = |(one, two): (&Edge, &Edge)| one.name == two.name && one.side == two.side;
        here.len() == there.len() && here.iter().zip(there).all(is_equal)
    }
}

#[cfg(test)]
mod tests {
    use tamis_abi::Endian;
    use tamis_bpf::asm::assemble;
    use tamis_diag::Sources;

    use super::super::value::{Meaning, Place, Value};
    use super::*;

    /// Merging values, tests that imply others, scratch memory, and edges that a change removes.
    const PROGRAM: &str = "ld [0]\n\
        jge #100, high, low\n\
        low: st M[1]\n\
        ldx #4\n\
        jeq #7, seven, other\n\
        seven: ld [16]\n\
        jset #8, deny, both\n\
        other: ldx #4\n\
        ld [16]\n\
        jgt #3, both, deny\n\
        high: ldx M[2]\n\
        jge #50, big, deny\n\
        big: ld [24]\n\
        st M[1]\n\
        both: ld M[1]\n\
        and #0xff\n\
        jeq x, allow, again\n\
        again: jge #5, allow, deny\n\
        deny: ret #errno(1)\n\
        allow: ret #allow";

    fn graph() -> Cfg {
        let text = PROGRAM.replace("ld [0]\njge", "ld [0]\nst M[2]\njge");
        let source = Sources::new().add("flow", text.as_str());
        let assembly = assemble(&text, source, Endian::Little).unwrap();
        Cfg::from_program(&assembly.into_program().unwrap())
    }

    /// A value without the names of values and blocks, which depend on earlier queries.
    fn value_text(flow: &Flow, value: Value) -> String {
        match flow.values.meaning(value) {
            Meaning::Alu(op, left, right) => {
                let mut sides = [left, right].map(|side| value_text(flow, side));
                sides.sort();
                format!("{op:?} {sides:?}")
            }
            Meaning::Comparison(test, left, right) => {
                format!(
                    "{test:?} {:?}",
                    [left, right].map(|side| value_text(flow, side))
                )
            }
            Meaning::Entering(name, place) => {
                let block = flow.blocks.iter().position(|known| known.name == name);
                format!("{place:?} of {block:?}")
            }
            other => format!("{other:?}"),
        }
    }

    /// All results for a block.
    fn block_text(flow: &Flow, id: BlockId) -> String {
        let states = [flow.entry(id), flow.at_end(id)].map(|state| {
            let state = state?;
            let slots = (0..16).map(Place::Memory);
            let places = [Place::A, Place::X].into_iter().chain(slots);
            let places: Vec<String> = places
                .map(|place| value_text(flow, state.get(place, &flow.values)))
                .collect();
            Some((places, facts_text(flow, state.facts())))
        });
        let sides = flow.blocks[id.index()]
            .sides
            .map(|list| list.map(|list| facts_text(flow, list)));
        let answer = flow.answer(id);
        format!("{states:?} {sides:?} {answer:?} {}", flow.has_redundant(id))
    }

    fn facts_text(flow: &Flow, list: List) -> Vec<String> {
        let facts = flow.values.lists.iter(list);
        facts
            .map(|(value, fact)| format!("{} {fact:?}", value_text(flow, value)))
            .collect()
    }

    #[track_caller]
    fn check(flow: &mut Flow, graph: &Cfg) {
        let order = graph.reverse_postorder();
        flow.update(graph, &order);
        let mut fresh = Flow::default();
        fresh.update(graph, &order);
        for id in order {
            assert_eq!(block_text(flow, id), block_text(&fresh, id), "{id:?}");
        }
    }

    #[test]
    fn what_is_known_after_a_change_is_what_a_new_flow_knows() {
        let graph = graph();
        let blocks: Vec<BlockId> = graph.blocks().map(|(id, _)| id).collect();
        for id in blocks.iter().copied() {
            let mut flow = Flow::default();
            check(&mut flow, &graph);
            let mut changed = graph.clone();
            let End::Branch { yes, no, .. } = graph.block(id).end else {
                continue;
            };
            for end in [
                End::Goto(yes),
                End::Ret(0),
                End::Goto(no),
                graph.block(id).end,
            ] {
                changed.block_mut(id).end = end;
                check(&mut flow, &changed);
                changed.block_mut(id).ops.push(Op::LoadXImm(id.0));
                check(&mut flow, &changed);
            }
            changed.block_mut(id).end = End::Goto(no);
            flow.renumber(&changed.drop_unreachable());
            check(&mut flow, &changed);
        }
    }

    #[test]
    fn a_flow_begins_anew_with_another_graph() {
        let mut flow = Flow::default();
        check(&mut flow, &graph());
        flow.clear();
        check(&mut flow, &Cfg::returning(3, Endian::Little));
    }
}
