//! `tamis bench --explain-gap`: what each stage between no filter and a filter costs on this machine.
//!
//! A call under a filter takes longer for several reasons, and they can't be seen in one figure. So filters
//! are generated that differ in one thing only: none, one that never runs, the least that runs, more and more
//! instructions of a kind, more and more branches that can't be predicted, more and more filters. Differences
//! and slopes of lines of least squares are the prices, and what the lines leave says how far to believe
//! them. Beside them stand the prices that the compiler chooses programs by, for people to compare: nothing
//! is taken over by itself.

mod filters;
mod fit;
mod report;

use tamis_abi::{SeccompData, call};
use tamis_bpf::Program;
use tamis_kernel::measure::{
    self, MeasureError, Measured, Measurement, Progress, Rounds, TimedCalls,
};
use tamis_meter::price;

use super::draw::Random;
use super::timed_stacks::{empty, uncacheable};
use crate::cli::{Failure, load};
use filters::ChainKind;
use fit::Fit;
pub(super) use report::Document;

/// How often each of the first stages is measured as a subject of its own: what their minima differ by is
/// what can't be known better.
const COPIES: usize = 3;
/// How many instructions chains have.
const CHAIN_LENGTHS: [usize; 6] = [16, 32, 64, 128, 192, 256];
/// How many filters stacks have.
const STACK_SIZES: [usize; 6] = [1, 2, 3, 4, 6, 8];
/// How many instructions filters have that are installed for the time that takes: less than a
/// scheduler's time slice, also when they are emulated.
const INSTALLED_LENGTHS: [usize; 4] = [16, 128, 256, 512];
/// How many calls with random arguments are made: more than a processor learns.
const RANDOM_CALLS: usize = 1 << 14;
/// The seed of those arguments.
const SEED: u64 = 1;

/// What emulating an instruction for one number costs by the book.
const EMULATION_NS: f64 = 2.7;
/// Where that is written.
const BOOK: &str = "docs/book/costs.md";

/// What a stage is measured to cost.
pub(super) struct Stage {
    name: &'static str,
    ns: f64,
    /// Half the width of what it may be: the spread of equal subjects, or a slope's standard error.
    uncertainty_ns: f64,
    /// What the compiler or the book says, and where.
    priced: Option<(f64, &'static str)>,
    /// The line, if it is a slope.
    fit: Option<Fit>,
}

/// Filters with more and more of one thing.
struct Series {
    name: &'static str,
    unit: &'static str,
    priced: Option<(f64, &'static str)>,
    /// How much each has, and its stack.
    stacks: Vec<(f64, Vec<Program>)>,
}

/// Measures everything; takes about as long as two ordinary measurements.
pub(super) fn analyse(
    rounds: Rounds,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Document, Failure> {
    let refuse = |error: MeasureError| super::refusal(&error, &|_| "a generated filter");
    let (mut stages, plain) = fixed_call(rounds, on_progress).map_err(refuse)?;
    let (missed, random) = random_calls(rounds, on_progress).map_err(refuse)?;
    // After the instructions, before the stack.
    let place = stages.iter().position(|stage| stage.name == FURTHER);
    stages.insert(place.unwrap_or(stages.len()), missed);
    Ok(Document::new(&stages, &[plain, random]))
}

/// The unit of what takes microseconds, not nanoseconds.
const INSTALLED: &str = "installed instructions";
/// The name of the stage of several filters.
const FURTHER: &str = "another filter";

/// A call that takes any arguments and does nothing with them.
fn free_call() -> Result<SeccompData, MeasureError> {
    // Every architecture has one of the two.
    ["getpid", "gettid"]
        .into_iter()
        .find_map(|name| call::parse(name, load::native_arch()).ok())
        .ok_or(MeasureError::TooManyCalls)
}

/// All stages that show with one call over and over.
fn fixed_call(
    rounds: Rounds,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<(Vec<Stage>, Measurement), MeasureError> {
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

/// No filter, the empty one, and the least that runs, from several copies of each.
fn basic_stages(copies: &[Measured]) -> Vec<Stage> {
    let min_and_spread = |stage: usize| {
        let figures = copies.iter().skip(stage).step_by(3);
        let figures: Vec<f64> = figures.map(|measured| measured.calls[0].min_ns).collect();
        let min = figures.iter().copied().fold(f64::MAX, f64::min);
        let max = figures.iter().copied().fold(0.0, f64::max);
        (min, max - min)
    };
    let [none, empty, least] = [0, 1, 2].map(min_and_spread);
    let stage =
        |name, (ns, spread): (f64, f64), (base_ns, base_spread): (f64, f64), priced| Stage {
            name,
            ns: ns - base_ns,
            uncertainty_ns: spread + base_spread,
            priced,
            fit: None,
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

/// Installing without emulation, and what emulation adds for each number.
fn install_stages(converted: Stage, emulated: Stage) -> Vec<Stage> {
    let bitmaps = tamis_bpf::cache::Bitmap::X86_64_LINUX_6_18;
    let numbers: u32 = bitmaps.iter().map(|bitmap| bitmap.numbers).sum();
    let each = 1.0 / f64::from(numbers);
    let emulation = Stage {
        name: "installing an instruction: emulating it for one number",
        ns: (emulated.ns - converted.ns) * each,
        uncertainty_ns: (emulated.uncertainty_ns + converted.uncertainty_ns) * each,
        priced: Some((EMULATION_NS, BOOK)),
        fit: emulated.fit,
    };
    match load::native_arch() {
        tamis_abi::Arch::X86_64 => vec![converted, emulation],
        // How many numbers others emulate isn't known.
        _ => vec![converted],
    }
}

impl Series {
    /// The stage of what these filters have more and more of.
    fn stage(&self, measured: &[Measured], figure: impl Fn(&Measured) -> f64) -> Stage {
        let points = self.stacks.iter().zip(measured);
        let points: Vec<(f64, f64)> = points
            .map(|((x, _), measured)| (*x, figure(measured)))
            .collect();
        let fit = Fit::of(self.unit, &points);
        Stage {
            name: self.name,
            ns: fit.slope_ns,
            uncertainty_ns: fit.standard_error_ns,
            priced: self.priced,
            fit: Some(fit),
        }
    }
}

/// What a branch costs that goes another way than the processor thought: trees over random arguments,
/// against the same trees over one argument. Of each level's branches half are mispredicted.
fn random_calls(
    rounds: Rounds,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<(Stage, Measurement), MeasureError> {
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
    let fit = Fit::of("mispredicted branches", &points);
    let stage = Stage {
        name: "a mispredicted branch",
        ns: fit.slope_ns,
        uncertainty_ns: fit.standard_error_ns,
        priced: Some((price::MISPREDICTION_NS, "MISPREDICTION_NS")),
        fit: Some(fit),
    };
    Ok((stage, measurement))
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
