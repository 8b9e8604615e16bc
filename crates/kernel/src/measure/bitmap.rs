//! Whether the kernel skips the filters of a stack for a call, by timing.
//!
//! Since 5.11 the kernel caches the calls that a stack always allows, and doesn't run the filters for them. It
//! doesn't report these calls, but timing shows them. A *ballast* is put below the stack: long filters that allow
//! every number and are cacheable for every number. Cached calls cost the same with the ballast; all others take
//! some microseconds longer. This time is measured under the same stack with a number that no kernel caches.
//!
//! This is a measurement and unsuitable for tests. A difference that is neither clearly zero nor clearly the
//! ballast is measured again, and then undecided.

use std::collections::BTreeSet;

use tamis_abi::{Action, SeccompData};
use tamis_bpf::{Insn, Op, Program, Stack, Test};

use super::{FEW, MeasureError, Rounds, TimedCalls, Timing, measure_passes};

/// The most filters of the ballast; fewer if the stack leaves no room for them.
const BALLAST_FILTERS: usize = 4;
/// The comparisons of each. More would take longer to install: the kernel emulates all of them for each number.
const BALLAST_INSNS: usize = 4000;
/// A number that no architecture has, and that no kernel caches.
const NO_NUMBER: u32 = 0x1000_0000;
/// The count of rounds; the fastest batch of all counts.
const ROUNDS: u32 = 2;
/// The measurements of undecided results.
const TRIES: usize = 3;
/// A shorter time is indistinguishable from noise.
const MIN_BALLAST_NS: f64 = 200.0;

/// Whether the kernel skips the filters: per stack, per call. `None` if undecidable: without filters, without room
/// for the ballast, for calls that take longer than it, or on a machine with too much noise.
///
/// Calls may have both architectures of an x86-64 machine, or the native one of another, and must be from
/// [`Call`](super::Call). The filters should be [harmless](mod@tamis_bpf::harmless). Takes some milliseconds per
/// call and stack.
///
/// # Errors
/// See [`MeasureError`].
pub fn skips_filters(
    stacks: &[Vec<Program>],
    calls: &[SeccompData],
) -> Result<Vec<Vec<Option<bool>>>, MeasureError> {
    let answers = |(subject, stack): (usize, &Vec<Program>)| {
        let mut answers = vec![None; calls.len()];
        let Some(loaded) = loaded(stack) else {
            return Ok(answers);
        };
        for _ in 0..TRIES {
            match measure(&[stack.clone(), loaded.clone()], calls) {
                Ok(measured) => {
                    let pairs = answers.iter_mut().zip(measured);
                    pairs.for_each(|(answer, measured)| *answer = answer.or(measured));
                }
                // Inherited filters take room, too.
                Err(MeasureError::Install { subject: 1, .. }) => break,
                Err(error) => return Err(error.of_subject(subject)),
            }
            if !answers.contains(&None) {
                break;
            }
        }
        Ok(answers)
    };
    stacks.iter().enumerate().map(answers).collect()
}

/// The stack over as much ballast as possible; `None` if there is no room, or no stack.
fn loaded(stack: &[Program]) -> Option<Vec<Program>> {
    let over = |filters| {
        let mut loaded = vec![ballast(); filters];
        loaded.extend_from_slice(stack);
        loaded
    };
    let mut sizes = (1..=BALLAST_FILTERS).rev().map(over);
    let loaded = sizes
        .find(|loaded| Stack::new(loaded.clone()).is_ok_and(|stack| stack.is_installable()))?;
    (!stack.is_empty()).then_some(loaded)
}

