//! `tamis bench --explain-gap`: the cost of each stage between no filter and a filter on this machine.
//!
//! A call under a filter takes longer for several reasons, which one figure can't separate. So filters are generated
//! that differ in one feature only: no filter, one that never runs, the smallest that runs, and increasing numbers of
//! instructions of a kind, of mispredicted branches and of filters. Differences and slopes of least-squares lines are
//! the prices, and the residuals are their uncertainty. The compiler's prices are listed beside them for comparison by
//! people; nothing is updated automatically.

mod filters;
mod fit;

use tamis_abi::{SeccompData, call};
use tamis_bpf::Program;
use tamis_compiler::meter::price;
use tamis_kernel::measure::{
    self, MeasureError, Measured, Measurement, Progress, Rounds, TimedCalls, Timing,
};
use tamis_report::gap::{Fit, GapReport, INSTALLED, StageEntry};

use super::draw::Random;
use super::timed_stacks::{empty, uncacheable};
use crate::cli::{Failure, load};
use filters::ChainKind;
use fit::fit;

/// The number of copies of each of the first stages, measured as separate subjects: the differences between their
/// minima are the uncertainty.
const COPIES: usize = 3;
/// The numbers of instructions of chains.
const CHAIN_LENGTHS: [usize; 6] = [16, 32, 64, 128, 192, 256];
/// The numbers of filters of stacks.
const STACK_SIZES: [usize; 6] = [1, 2, 3, 4, 6, 8];
/// The numbers of instructions of filters for the time of installation, which is less than a scheduler's time slice,
/// also with emulation.
const INSTALLED_LENGTHS: [usize; 4] = [16, 128, 256, 512];
/// The number of calls with random arguments: more than a branch predictor learns.
const RANDOM_CALLS: usize = 1 << 14;
/// The seed of the random arguments.
const SEED: u64 = 1;

/// The spread between median and minimum above which a machine counts as noisy, for the median filter: chains of jumps
/// differ from one installation to the next, since the processor's branch history differs.
const MAX_QUIET_SPREAD: f64 = 0.05;

/// The documented cost of emulating an instruction for one number.
const EMULATION_NS: f64 = 2.7;
/// The document with that cost.
const BOOK: &str = "docs/book/costs.md";

