//! Jump threading: edges skip blocks whose way out they decide, such as a branch decided by an earlier branch, and
//! chains of jumps.

use super::dead::live_at_entry;
use super::graph::{BlockId, Graph};
use super::values::{PLACES, State, Values};

/// The most blocks that an edge skips.
const MAX_SKIPPED: usize = 64;

/// Leads each edge past the blocks that have no effect on its way.
pub(super) fn thread(graph: &mut Graph) {
    let mut values = Values::default();
    let entries = values.entries(graph);
    let live = live_at_entry(graph);
    for (id, entry) in entries.into_iter().enumerate() {
        let Some(mut state) = entry else {
            continue;
        };
        for op in &graph.blocks[id].ops {
            values.step(&mut state, *op);
        }
        let end = graph.blocks[id].end;
        let mut ends: Vec<(BlockId, BlockId)> = Vec::new();
        for (to, state) in values.ways(&state, end) {
            let walk = Walk {
                graph,
                live: &live,
                values: &mut values,
            };
            ends.push((to, walk.end(to, &state)));
        }
        graph.blocks[id].end = end.map(|to| {
            let led = ends.iter().find(|(from, _)| *from == to);
            led.map_or(to, |(_, end)| *end)
        });
    }
}

struct Walk<'a> {
    graph: &'a Graph,
    /// Per block, the live places at its entry.
    live: &'a [u32],
    values: &'a mut Values,
}

impl Walk<'_> {
    /// The last block to which an edge can lead, given its state.
    fn end(self, to: BlockId, on_edge: &State) -> BlockId {
        let mut state = on_edge.clone();
        let (mut at, mut last) = (to, to);
        for _ in 0..MAX_SKIPPED {
            let block = &self.graph.blocks[at];
            for op in &block.ops {
                if self.values.step(&mut state, *op) {
                    return last;
                }
            }
            let ways = self.values.ways(&state, block.end);
            let Ok([(next, after)]) = <[(BlockId, State); 1]>::try_from(ways) else {
                return last;
            };
            (at, state) = (next, after);
            let matters = |place: usize| self.live[at] >> place & 1 == 1;
            let is_same = |place: usize| state.places[place] == on_edge.places[place];
            if (0..PLACES).all(|place| !matters(place) || is_same(place)) {
                last = at;
            }
        }
        last
    }
}
