//! Tables of minima.

use std::time::Duration;

use tamis_bench::ratio::{Comparison, Contestant, Timing, compare};

/// The reference of the comparison, if it runs.
const BASE: &str = "libpcap";

/// Minima of a case.
pub(crate) struct Table(Vec<(String, f64)>);

impl Table {
    /// Lets contestants take turns, each with so many evaluations in a round.
    pub(crate) fn new(
        mut contestants: Vec<Contestant<'_>>,
        rounds: usize,
        evaluations: usize,
    ) -> Table {
        let Comparison(timings) = compare(&mut contestants, rounds);
        let ns = |time: Duration| time.as_secs_f64() * 1e9 / evaluations as f64;
        let entry = |Timing { name, min, .. }| (name, ns(min));
        Table(timings.into_iter().map(entry).collect())
    }

    /// The nanoseconds of an evaluation.
    pub(crate) fn ns(&self, name: &str) -> Option<f64> {
        let mut entries = self.0.iter();
        entries.find(|entry| entry.0 == name).map(|entry| entry.1)
    }

    /// Replaces the figure of a contestant by the difference from another, which has no line of its own.
    pub(crate) fn subtract(&mut self, name: &str, other: &str) {
        let Some(other_ns) = self.ns(other) else {
            return;
        };
        self.0.retain(|entry| entry.0 != other);
        let of_name = self.0.iter_mut().filter(|entry| entry.0 == name);
        of_name.for_each(|entry| entry.1 -= other_ns);
    }

    /// Prints a line for each.
    pub(crate) fn print(&self) {
        let base = self.ns(BASE);
        for (name, ns) in &self.0 {
            let ratio = base.map_or_else(String::new, |base| {
                format!("  {:8.2} x as fast as {BASE}", base / ns)
            });
            println!("  {name:<26} {ns:9.2} ns{ratio}");
        }
    }
}
