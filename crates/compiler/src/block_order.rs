//! Block order for known calls: hot branches fall through on one side.
//!
//! The kernel translates a conditional jump that falls through on one side to one instruction, and any other to two,
//! the second of which runs whenever the test does not hold. Only one block can follow a branch directly, and only
//! one of several branches can directly precede a block that they share. Blocks are therefore joined into chains,
//! edge by edge, beginning with the edge that saves most (K. Pettis and R. C. Hansen, "Profile Guided Code
//! Positioning", 1990). Jumps lead forward only, so a join is rejected if another block would have to be placed
//! between the two.
//!
//! The frequencies of branches are measured by running the calls of the profile through the program in its default
//! order, with 0 for run-time variables. The new order is used only if the program is not longer and calls take no
//! more steps on average.
//!
//! If frequent calls reach a short block by a `ja`, the block is [copied](crate::hot_copies), as long as the saved
//! steps are worth the added instructions; not if the objective is length.

use std::borrow::Cow;

use crate::meter::{Cost, Workload, measure_branches};
use tamis_bpf::Template;
use tamis_bpf::cfg::{BlockId, Cfg, End};
use tamis_bpf::validate::InvalidProgram;

use crate::hot_copies;
use crate::linearise::{Placed, in_order, place, sizes};
use crate::options::{CompileOptions, Objective};

/// The maximum number of tried edges.
const MAX_EDGES: usize = 256;

/// The maximum number of rounds that copy blocks and order them again.
const MAX_COPYING: usize = 4;

/// The average steps that each added instruction must save: the exchange rate of all decisions by steps
/// ([`Prices`](crate::cost::Prices)).
const STEPS_FOR_AN_INSN: f64 = 1.0 / 4096.0;

/// An edge that could become a fall-through.
struct Edge {
    from: BlockId,
    to: BlockId,
    /// The number of saved kernel instructions, in the unit of the workload.
    saved: f64,
    /// The number of edges to the same block.
    rivals: usize,
}

/// A program with the places of its blocks and its cost for the calls.
struct Lined {
    placed: Placed,
    template: Template,
    cost: Cost,
    /// By place, the weights of the calls that did not take and that took a branch.
    sides: Vec<[f64; 2]>,
}

/// The program of the graph in an order optimised for these calls. Linear in blocks and calls, except for a constant
/// number of edges.
///
/// # Errors
/// If the kernel would reject the program.
pub(crate) fn order_blocks(
    graph: &Cfg,
    calls: &Workload,
    options: &CompileOptions,
) -> Result<Template, InvalidProgram> {
    let has_bitmap = options.has_bitmap();
    let mut best = Lined::by_chains(graph, calls, has_bitmap)?;
    if options.objective == Objective::Length {
        return Ok(best.template);
    }
    let mut graph = Cow::Borrowed(graph);
    for _ in 0..MAX_COPYING {
        let program = best.template.unbound();
        let edges = hot_copies::edges(&graph, &best.placed, program, calls, has_bitmap);
        if edges.is_empty() {
            break;
        }
        hot_copies::copy(graph.to_mut(), &edges);
        match Lined::by_chains(&graph, calls, has_bitmap) {
            Ok(copied) if best.is_worth_replacing_by(&copied) => best = copied,
            _ => break,
        }
    }
    Ok(best.template)
}

impl Lined {
    fn new(placed: Placed, calls: &Workload, has_bitmap: bool) -> Result<Lined, InvalidProgram> {
        let template = placed.template()?;
        let (cost, sides) = measure_branches(template.unbound(), calls, has_bitmap);
        Ok(Lined {
            placed,
            template,
            cost,
            sides,
        })
    }

    /// Whether another program saves enough steps for the instructions that it adds.
    fn is_worth_replacing_by(&self, other: &Lined) -> bool {
        let [before, after] = [&self.cost, &other.cost];
        let added_insns = after.length_insns.saturating_sub(before.length_insns) as f64;
        let saved_steps = before.mean_executed_steps() - after.mean_executed_steps();
        saved_steps > added_insns * STEPS_FOR_AN_INSN
    }

    /// The blocks in chains by frequency of edges, or in their default order unless the chains are better.
    fn by_chains(graph: &Cfg, calls: &Workload, has_bitmap: bool) -> Result<Lined, InvalidProgram> {
        let usual = Lined::new(place(graph), calls, has_bitmap)?;
        let counts = usual.counts(graph);
        let mut chains = Chains::new(graph);
        for edge in edges(graph, &counts).iter().take(MAX_EDGES) {
            chains.join(edge.from, edge.to);
        }
        let reordered = in_order(graph, &chains.order());
        let Ok(reordered) = Lined::new(reordered, calls, has_bitmap) else {
            return Ok(usual);
        };
        let [before, after] = [&usual.cost, &reordered.cost];
        let is_better = after.length_insns <= before.length_insns
            && after.uncached.steps <= before.uncached.steps
            && after.uncached.kernel_steps < before.uncached.kernel_steps;
        Ok(if is_better { reordered } else { usual })
    }