/// One measurement of the calls under a stack without ballast and with it.
fn measure(
    stacks: &[Vec<Program>; 2],
    calls: &[SeccompData],
) -> Result<Vec<Option<bool>>, MeasureError> {
    let arches: BTreeSet<u32> = calls.iter().map(|call| call.arch).collect();
    let arches: Vec<u32> = arches.into_iter().collect();
    let never_skipped = arches.iter().map(|arch| SeccompData {
        nr: NO_NUMBER,
        arch: *arch,
        ..SeccompData::default()
    });
    let made: Vec<SeccompData> = never_skipped.chain(calls.iter().copied()).collect();
    let workload = TimedCalls::of_calls(&made);
    let rounds = Rounds::exactly(ROUNDS);
    let measured = measure_passes(stacks, &workload, rounds, FEW, &mut |_| {})?.subjects;
    let pairs = measured[0].calls.iter().zip(&measured[1].calls);
    let costs: Vec<Cost> = pairs
        .map(|(without, with)| Cost::from_timings(without, with))
        .collect();
    let (of_ballast, costs) = costs.split_at(arches.len());
    let answer = |(call, cost): (&SeccompData, &Cost)| {
        let arch = arches.iter().position(|arch| *arch == call.arch)?;
        cost.is_skipped(of_ballast[arch].more_ns)
    };
    Ok(calls.iter().zip(costs).map(answer).collect())
}

/// The cost of a call.
#[derive(Clone, Copy)]
struct Cost {
    /// Without the ballast.
    plain_ns: f64,
    /// The additional time with the ballast.
    more_ns: f64,
}

impl Cost {
    fn from_timings(without: &Timing, with: &Timing) -> Cost {
        Cost {
            plain_ns: without.min_ns,
            more_ns: with.min_ns - without.min_ns,
        }
    }

    /// Whether the filters are skipped, given the time of the ballast.
    fn is_skipped(self, ballast_ns: f64) -> Option<bool> {
        // Noise grows with the duration of a call.
        if ballast_ns < MIN_BALLAST_NS || self.plain_ns > ballast_ns {
            return None;
        }
        match self.more_ns / ballast_ns {
            share if share < 0.25 => Some(true),
            share if share > 0.5 => Some(false),
            _ => None,
        }
    }
}

/// A long filter that allows everything and is cacheable for every number.
fn ballast() -> Program {
    let compare = Op::branch(Test::Eq, 0x7654_3210, 0, 0);
    let mut ops = vec![Op::LoadData(0)];
    ops.resize(BALLAST_INSNS + 1, compare);
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    let insns: Vec<Insn> = ops.into_iter().map(Insn::from).collect();
    Program::new(insns, crate::NATIVE_ENDIAN)
        .expect("comparisons and a return at the end are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ballast_can_be_remembered_for_every_number() {
        let ballast = ballast();
        for nr in [0, 1, 335, 469] {
            assert!(tamis_bpf::cache::is_cacheable(&ballast, 0xc000_003e, nr));
        }
        assert!(ballast.is_installable());
    }

    #[test]
    fn ballast_goes_below_what_leaves_room_for_it() {
        let filters = |stack: &[Program]| loaded(stack).map_or(0, |loaded| loaded.len());
        assert_eq!(filters(&[]), 0);
        assert_eq!(filters(&[ballast()]), BALLAST_FILTERS + 1);
        // The kernel has room for eight of these filters in total.
        assert_eq!(filters(&vec![ballast(); 6]), 8);
        assert_eq!(filters(&vec![ballast(); 8]), 0);
    }

    #[test]
    fn what_is_not_clear_is_undecided() {
        let answer = |plain_ns, more_ns, ballast_ns| {
            let cost = Cost { plain_ns, more_ns };
            cost.is_skipped(ballast_ns)
        };
        assert_eq!(answer(80.0, 3.0, 3000.0), Some(true));
        assert_eq!(answer(80.0, -20.0, 3000.0), Some(true));
        assert_eq!(answer(80.0, 2900.0, 3000.0), Some(false));
        assert_eq!(answer(80.0, 1100.0, 3000.0), None);
        assert_eq!(answer(5000.0, 3.0, 3000.0), None);
        assert_eq!(answer(8.0, 3.0, 20.0), None);
        assert_eq!(answer(8.0, 3.0, f64::NAN), None);
    }
}
