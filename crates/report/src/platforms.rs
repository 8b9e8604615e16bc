//! The platforms of this machine that intercept calls, with their costs: `tamis-lab platforms`.

use std::fmt;

use serde::Serialize;
use tamis_chart::{Bar, Bars, Drawing, Group};

use crate::entry::counted;

/// The platforms, with measured figures if requested.
#[derive(Serialize)]
pub struct PlatformsReport {
    pub platforms: Vec<PlatformEntry>,
    pub rounds: usize,
    pub figures: Vec<FigureEntry>,
    pub advice: Vec<AdviceEntry>,
    pub notes: Vec<String>,
}

/// A platform.
#[derive(Serialize)]
pub struct PlatformEntry {
    pub name: String,
    pub works: bool,
    pub reason: Option<String>,
    pub remedy: Option<&'static str>,
    #[serde(flatten)]
    pub caps: CapsEntry,
}

/// The capabilities of a platform.
#[derive(Serialize)]
pub struct CapsEntry {
    pub family: &'static str,
    pub isolation: &'static str,
    pub min_kernel: String,
    pub sees_results: bool,
    pub sees_tasks: bool,
    pub has_registers: bool,
    pub replaces_calls: bool,
    pub installs_descriptors: bool,
    pub has_threads: bool,
    pub has_forks: bool,
    pub has_exec: bool,
    pub runs_dynamic: bool,
    pub catches_i386: bool,
    pub takes_filters: bool,
    pub patches_sites: bool,
    pub has_own_exe: bool,
    pub is_signal_safe: bool,
    pub is_unprivileged: bool,
}

/// The time of an operation.
#[derive(Serialize)]
pub struct FigureEntry {
    pub case: &'static str,
    pub cpus: usize,
    pub subject: String,
    pub min_ns: f64,
    pub median_ns: f64,
    /// The minimum relative to that of native execution.
    pub ratio: Option<f64>,
}

/// The fastest platform for a workload.
#[derive(Serialize)]
pub struct AdviceEntry {
    pub workload: &'static str,
    pub platform: String,
    pub cpus: usize,
    pub ratio: f64,
}

impl PlatformsReport {
    /// Bars of each case.
    pub fn charts(&self) -> Vec<Drawing> {
        self.cases()
            .into_iter()
            .map(|case| self.chart(case))
            .collect()
    }

    /// The cases that were measured, in order.
    fn cases(&self) -> Vec<&'static str> {
        let mut cases: Vec<&'static str> = self.figures.iter().map(|figure| figure.case).collect();
        cases.dedup();
        cases
    }

    fn chart(&self, case: &str) -> Drawing {
        let of_case = || self.figures.iter().filter(|figure| figure.case == case);
        let mut subjects: Vec<&str> = of_case().map(|figure| figure.subject.as_str()).collect();
        let mut seen = Vec::new();
        subjects.retain(|subject| {
            let is_new = !seen.contains(subject);
            seen.push(*subject);
            is_new
        });
        let group = |subject: &&str| {
            let bars = (1..=2).filter_map(|cpus| {
                let mut figures = of_case();
                let figure =
                    figures.find(|figure| figure.cpus == cpus && figure.subject == *subject)?;
                Some(Bar {
                    value: figure.min_ns / 1000.0,
                    mark: Some(figure.median_ns / 1000.0),
                })
            });
            Group {
                name: (*subject).to_owned(),
                bars: bars.collect(),
            }
        };
        Bars {
            title: format!("{case}: minima, medians marked"),
            unit: "µs".to_owned(),
            series: vec!["one CPU".to_owned(), "two CPUs".to_owned()],
            groups: subjects.iter().map(group).collect(),
        }
        .draw()
    }
}

impl CapsEntry {
    /// The capabilities beyond answering calls, in words.
    fn words(&self) -> String {
        let words = [
            (self.has_threads, "threads"),
            (self.has_forks, "forks"),
            (self.has_exec, "exec"),
            (self.runs_dynamic, "dynamic programs"),
            (self.catches_i386, "32-bit calls"),
            (self.takes_filters, "filters of its own"),
            (self.sees_results, "results"),
            (self.sees_tasks, "tasks"),
            (self.has_registers, "registers"),
            (self.replaces_calls, "other calls instead"),
            (self.installs_descriptors, "descriptors"),
            (self.has_own_exe, "own /proc/self/exe"),
            (self.patches_sites, "patched sites"),
        ];
        let can = words.into_iter().filter(|(can, _)| *can);
        let mut words: Vec<&str> = can.map(|(_, word)| word).collect();
        if self.is_signal_safe {
            words.push("asks in a signal handler");
        }
        if !self.is_unprivileged {
            words.push("needs privileges");
        }
        words.join(", ")
    }
}

impl fmt::Display for PlatformsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for platform in &self.platforms {
            let CapsEntry {
                family,
                isolation,
                min_kernel,
                ..
            } = &platform.caps;
            let works = if platform.works { "works" } else { "doesn't" };
            let name = &platform.name;
            writeln!(
                f,
                "{name:16} {works:8} {family:11} isolation {isolation:8} Linux {min_kernel}"
            )?;
            if let Some(reason) = &platform.reason {
                writeln!(f, "  why: {reason}")?;
            }
            if let Some(remedy) = platform.remedy {
                writeln!(f, "  help: {remedy}")?;
            }
            writeln!(f, "  {}", platform.caps.words())?;
        }
        if self.rounds > 0 {
            self.write_figures(f)?;
        }
        Ok(())
    }
}

impl PlatformsReport {
    fn write_figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nns per operation, {}: minimum, median, minimum by native",
            counted(self.rounds, "round")
        )?;
        for case in self.cases() {
            for cpus in 1..=2 {
                let figures = self.figures.iter();
                let of_row = |figure: &&FigureEntry| figure.case == case && figure.cpus == cpus;
                for (index, figure) in figures.filter(of_row).enumerate() {
                    if index == 0 {
                        let plural = if cpus == 1 { "" } else { "s" };
                        writeln!(f, "{case}, {cpus} CPU{plural}")?;
                    }
                    let (subject, min, median) = (&figure.subject, figure.min_ns, figure.median_ns);
                    write!(f, "  {subject:16} {min:10.0} {median:10.0}")?;
                    match figure.ratio {
                        Some(ratio) => writeln!(f, " {ratio:8.2}")?,
                        None => writeln!(f)?,
                    }
                }
            }
        }
        for advice in &self.advice {
            let AdviceEntry {
                workload,
                platform,
                cpus,
                ratio,
            } = advice;
            let plural = if *cpus == 1 { "" } else { "s" };
            writeln!(
                f,
                "{workload}: {platform} on {cpus} CPU{plural}, {ratio:.1} times native"
            )?;
        }
        self.notes
            .iter()
            .try_for_each(|note| writeln!(f, "note: {note}"))
    }
}