    /// By block, how often the test at its end did not hold.
    fn counts(&self, graph: &Cfg) -> Vec<f64> {
        let mut counts = vec![0.0; graph.len()];
        for (id, block) in graph.blocks() {
            if let (Some(first), End::Branch { .. }) = (self.placed.first_insn(id), block.end) {
                let [not_taken, _] = self.sides[first + block.ops.len()];
                counts[id.index()] = not_taken;
            }
        }
        counts
    }
}

/// The edges in the order of joining: first unconditional ones, which need a jump unless they are joined, then by
/// savings.
fn edges(graph: &Cfg, counts: &[f64]) -> Vec<Edge> {
    let predecessors = graph.predecessors();
    let mut edges = Vec::new();
    for from in graph.reverse_postorder() {
        let saved = match graph.block(from).end {
            End::Goto(to) if graph.block(to).is_return() => continue,
            End::Goto(_) => f64::INFINITY,
            _ => counts[from.index()],
        };
        for to in graph.block(from).end.successors() {
            edges.push(Edge {
                from,
                to,
                saved,
                rivals: predecessors[to.index()].len(),
            });
        }
    }
    edges.retain(|edge| edge.saved > 0.0);
    edges.sort_by(|a, b| b.saved.total_cmp(&a.saved).then(a.rivals.cmp(&b.rivals)));
    edges
}

/// Chains of consecutive blocks.
struct Chains<'a> {
    graph: &'a Cfg,
    sizes: Vec<u64>,
    /// By block, its chain.
    chain_of: Vec<usize>,
    /// By chain, its blocks; empty if the chain was joined to another.
    blocks: Vec<Vec<BlockId>>,
}

impl<'a> Chains<'a> {
    fn new(graph: &'a Cfg) -> Chains<'a> {
        Chains {
            graph,
            sizes: sizes(graph),
            chain_of: (0..graph.len()).collect(),
            blocks: graph.blocks().map(|(id, _)| vec![id]).collect(),
        }
    }

    /// Places a block directly behind another, if both ends are free and no block has to be placed between them.
    fn join(&mut self, from: BlockId, to: BlockId) {
        let (front, back) = (self.chain_of[from.index()], self.chain_of[to.index()]);
        let is_free = self.blocks[front].last() == Some(&from) && self.blocks[back][0] == to;
        if front == back || !is_free || self.stands_between(front, back) {
            return;
        }
        let moved = std::mem::take(&mut self.blocks[back]);
        for id in &moved {
            self.chain_of[id.index()] = front;
        }
        self.blocks[front].extend(moved);
    }

    /// The chains of the successors of a chain's blocks; the larger side of a branch first.
    fn next(&self, chain: usize) -> Vec<usize> {
        let mut next = Vec::new();
        for id in &self.blocks[chain] {
            let mut to: Vec<BlockId> = self.graph.block(*id).end.successors().collect();
            to.sort_by_key(|id| std::cmp::Reverse(self.sizes[id.index()]));
            next.extend(to.into_iter().map(|id| self.chain_of[id.index()]));
        }
        next.retain(|other| *other != chain);
        next
    }

    /// Whether a path leads from one chain to another through a third.
    fn stands_between(&self, front: usize, back: usize) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        seen[back] = true;
        let mut open = self.next(front);
        open.retain(|chain| *chain != back);
        while let Some(chain) = open.pop() {
            if std::mem::replace(&mut seen[chain], true) {
                continue;
            }
            let next = self.next(chain);
            if next.contains(&back) {
                return true;
            }
            open.extend(next);
        }
        false
    }

