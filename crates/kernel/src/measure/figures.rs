//! From the ticks of many children to figures, and whether more rounds would change them.
//!
//! Noise makes a batch slower, never faster. So the minimum over passes and rounds converges; if it hasn't changed
//! for some rounds, it is settled. The median is the time of a usual pass, including noise.
//!
//! Batches of a long sequence are different: their branches can be predicted by luck in one pass and not in the
//! next, and the fastest of hundreds of passes is the luckiest. For these a round counts with its median pass, and
//! the minimum of the medians is used.

use crate::sys::timing::Series;

use super::child::ChildTimes;
use super::{Measured, Timing};

/// The number of rounds with unchanged minima.
const SETTLED_ROUNDS: usize = 4;
/// The largest decrease of a minimum that counts as unchanged, per call.
const SETTLED_NS: f64 = 0.2;

/// The figures so far.
pub(super) struct Figures {
    series: Vec<Shape>,
    subjects: Vec<StackRecords>,
    rounds: u32,
}

/// The properties of a series before measurement.
struct Shape {
    batches: usize,
    passes: usize,
    /// The total count of calls of all batches, at least 1.
    calls: usize,
}

#[derive(Clone, Default)]
struct StackRecords {
    installs: Vec<u64>,
    series: Vec<Record>,
}

/// One series under one stack.
#[derive(Clone, Default)]
struct Record {
    /// The fastest pass so far of a single batch; for several batches the fastest round's median of each.
    min_ticks: Vec<u64>,
    /// For each round, the sum of these minima at its end.
    floors: Vec<u64>,
    /// For each round, the sum of the median passes of its batches.
    medians: Vec<u64>,
}

impl Figures {
    pub(super) fn new(subjects: usize, series: &[Series]) -> Figures {
        let shape = |series: &Series| Shape {
            batches: series.batches.len(),
            passes: series.passes,
            calls: series.batches.iter().map(Vec::len).sum::<usize>().max(1),
        };
        let record = |series: &Series| Record {
            min_ticks: vec![u64::MAX; series.batches.len()],
            ..Record::default()
        };
        let subject = StackRecords {
            installs: Vec::new(),
            series: series.iter().map(record).collect(),
        };
        Figures {
            series: series.iter().map(shape).collect(),
            subjects: vec![subject; subjects],
            rounds: 0,
        }
    }

    /// The count of complete rounds.
    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Adds the report of one child.
    pub(super) fn add(&mut self, subject: usize, sample: ChildTimes) {
        let subject = &mut self.subjects[subject];
        subject.installs.push(sample.install_ticks);
        let mut rest = sample.ticks;
        for (shape, record) in self.series.iter().zip(&mut subject.series) {
            let others = rest.split_off(shape.batches * shape.passes);
            record.add(&mut rest, shape);
            rest = others;
        }
    }

    /// Ends a round of one child per subject.
    pub(super) fn end_round(&mut self) {
        self.rounds += 1;
    }

    /// Whether no minimum has decreased much for some rounds.
    pub(super) fn are_settled(&self, ns_per_tick: f64) -> bool {
        let mut subjects = self.subjects.iter();
        subjects.all(|subject| {
            let mut records = self.series.iter().zip(&subject.series);
            records.all(|(shape, record)| {
                let last = record.floors.len().checked_sub(1);
                let before = last.and_then(|last| last.checked_sub(SETTLED_ROUNDS));
                last.zip(before).is_some_and(|(last, before)| {
                    let fall = record.floors[before] - record.floors[last];
                    fall as f64 * ns_per_tick < SETTLED_NS * shape.calls as f64
                })
            })
        })
    }

    /// The figures per call.
    pub(super) fn summary(&self, ns_per_tick: f64) -> Vec<Measured> {
        let subject = |subject: &StackRecords| {
            let records = self.series.iter().zip(&subject.series);
            Measured {
                install_ns: min(&subject.installs) as f64 * ns_per_tick,
                install_median_ns: median(&mut subject.installs.clone()) as f64 * ns_per_tick,
                calls: records
                    .map(|(shape, record)| {
                        let ns_per_call_tick = ns_per_tick / shape.calls as f64;
                        Timing {
                            min_ns: min(&record.floors) as f64 * ns_per_call_tick,
                            median_ns: median(&mut record.medians.clone()) as f64
                                * ns_per_call_tick,
                        }
                    })
                    .collect(),
            }
        };
        self.subjects.iter().map(subject).collect()
    }
}

impl Record {
    /// Adds a round: the passes of each batch, one batch after the other.
    fn add(&mut self, ticks: &mut [u64], shape: &Shape) {
        let mut medians = 0;
        for (passes, least) in ticks.chunks_mut(shape.passes).zip(&mut self.min_ticks) {
            let median = median(passes);
            medians += median;
            let round = match shape.batches {
                1 => min(passes),
                _ => median,
            };
            *least = round.min(*least);
        }
        self.medians.push(medians);
        self.floors.push(self.min_ticks.iter().sum());
    }
}

fn min(figures: &[u64]) -> u64 {
    figures.iter().copied().min().unwrap_or(0)
}

/// The middle figure; sorts them.
fn median(figures: &mut [u64]) -> u64 {
    figures.sort_unstable();
    figures.get(figures.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One subject with one series of this many batches of two calls, each timed three times.
    fn figures(batches: usize) -> Figures {
        let series = Series {
            batches: vec![vec![0, 0]; batches],
            passes: 3,
        };
        Figures::new(1, &[series])
    }

    fn add(figures: &mut Figures, ticks: &[u64]) {
        let sample = ChildTimes {
            install_ticks: ticks[0] * 100,
            ticks: ticks.to_vec(),
        };
        figures.add(0, sample);
        figures.end_round();
    }

    #[test]
    fn the_fastest_pass_counts_whenever_it_was() {
        let mut figures = figures(1);
        add(&mut figures, &[40, 50, 90]);
        add(&mut figures, &[80, 12, 80]);
        let summary = &figures.summary(0.5)[0];
        // 12 ticks for two calls; the higher of two medians.
        assert_eq!(summary.calls[0].min_ns, 3.0);
        assert_eq!(summary.calls[0].median_ns, 20.0);
        assert_eq!(
            (summary.install_ns, summary.install_median_ns),
            (2000.0, 4000.0)
        );
    }

    #[test]
    fn of_several_batches_each_ones_best_round_counts() {
        let mut figures = figures(2);
        add(&mut figures, &[40, 50, 90, 20, 20, 70]);
        add(&mut figures, &[80, 80, 12, 12, 16, 16]);
        let summary = &figures.summary(0.5)[0];
        // Medians of 50 and 16 ticks for four calls; 50 + 20 in the one round, 80 + 16 in the other.
        assert_eq!(summary.calls[0].min_ns, 8.25);
        assert_eq!(summary.calls[0].median_ns, 12.0);
    }

    #[test]
    fn minima_that_still_fall_are_not_settled() {
        let mut figures = figures(2);
        let mut floor = 1000;
        for _ in 0..2 * SETTLED_ROUNDS {
            floor -= 10;
            add(&mut figures, &[floor; 6]);
            assert!(!figures.are_settled(1.0));
        }
        for round in 0..SETTLED_ROUNDS {
            assert!(!figures.are_settled(1.0), "{round}");
            add(&mut figures, &[floor + 500; 6]);
        }
        assert!(figures.are_settled(1.0));
    }
}
