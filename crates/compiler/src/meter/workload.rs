//! Workloads: calls with their frequencies.

use tamis_abi::{Arch, Nr, SeccompData, syscall};
use tamis_bpf::{Program, cache};
use tamis_profile::{Args, Call, Profile};
use tamis_rules::Ruleset;

use super::arguments;

/// A call with its frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The architecture of the number.
    pub arch: Arch,
    /// The call.
    pub data: SeccompData,
    /// The frequency of the call, in any unit.
    pub weight: f64,
}

impl Sample {
    /// A call of a number with these arguments and the instruction pointer 0.
    pub fn new(arch: Arch, nr: Nr, args: Args, weight: f64) -> Sample {
        let data = SeccompData {
            nr: nr.0,
            arch: arch.audit(),
            args,
            ip: 0,
        };
        Sample { arch, data, weight }
    }

    /// Whether the kernel answers the call from its bitmap, so that no program of the stack runs: since 5.11, if
    /// every program always allows the number, and never for x32, which no bitmap covers.
    pub fn is_cached(&self, stack: &[Program]) -> bool {
        let SeccompData { arch, nr, .. } = self.data;
        let is_cacheable = |program| cache::is_cacheable(program, arch, nr);
        self.arch != Arch::X32 && stack.iter().all(is_cacheable)
    }
}

/// The calls by which programs are measured; those of one number are adjacent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    samples: Vec<Sample>,
}

impl Workload {
    /// The workload of these calls, with equal ones merged, and without those of weight zero.
    pub fn new(samples: impl IntoIterator<Item = Sample>) -> Workload {
        let made = samples.into_iter().filter(|sample| sample.weight > 0.0);
        let mut samples: Vec<Sample> = made.collect();
        let call = |sample: &Sample| {
            (
                sample.arch,
                sample.data.nr,
                sample.data.args,
                sample.data.ip,
            )
        };
        samples.sort_by_key(call);
        samples.dedup_by(|next, kept| {
            let is_same = call(next) == call(kept);
            if is_same {
                kept.weight += next.weight;
            }
            is_same
        });
        Workload { samples }
    }

    /// Calls of one architecture; each occurrence counts as one call.
    pub fn of_calls(arch: Arch, calls: &[SeccompData]) -> Workload {
        let sample = |data: &SeccompData| Sample {
            arch,
            data: *data,
            weight: 1.0,
        };
        Workload::new(calls.iter().map(sample))
    }

    /// The calls of these architectures in a profile: with the recorded argument lists; for the rest of a call's
    /// count with the recorded values of single arguments, and with all other arguments 0. Without a profile, the
    /// calls of ordinary programs ([`Profile::builtin`]), with all arguments 0.
    pub fn from_profile(profile: Option<&Profile>, archs: &[Arch]) -> Workload {
        Workload::with_lists(profile, archs, |_, _, call| call.argument_lists())
    }

    /// The same for programs compiled from a ruleset. A call without recorded arguments is made with all arguments 0
    /// and with the values in the conditions of its number, equally often, so that chains and trees of values have
    /// different costs.
    pub fn of_ruleset(profile: Option<&Profile>, ruleset: &Ruleset) -> Workload {
        let archs: Vec<Arch> = ruleset.sections().iter().map(|it| it.arch).collect();
        Workload::with_lists(profile, &archs, |arch, nr, call| {
            let is_known = !call.samples.is_empty() || !call.values.is_empty();
            let Some(section) = ruleset.section(arch).filter(|_| !is_known) else {
                return call.argument_lists();
            };
            let lists = arguments::named(section, nr);
            let each = call.count as f64 / lists.len() as f64;
            lists.into_iter().map(|args| (args, each)).collect()
        })
    }

    fn with_lists(
        profile: Option<&Profile>,
        archs: &[Arch],
        lists: impl Fn(Arch, Nr, &Call) -> Vec<(Args, f64)>,
    ) -> Workload {
        let mut samples = Vec::new();
        for arch in archs {
            let profile = profile.unwrap_or_else(|| Profile::builtin(*arch));
            for (_, nr, call) in profile.calls().filter(|(of, ..)| of == arch) {
                let lists = lists(*arch, nr, call).into_iter();
                samples.extend(lists.map(|(args, count)| Sample::new(*arch, nr, args, count)));
            }
        }
        Workload::new(samples)
    }

    /// Every call in the tables of these architectures, once, with all arguments 0.
    pub fn every_call(archs: &[Arch]) -> Workload {
        let calls = archs.iter().flat_map(|arch| {
            syscall::all(*arch).map(|(nr, _)| Sample::new(*arch, nr, [0; 6], 1.0))
        });
        Workload::new(calls)
    }

    /// The same calls with other weights, without those of weight zero.
    pub fn weighed(&self, mut weight: impl FnMut(&Sample) -> f64) -> Workload {
        let samples = self.samples.iter().map(|sample| Sample {
            weight: weight(sample),
            ..*sample
        });
        Workload::new(samples)
    }

    /// The calls, by architecture and number.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The calls of each number.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &[Sample]> {
        let same_number = |a: &Sample, b: &Sample| (a.arch, a.data.nr) == (b.arch, b.data.nr);
        self.samples.chunk_by(same_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_says_how_often_and_with_what() {
        let mut profile = Profile::default();
        let ioctl = profile.call_mut(Arch::X86_64, Nr(16));
        ioctl.count = 61;
        ioctl.values.entry(1).or_default().insert(7, 61);
        profile.call_mut(Arch::X86_64, Nr(0)).count = 10;
        profile.call_mut(Arch::Aarch64, Nr(0)).count = 10;
        let made = Workload::from_profile(Some(&profile), &[Arch::X86_64]);
        let expected = [(0, [0; 6], 10.0), (16, [0, 7, 0, 0, 0, 0], 61.0)];
        let expected =
            expected.map(|(nr, args, weight)| Sample::new(Arch::X86_64, Nr(nr), args, weight));
        assert_eq!(made.samples(), expected);
    }

    #[test]
    fn without_a_profile_ordinary_programs_make_all_known_calls() {
        let (known, ordinary) = (
            Workload::every_call(&[Arch::X86_64]),
            Workload::from_profile(None, &[Arch::X86_64]),
        );
        assert_eq!(ordinary.weighed(|_| 1.0), known);
        assert!(ordinary.samples()[0].weight > ordinary.samples()[155].weight);
    }

    #[test]
    fn equal_calls_are_one_and_calls_never_made_none() {
        let call = |nr, weight| Sample::new(Arch::X86_64, Nr(nr), [0; 6], weight);
        let made = Workload::new([call(3, 1.0), call(1, 0.0), call(2, 1.0), call(3, 2.0)]);
        assert_eq!(made.samples(), [call(2, 1.0), call(3, 3.0)]);
    }
}
