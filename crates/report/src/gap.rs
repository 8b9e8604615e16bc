//! The measured cost of each stage between no filter and a filter: `tamis bench --explain-gap`.

use std::fmt;

use serde::Serialize;
use tamis_chart::{Axis, Bar, Bars, Curve, Curves, Drawing, Group, Style};

use crate::bench::rounds;

/// The unit of stages whose times are those of installations, not of calls.
pub const INSTALLED: &str = "installed instructions";

/// The result of a gap analysis.
#[derive(Serialize)]
pub struct GapReport {
    pub kernel: Option<String>,
    pub cpu: usize,
    pub clock: &'static str,
    pub rounds: u32,
    pub is_settled: bool,
    pub stages: Vec<StageEntry>,
    pub notes: Vec<String>,
}

/// The cost of a stage.
#[derive(Serialize)]
pub struct StageEntry {
    pub name: &'static str,
    pub ns: f64,
    /// Half the width of the range: the spread of equal filters, or the standard error of the slope.
    pub uncertainty_ns: f64,
    /// The price in the cost model of the compiler or in the book, and its place.
    pub priced_ns: Option<f64>,
    pub priced_in: Option<&'static str>,
    /// The fitted line, if the cost is a slope.
    pub fit: Option<Fit>,
}

/// A measured point, with the value of the line at it.
#[derive(Serialize)]
pub struct Point {
    pub x: f64,
    pub measured_ns: f64,
    pub fitted_ns: f64,
}

/// A line of least squares.
#[derive(Serialize)]
pub struct Fit {
    /// The unit of `x`.
    pub unit: &'static str,
    pub intercept_ns: f64,
    /// The cost of one additional unit.
    pub slope_ns: f64,
    /// The standard error of the slope.
    pub standard_error_ns: f64,
    /// The root mean square of the residuals.
    pub residual_ns: f64,
    pub points: Vec<Point>,
}

impl fmt::Display for GapReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = self.kernel.as_deref().unwrap_or("of an unknown release");
        writeln!(
            f,
            "kernel {kernel}, CPU {}, clock {}; {}\n",
            self.cpu,
            self.clock,
            rounds(self.rounds, self.is_settled)
        )?;
        let widths = self.stages.iter().map(|stage| stage.name.chars().count());
        let width = widths.max().unwrap_or(0);
        writeln!(
            f,
            "{:width$}  {:>9}  {:>7}  {:>8}  {:>6}  from",
            "stage", "ns here", "±", "residual", "priced"
        )?;
        for stage in &self.stages {
            let residual = stage
                .fit
                .as_ref()
                .map(|fit| format!("{:.2}", fit.residual_ns));
            let priced = stage.priced_ns.map(|ns| format!("{ns}"));
            let shown = |figure: Option<String>| figure.unwrap_or_else(|| "-".to_owned());
            writeln!(
                f,
                "{:width$}  {:9.3}  {:7.3}  {:>8}  {:>6}  {}",
                stage.name,
                stage.ns,
                stage.uncertainty_ns,
                shown(residual),
                shown(priced),
                stage.priced_in.unwrap_or("-")
            )?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

impl GapReport {
    /// The stages as bars, and the fitted lines.
    pub fn charts(&self) -> Vec<Drawing> {
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
        // The call itself and installations have a different order of magnitude.
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