    /// The reachable blocks from the last to the first.
    fn order(&self) -> Vec<BlockId> {
        let mut order = Vec::new();
        let mut seen = vec![false; self.blocks.len()];
        let entry = self.chain_of[self.graph.entry().index()];
        seen[entry] = true;
        let mut open = vec![(entry, self.next(entry).into_iter())];
        while let Some((chain, next)) = open.last_mut() {
            match next.next() {
                Some(other) if !seen[other] => {
                    seen[other] = true;
                    open.push((other, self.next(other).into_iter()));
                }
                Some(_) => {}
                None => {
                    order.extend(self.blocks[*chain].iter().rev());
                    open.pop();
                }
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearise::linearise;
    use crate::meter::{Sample, measure};
    use tamis_abi::{Arch, Endian, KernelVersion, Nr};
    use tamis_bpf::cfg::Block;
    use tamis_bpf::ebpf_len::PROLOGUE_INSNS;
    use tamis_bpf::{Op, Operand, Test};

    /// Two branches with the same two targets: only one of them can fall through.
    fn two_branches() -> Cfg {
        let mut graph = Cfg::returning(0, Endian::Little);
        let ret = |ret: u32| Block {
            ops: Vec::new(),
            end: End::Ret(ret),
        };
        let (hit, miss) = (graph.push(ret(1)), graph.push(ret(2)));
        let branch = |ops: Vec<Op>, test: Test, k: u32, yes: BlockId, no: BlockId| Block {
            ops,
            end: End::Branch {
                test,
                operand: Operand::K(k),
                yes,
                no,
            },
        };
        let low = graph.push(branch(Vec::new(), Test::Eq, 5, hit, miss));
        let high = graph.push(branch(Vec::new(), Test::Eq, 50, hit, miss));
        let entry = graph.push(branch(vec![Op::LoadData(0)], Test::Ge, 10, high, low));
        graph.set_entry(entry);
        graph
    }

    /// Calls of these numbers with these counts.
    fn calls(made: &[(u32, f64)]) -> Workload {
        let sample = |(nr, weight): &_| Sample::new(Arch::X86_64, Nr(*nr), [0; 6], *weight);
        Workload::new(made.iter().map(sample))
    }

    /// A kernel without a bitmap: every call runs the program.
    fn options() -> CompileOptions {
        CompileOptions {
            kernel: Some(KernelVersion::new(5, 4)),
            ..CompileOptions::default()
        }
    }

    #[test]
    fn a_short_block_far_away_is_copied_for_the_calls_that_come_often() {
        // Two numbers share a block behind the chain of comparisons.
        let mut graph = Cfg::returning(0, Endian::Little);
        let branch = |ops: Vec<Op>, k: u32, yes: BlockId, no: BlockId| Block {
            ops,
            end: End::Branch {
                test: Test::Eq,
                operand: Operand::K(k),
                yes,
                no,
            },
        };
        let miss = graph.entry();
        let hit = graph.push(Block {
            ops: Vec::new(),
            end: End::Ret(1),
        });
        let shared = graph.push(branch(vec![Op::LoadData(24)], 0, hit, miss));
        let mut next = graph.push(branch(Vec::new(), 2000, shared, miss));
        for k in (1..=300).rev() {
            let own = graph.push(Block {
                ops: Vec::new(),
                end: End::Ret(k),
            });
            next = graph.push(branch(Vec::new(), k, own, next));
        }
        let entry = graph.push(branch(vec![Op::LoadData(0)], 1000, shared, next));
        graph.set_entry(entry);
        let steps = |objective| {
            let calls = calls(&[(1000, 1.0)]);
            let options = CompileOptions {
                objective,
                ..options()
            };
            let template = order_blocks(&graph, &calls, &options).unwrap();
            let cost = measure(&[template.unbound().clone()], &calls, false);
            (cost.uncached.steps, cost.length_insns)
        };
        let (few, more) = (steps(Objective::Steps), steps(Objective::Length));
        assert_eq!((few.0, more.0), (5.0, 6.0));
        assert!(more.1 < few.1);
    }

    #[test]
    fn the_branch_that_is_taken_more_often_falls_through() {
        let graph = two_branches();
        for (hot, cold) in [(3, 30), (30, 3)] {
            let made = calls(&[(hot, 100.0), (cold, 1.0)]);
            let template = order_blocks(&graph, &made, &options()).unwrap();
            let program = [template.unbound().clone()];
            let cost = |nr: u32| measure(&program, &calls(&[(nr, 1.0)]), false).uncached;
            let needed = cost(hot).steps + (PROLOGUE_INSNS + 1) as f64;
            assert_eq!(cost(hot).kernel_steps, needed);
            assert_eq!(cost(cold).kernel_steps, needed + 1.0);
            assert_eq!(program[0].len(), linearise(&graph).unwrap().len());
        }
    }

    #[test]
    fn no_block_is_put_before_one_that_leads_to_it() {
        let graph = two_branches();
        let mut chains = Chains::new(&graph);
        let ids: Vec<BlockId> = graph.blocks().map(|(id, _)| id).collect();
        for (from, block) in graph.blocks() {
            for to in block.end.successors() {
                chains.join(from, to);
            }
        }
        let order = chains.order();
        let place = |id: BlockId| order.iter().position(|other| *other == id);
        for from in ids.into_iter().filter(|id| place(*id).is_some()) {
            let mut next = graph.block(from).end.successors();
            assert!(next.all(|to| place(to) < place(from)));
        }
    }
}
