//! The gap analysis as a document, a table and charts.

use std::fmt::Write;

use serde::Serialize;
use tamis_chart::{Axis, Bar, Bars, Curve, Curves, Drawing, Group, Style};
use tamis_kernel::measure::{Measurement, Timing};

use super::fit::{Fit, Point};
use super::{INSTALLED, Stage};

/// The spread between median and minimum above which a machine counts as noisy, for the usual filter:
/// chains of jumps differ from one installation to the next, as the processor's memory of jumps is
/// used otherwise.
const MAX_QUIET_SPREAD: f64 = 0.05;

/// What was found.
#[derive(Serialize)]
pub(in super::super) struct Document {
    schema: &'static str,
    kernel: Option<String>,
    cpu: usize,
    clock: &'static str,
    rounds: u32,
    is_settled: bool,
    stages: Vec<StageEntry>,
    notes: Vec<String>,
}

/// One stage.
#[derive(Serialize)]
struct StageEntry {
    name: &'static str,
    ns: f64,
    uncertainty_ns: f64,
    priced_ns: Option<f64>,
    priced_in: Option<&'static str>,
    fit: Option<Fit>,
}

impl Document {
    /// The report of some stages and the measurements that they come from.
    pub(super) fn new(stages: &[Stage], measurements: &[Measurement]) -> Document {
        let entry = |stage: &Stage| StageEntry {
            name: stage.name,
            ns: stage.ns,
            uncertainty_ns: stage.uncertainty_ns,
            priced_ns: stage.priced.map(|(ns, _)| ns),
            priced_in: stage.priced.map(|(_, place)| place),
            fit: stage.fit.clone(),
        };
        let stages: Vec<StageEntry> = stages.iter().map(entry).collect();
        let is_settled = measurements
            .iter()
            .all(|measurement| measurement.is_settled);
        let mut notes = noise(measurements, is_settled);
        notes.extend(stages.iter().filter_map(StageEntry::doubt));
        Document {
            schema: "tamis.bench-gap/1",
            kernel: tamis_kernel::probe().release,
            cpu: measurements
                .first()
                .map_or(0, |measurement| measurement.cpu),
            clock: measurements
                .first()
                .map_or("", |measurement| measurement.clock.name),
            rounds: measurements
                .iter()
                .map(|measurement| measurement.rounds)
                .max()
                .unwrap_or(0),
            is_settled,
            stages,
            notes,
        }
    }

    /// The same for people.
    pub(in super::super) fn text(&self) -> String {
        let kernel = self.kernel.as_deref().unwrap_or("of an unknown release");
        let mut text = format!(
            "kernel {kernel}, CPU {}, clock {}; {} rounds{}\n\n",
            self.cpu,
            self.clock,
            self.rounds,
            if self.is_settled { ", settled" } else { "" }
        );
        let widths = self.stages.iter().map(|stage| stage.name.chars().count());
        let width = widths.max().unwrap_or(0);
        let _ = writeln!(
            text,
            "{:width$}  {:>9}  {:>7}  {:>8}  {:>6}  from",
            "stage", "ns here", "±", "residual", "priced"
        );
        for stage in &self.stages {
            let residual = stage
                .fit
                .as_ref()
                .map(|fit| format!("{:.2}", fit.residual_ns));
            let priced = stage.priced_ns.map(|ns| format!("{ns}"));
            let shown = |figure: Option<String>| figure.unwrap_or_else(|| "-".to_owned());
            let _ = writeln!(
                text,
                "{:width$}  {:9.3}  {:7.3}  {:>8}  {:>6}  {}",
                stage.name,
                stage.ns,
                stage.uncertainty_ns,
                shown(residual),
                shown(priced),
                stage.priced_in.unwrap_or("-")
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// The stages as bars, and the lines that they were fitted with.
    pub(in super::super) fn charts(&self) -> Vec<Drawing> {
        let mut charts = vec![self.bars()];
        let mut units: Vec<&str> = Vec::new();
        for fit in self.stages.iter().filter_map(|stage| stage.fit.as_ref()) {
            if !units.contains(&fit.unit) {
                units.push(fit.unit);
                charts.push(self.curves(fit.unit));
            }
        }
        charts
    }

    fn bars(&self) -> Drawing {
        // The call itself and installing are of another size.
        let is_added = |stage: &&StageEntry| {
            let unit = stage.fit.as_ref().map(|fit| fit.unit);
            unit != Some(INSTALLED)
        };
        let groups = self.stages.iter().skip(1).filter(is_added).map(|stage| {
            let figures = [Some(stage.ns), stage.priced_ns].into_iter().flatten();
            Group {
                name: stage.name.to_owned(),
                bars: figures.map(|value| Bar { value, mark: None }).collect(),
            }
        });
        Bars {
            title: "Cost of each stage here, and in the compiler's cost model".to_owned(),
            unit: "ns".to_owned(),
            series: vec!["here".to_owned(), "priced".to_owned()],
            groups: groups.collect(),
        }
        .draw()
    }

    /// Measured dots and fitted lines of all stages of a unit.
    fn curves(&self, unit: &str) -> Drawing {
        let mut curves = Vec::new();
        for stage in &self.stages {
            let Some(fit) = stage.fit.as_ref().filter(|fit| fit.unit == unit) else {
                continue;
            };
            let points = |y: fn(&Point) -> f64| fit.points.iter().map(move |p| (p.x, y(p)));
            let curve = |points: Vec<(f64, f64)>, style| Curve {
                name: stage.name.to_owned(),
                points,
                style,
            };
            curves.push(curve(points(|p| p.measured_ns).collect(), Style::Dots));
            curves.push(curve(points(|p| p.fitted_ns).collect(), Style::Line));
        }
        let axis = |label: &str| Axis {
            label: label.to_owned(),
            is_log: false,
        };
        let (title, y) = match unit == INSTALLED {
            true => ("Time to install, measured and fitted", "ns"),
            false => ("Time of a call, measured and fitted", "ns per call"),
        };
        Curves {
            title: title.to_owned(),
            x: axis(unit),
            y: axis(y),
            curves,
        }
        .draw()
    }
}

impl StageEntry {
    /// A price below zero, or one that its uncertainty swallows, is no price.
    fn doubt(&self) -> Option<String> {
        (self.ns < self.uncertainty_ns).then(|| {
            format!(
                "{}: {:.3} ns can't be distinguished from 0 on this machine",
                self.name, self.ns
            )
        })
    }
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