/// The cost of a stage by the compiler or the book, and its source.
type StageCost = Option<(f64, &'static str)>;

/// Filters with increasing amounts of one feature.
struct Series {
    name: &'static str,
    unit: &'static str,
    priced: StageCost,
    /// The amount in each stack, and the stack.
    stacks: Vec<(f64, Vec<Program>)>,
}

/// Measures all stages; takes about as long as two ordinary measurements.
pub(super) fn analyse(
    rounds: Rounds,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<GapReport, Failure> {
    let refuse = |error: MeasureError| super::refusal(&error, &|_| "a generated filter");
    let (mut stages, plain) = fixed_call(rounds, on_progress).map_err(refuse)?;
    let (missed, random) = random_calls(rounds, on_progress).map_err(refuse)?;
    // After the instructions, before the stack.
    let place = stages.iter().position(|stage| stage.name == FURTHER);
    stages.insert(place.unwrap_or(stages.len()), missed);
    Ok(report(stages, &[plain, random]))
}

/// The name of the stage of several filters.
const FURTHER: &str = "another filter";

/// A call that accepts any arguments and ignores them.
fn free_call() -> Result<SeccompData, MeasureError> {
    // Every architecture has one of the two.
    ["getpid", "gettid"]
        .into_iter()
        .find_map(|name| call::parse(name, load::native_arch()).ok())
        .ok_or(MeasureError::TooManyCalls)
}

/// All stages that are measured by repeating one call.
fn fixed_call(
    rounds: Rounds,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<(Vec<StageEntry>, Measurement), MeasureError> {
    let basic = [vec![], vec![empty()], vec![uncacheable()]];
    let timed = timed_series();
    let installed = [false, true].map(installed_series);
    let mut stacks: Vec<Vec<Program>> = basic.iter().cloned().cycle().take(3 * COPIES).collect();
    for series in timed.iter().chain(&installed) {
        stacks.extend(series.stacks.iter().map(|(_, stack)| stack.clone()));
    }
    let workload = TimedCalls::of_calls(&[free_call()?]);
    let measurement = measure::measure_workload(&stacks, &workload, rounds, on_progress)?;
    let (copies, mut rest) = measurement.subjects.split_at(3 * COPIES);
    let mut stages = basic_stages(copies);
    for series in &timed {
        let (own, others) = rest.split_at(series.stacks.len());
        stages.push(series.stage(own, |measured| measured.calls[0].min_ns));
        rest = others;
    }
    let [converted, emulated] = [&installed[0], &installed[1]].map(|series| {
        let (own, others) = rest.split_at(series.stacks.len());
        rest = others;
        series.stage(own, |measured| measured.install_ns)
    });
    stages.extend(install_stages(converted, emulated));
    Ok((stages, measurement))
}

/// No filter, the empty one, and the smallest that runs, from several copies of each.
fn basic_stages(copies: &[Measured]) -> Vec<StageEntry> {
    let min_and_spread = |stage: usize| {
        let figures = copies.iter().skip(stage).step_by(3);
        let figures: Vec<f64> = figures.map(|measured| measured.calls[0].min_ns).collect();
        let min = figures.iter().copied().fold(f64::MAX, f64::min);
        let max = figures.iter().copied().fold(0.0, f64::max);
        (min, max - min)
    };
    let [none, empty, least] = [0, 1, 2].map(min_and_spread);
    let stage = |name, (ns, spread): (f64, f64), (base_ns, base_spread): (f64, f64), priced| {
        stage(name, (ns - base_ns, spread + base_spread), priced, None)
    };
    let unpriced = None;
    vec![
        stage("the call without a filter", none, (0.0, 0.0), unpriced),
        stage("a filter that never runs", empty, none, unpriced),
        stage(
            "running the smallest filter instead",
            least,
            empty,
            Some((price::UNCACHED_NS, "UNCACHED_NS")),
        ),
    ]
}

fn timed_series() -> Vec<Series> {
    let chain = |kind: ChainKind| Series {
        name: kind.name(),
        unit: "instructions",
        priced: Some((price::STEP_NS, "STEP_NS")),
        stacks: CHAIN_LENGTHS
            .iter()
            .map(|len| (*len as f64, vec![filters::chain(kind, *len)]))
            .collect(),
    };
    let mut series: Vec<Series> = ChainKind::ALL.into_iter().map(chain).collect();
    series.push(Series {
        name: FURTHER,
        unit: "filters",
        priced: Some((price::FURTHER_FILTER_NS, "FURTHER_FILTER_NS")),
        stacks: STACK_SIZES
            .iter()
            .map(|size| (*size as f64, vec![uncacheable(); *size]))
            .collect(),
    });
    series
}

fn installed_series(is_emulated: bool) -> Series {
    Series {
        name: "installing an instruction: converting and compiling",
        unit: INSTALLED,
        priced: None,
        stacks: INSTALLED_LENGTHS
            .iter()
            .map(|len| (*len as f64, vec![filters::installed(*len, is_emulated)]))
            .collect(),
    }
}

/// The stage of installing without emulation, and the addition of emulation per number.
fn install_stages(converted: StageEntry, emulated: StageEntry) -> Vec<StageEntry> {
    let bitmaps = tamis_bpf::cache::Bitmap::X86_64_LINUX_6_18;
    let numbers: u32 = bitmaps.iter().map(|bitmap| bitmap.numbers).sum();
    let each = 1.0 / f64::from(numbers);
    let emulation = stage(
        "installing an instruction: emulating it for one number",
        (
            (emulated.ns - converted.ns) * each,
            (emulated.uncertainty_ns + converted.uncertainty_ns) * each,
        ),
        Some((EMULATION_NS, BOOK)),
        emulated.fit,
    );
    match load::native_arch() {
        tamis_abi::Arch::X86_64 => vec![converted, emulation],
        // The number of emulated system call numbers is unknown for other architectures.
        _ => vec![converted],
    }
}

impl Series {
    /// The stage of the series' feature.
    fn stage(&self, measured: &[Measured], figure: impl Fn(&Measured) -> f64) -> StageEntry {
        let points = self.stacks.iter().zip(measured);
        let points: Vec<(f64, f64)> = points
            .map(|((x, _), measured)| (*x, figure(measured)))
            .collect();
        slope(self.name, self.priced, fit(self.unit, &points))
    }
}

/// A stage, with its cost and the uncertainty.
fn stage(
    name: &'static str,
    (ns, uncertainty_ns): (f64, f64),
    priced: StageCost,
    fit: Option<Fit>,
) -> StageEntry {
    let (priced_ns, priced_in) = priced.unzip();
    StageEntry {
        name,
        ns,
        uncertainty_ns,
        priced_ns,
        priced_in,
        fit,
    }
}

/// A stage with the cost per unit.
fn slope(name: &'static str, priced: StageCost, fit: Fit) -> StageEntry {
    let cost = (fit.slope_ns, fit.standard_error_ns);
    stage(name, cost, priced, Some(fit))
}

/// The cost of a mispredicted branch: trees over random arguments, compared with the same trees over one argument. Half
/// of the branches of each level are mispredicted.
fn random_calls(
    rounds: Rounds,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<(StageEntry, Measurement), MeasureError> {
    let call = free_call()?;
    let with = |arg0: u64| SeccompData {
        args: [arg0, 0, 0, 0, 0, 0],
        ..call
    };
    let mut random = Random::new(SEED);
    let calls: Vec<SeccompData> = (0..RANDOM_CALLS)
        .map(|_| with(random.below(u128::from(filters::LEAVES)) as u64))
        .collect();
    let mut workload = TimedCalls::default();
    workload.add(&calls);
    workload.add(&vec![with(filters::LEAVES / 3); RANDOM_CALLS]);
    let depths = 0..=filters::MAX_DEPTH;
    let stacks: Vec<Vec<Program>> = depths
        .clone()
        .map(|depth| vec![filters::tree(depth)])
        .collect();
    let measurement = measure::measure_workload(&stacks, &workload, rounds, on_progress)?;
    let points = depths.zip(&measurement.subjects).map(|(depth, measured)| {
        let more_ns = measured.calls[0].min_ns - measured.calls[1].min_ns;
        (f64::from(depth) / 2.0, more_ns)
    });
    let points: Vec<(f64, f64)> = points.collect();
    let priced = Some((price::MISPREDICTION_NS, "MISPREDICTION_NS"));
    let fit = fit("mispredicted branches", &points);
    let stage = slope("a mispredicted branch", priced, fit);
    Ok((stage, measurement))
}

/// The report of some stages, with the measurements of them.
fn report(stages: Vec<StageEntry>, measurements: &[Measurement]) -> GapReport {
    let first = measurements.first();
    let is_settled = measurements.iter().all(|own| own.is_settled);
    let mut notes = noise(measurements, is_settled);
    notes.extend(stages.iter().filter_map(doubt));
    GapReport {
        kernel: tamis_kernel::probe().release,
        cpu: first.map_or(0, |own| own.cpu),
        clock: first.map_or("", |own| own.clock.name),
        rounds: measurements.iter().map(|own| own.rounds).max().unwrap_or(0),
        is_settled,
        stages,
        notes,
    }
}

/// A negative price, or one below its uncertainty, is no price.
fn doubt(stage: &StageEntry) -> Option<String> {
    (stage.ns < stage.uncertainty_ns).then(|| {
        format!(
            "{}: {:.3} ns can't be distinguished from 0 on this machine",
            stage.name, stage.ns
        )
    })
}

fn noise(measurements: &[Measurement], is_settled: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let subjects = measurements
        .iter()
        .flat_map(|measurement| &measurement.subjects);
    let spread = |timing: &Timing| (timing.median_ns - timing.min_ns) / timing.min_ns;
    let spreads = subjects.flat_map(|subject| &subject.calls).map(spread);
    let mut spreads: Vec<f64> = spreads.collect();
    spreads.sort_unstable_by(f64::total_cmp);
    let usual = spreads.get(spreads.len() / 2).copied().unwrap_or(0.0);
    if usual > MAX_QUIET_SPREAD {
        notes.push(format!(
            "the machine is noisy: every other median is {:.0} % above its minimum, or more",
            usual * 100.0
        ));
    }
    if !is_settled {
        notes.push("the minima were not stable: use more rounds, or a quieter machine".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_book_has_the_prices_that_are_compared() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let book = fs::read_to_string(root.join(super::BOOK)).unwrap();
        let has = |words: &[&str]| {
            book.lines()
                .any(|line| words.iter().all(|word| line.contains(word)))
        };
        assert!(has(&["each further filter", "18 to 21 ns"]));
        assert!(has(&["installing", &format!("{} ns", super::EMULATION_NS)]));
        for price in [
            super::price::STEP_NS,
            super::price::MISPREDICTION_NS,
            super::price::UNCACHED_NS,
        ] {
            assert!(has(&[&format!("| {price} ns |")]), "{price}");
        }
    }
}
