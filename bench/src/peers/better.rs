//! The figures in which another tool's filters are better than those of tamis.
//!
//! Only filters that are equivalent to the policy count, even if for its architectures alone.

use serde::Serialize;

use super::comparison::{Filters, Row};
use super::judge::Meaning;
use super::tools::TAMIS;

/// Times over no filter that differ by less are equal.
const ALIKE_NS: f64 = 2.0;
/// Tolerance for means of equal steps.
const ROUNDING: f64 = 1e-9;

/// A figure in which tools are better than each of tamis's rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Better {
    /// The name of the figure in the document.
    pub figure: &'static str,
    /// The best value of tamis.
    pub tamis: f64,
    /// The better ones, the best first.
    pub others: Vec<Value>,
}

/// A tool's value of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Value {
    /// The tool.
    pub tool: String,
    /// Its value.
    pub value: f64,
}

/// Reads a figure, negated if necessary so that less is better; `None` if it was not measured.
type Read = fn(&Filters) -> Option<f64>;

const FIGURES: [(&str, f64, Read); 9] = [
    ("length_insns", 0.0, |it| {
        Some(it.counts.length_insns as f64)
    }),
    ("mean_steps", 0.0, |it| Some(it.counts.mean_steps)),
    ("max_steps", 0.0, |it| Some(f64::from(it.counts.max_steps))),
    ("weighted_steps", 0.0, |it| Some(it.counts.weighted_steps)),
    ("bitmap_steps", 0.0, |it| Some(it.counts.bitmap_steps)),
    ("uncached_steps", 0.0, |it| Some(it.counts.uncached_steps)),
    ("cached_calls", 0.0, |it| {
        Some(-(it.counts.cached_calls as f64))
    }),
    ("over_none_ns", ALIKE_NS, |it| it.over_none_ns),
    ("compile_us", 0.0, |it| it.compile_us),
];

/// The figures in which tools are better.
pub fn better(rows: &[Row]) -> Vec<Better> {
    let (own, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.tool.starts_with(TAMIS));
    let mut found = Vec::new();
    for (figure, alike, read) in FIGURES {
        let own = own.iter().filter_map(|row| read(row.filters()?));
        let Some(best) = own.min_by(f64::total_cmp) else {
            continue;
        };
        let value = |row: &&Row| {
            let peer = row.filters().filter(|filters| is_peer(&filters.meaning));
            let value = read(peer?)?;
            let tool = row.tool.clone();
            (value + alike < best - ROUNDING).then_some(Value { tool, value })
        };
        let mut others: Vec<Value> = others.iter().filter_map(value).collect();
        others.sort_by(|left, right| left.value.total_cmp(&right.value));
        for other in &mut others {
            other.value = other.value.abs();
        }
        if !others.is_empty() {
            found.push(Better {
                figure,
                tamis: best.abs(),
                others,
            });
        }
    }
    found
}

fn is_peer(meaning: &Meaning) -> bool {
    matches!(
        meaning,
        Meaning::Equal | Meaning::EqualForItsArchitectures { .. }
    )
}
