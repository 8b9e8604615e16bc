//! The flow of a graph, and how it follows the graph as passes change it.
//!
//! Passes change a few blocks and look at all of them again. So a flow keeps of each block what it depends on -
//! its instructions, its test, and by which edges it is entered - and after a change asks again only for
//! blocks in which something of that is new, and for those that they lead to as long as what is known on the
//! way is new, too. What is found is what a flow of the changed graph alone would have found.
//!
//! Nothing is found for blocks that only return a constant, nor for the edges into them: most edges lead there, and
//! nobody asks.

use std::ops::Range;

use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::{Op, Operand, Test};

use super::lists::List;
use super::live::may_end;
use super::state::State;
use super::value::Values;

/// How many values and facts may pile up per block, all changes together, before a flow begins anew.
const MAX_KEPT: usize = 256;

/// What is known in each block of a graph.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The values that states name.
    pub(crate) values: Values,
    /// By block.
    blocks: Vec<Known>,
    entry: Option<BlockId>,
    /// How often it was brought up to date since it began.
    updates: u32,
    /// How many names of blocks there have been.
    names: u32,
    /// The instructions of blocks when they were looked at.
    ops: Vec<Op>,
    edges: Edges,
    /// The edges before the last change, for their memory.
    old_edges: Edges,
}

/// What a block does with a state, as far as that matters to what is known: where its edges lead does not, except
/// that nobody asks about edges to returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Return,
    GoOn,
    /// A test, and for which answers something follows.
    Ask(Test, Operand, [bool; 2]),
}

/// What is known in a block.
#[derive(Clone, Debug)]
struct Known {
    /// What values are called that enter it; a block keeps its name when it gets another id.
    name: u32,
    ops: Range<usize>,
    does: Does,
    /// Those of the edges that enter it.
    edges: Range<usize>,
    /// The last update that found it reachable.
    updates: u32,
    /// None if no input leads there.
    entry: Option<State>,
    /// Before its end.
    last: Option<State>,
    /// On both sides of its branch; none if no input goes that way, or if it only returns a constant.
    sides: [Option<List>; 2],
    /// The answer of its test, if it is known.
    answer: Option<bool>,
    /// Whether an instruction writes what was there before.
    has_redundant: bool,
    /// Whether anything is known that wasn't known before the last change.
    is_new: bool,
}

/// An edge into a block.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The block where it begins, and its name.
    from: BlockId,
    name: u32,
    /// The answer for which it is taken, if it is one side of a branch.
    side: Option<bool>,
}

/// The edges into each block that does not only return, in the order in which the blocks where they begin are visited.
#[derive(Debug, Default)]
struct Edges {
    list: Vec<Edge>,
    /// By block; one more for the end.
    starts: Vec<usize>,
}

impl Flow {
    /// What is known on entry to a block; `None` if no input leads there, or if it only returns a constant.
    pub(crate) fn entry(&self, id: BlockId) -> Option<State> {
        self.blocks[id.index()].entry
    }

    /// What is known after the last instruction of a block, before its end.
    pub(crate) fn at_end(&self, id: BlockId) -> Option<State> {
        self.blocks[id.index()].last
    }

    /// What is known on one side of the branch with which a block ends; `None` if no input goes that way, or if a
    /// block is there that only returns a constant.
    pub(crate) fn along(&self, id: BlockId, holds: bool) -> Option<State> {
        let known = &self.blocks[id.index()];
        let [yes, no] = known.sides;
        let facts = if holds { yes? } else { no? };
        known.last.map(|last| last.with_facts(facts))
    }

    /// The answer of the test with which a block ends, if it is known.
    pub(crate) fn answer(&self, id: BlockId) -> Option<bool> {
        self.blocks[id.index()].answer
    }

    /// Whether a block asks something that is not known on the only edge into it, either.
    pub(crate) fn is_undecided(&self, id: BlockId) -> bool {
        let known = &self.blocks[id.index()];
        let is_open = known.entry.is_some() && known.answer.is_none();
        is_open && matches!(known.does, Does::Ask(..)) && self.edges.entering(id).len() == 1
    }

    /// Whether a block has an instruction that writes what is there already and can be left out.
    pub(crate) fn has_redundant(&self, id: BlockId) -> bool {
        self.blocks[id.index()].has_redundant
    }

    /// Takes note of the new ids of blocks, of which some are gone.
    pub(crate) fn renumber(&mut self, new_ids: &[Option<BlockId>]) {
        let mut ids = new_ids.iter().map(Option::is_some);
        self.blocks.retain(|_| ids.next().unwrap_or(false));
        self.entry = self.entry.and_then(|entry| new_ids[entry.index()]);
    }

    /// Begins anew with the next update.
    pub(crate) fn clear(&mut self) {
        self.entry = None;
    }

    /// Finds what is known in the graph as it is, with its blocks in [reverse
    /// postorder](Cfg::reverse_postorder). Linear time.
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

    /// Looks at a block again, if anything there may be new.
    fn visit(&mut self, graph: &Cfg, id: BlockId) {
        let block = graph.block(id);
        let does = Does::of(graph, block.end);
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

    /// What is known where a block is entered by these edges.
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

    /// Finds what is known at the end of a block from what is known on entry.
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
            if let Does::Ask(test, operand, is_asked) = known.does {
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

impl Does {
    fn of(graph: &Cfg, end: End) -> Does {
        match end {
            End::Ret(_) | End::RetA => Does::Return,
            End::Goto(_) => Does::GoOn,
            End::Branch {
                test,
                operand,
                yes,
                no,
            } => {
                let is_asked = [yes, no].map(|next| !graph.block(next).is_return());
                Does::Ask(test, operand, is_asked)
            }
        }
    }
}

impl Known {
    const fn nothing(name: u32) -> Known {
        Known {
            name,
            ops: 0..0,
            does: Does::Return,
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
    /// Finds the edges between the blocks of this order.
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
        // Each start is the end of its edges now and moves down as they are filled in from the last on.
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

    /// Whether these edges begin where those of another graph do.
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

    /// Values that meet, tests that imply others, scratch memory, and edges that a change takes away.
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

    /// A value without the names of values and blocks, which depend on what was asked before.
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

    /// Everything that is known in a block.
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
