//! Comparison of the times of two actions, in one run.
//!
//! Machines differ in speed and load, so absolute times are not used: contestants take turns, round by round, and the
//! result is the ratio of their medians.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// An action to be timed.
pub struct Contestant<'a> {
    name: &'a str,
    /// Runs one round; returns its time.
    run: Box<dyn FnMut() -> Duration + 'a>,
}

impl<'a> Contestant<'a> {
    /// A contestant of this name. One call is one round; the result only prevents that the work is optimised away.
    pub fn new(name: &'a str, mut run: impl FnMut() -> usize + 'a) -> Contestant<'a> {
        Contestant::with_own_clock(name, move || {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
    }

    /// A contestant that measures its rounds itself, because not all of a call belongs to the action.
    pub fn with_own_clock(name: &'a str, run: impl FnMut() -> Duration + 'a) -> Contestant<'a> {
        let run = Box::new(run);
        Contestant { name, run }
    }
}

/// The times of a contestant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The contestant.
    pub name: String,
    /// The shortest round.
    pub min: Duration,
    /// The median of all rounds.
    pub median: Duration,
}

/// The timings of one run; the others are compared with the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison(pub Vec<Timing>);

/// Runs contestants in turn for a number of rounds, after one round that does not count.
pub fn compare(contestants: &mut [Contestant<'_>], rounds: usize) -> Comparison {
    let mut times = vec![Vec::with_capacity(rounds); contestants.len()];
    for round in 0..=rounds {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            let time = (contestant.run)();
            if round > 0 {
                times.push(time);
            }
        }
    }
    let timings = contestants
        .iter()
        .zip(times)
        .map(|(contestant, mut times)| {
            times.sort_unstable();
            Timing {
                name: contestant.name.to_owned(),
                min: times.first().copied().unwrap_or_default(),
                median: times.get(times.len() / 2).copied().unwrap_or_default(),
            }
        });
    Comparison(timings.collect())
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self
            .0
            .first()
            .map_or(0.0, |first| first.median.as_secs_f64());
        for Timing { name, min, median } in &self.0 {
            let ratio = median.as_secs_f64() / first;
            let (min_us, median_us) = (min.as_micros(), median.as_micros());
            writeln!(
                f,
                "{name:<28} median {median_us:>8} us   min {min_us:>8} us   x{ratio:.2}"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contestants_have_the_same_number_of_rounds() {
        let (mut first, mut second) = (0, 0);
        let run = |count: &mut usize| {
            *count += 1;
            *count
        };
        let mut contestants = [
            Contestant::new("first", || run(&mut first)),
            Contestant::new("second", || run(&mut second)),
        ];
        let comparison = compare(&mut contestants, 3);
        drop(contestants);
        assert_eq!((first, second), (4, 4));
        assert_eq!(comparison.0.len(), 2);
        assert!(
            comparison
                .0
                .iter()
                .all(|timing| timing.min <= timing.median)
        );
    }
}
