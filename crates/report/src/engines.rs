//! Times of evaluators, side by side: `tamis-lab engines bench`.

use std::fmt;

use serde::Serialize;
use tamis_chart::{Bar, Bars, Drawing, Group};

use crate::bench::rounds;
use crate::entry::counted;

/// The times of all evaluators on the same inputs.
#[derive(Serialize)]
pub struct EnginesReport {
    pub filters: Vec<EvaluatedEntry>,
    pub absent: Vec<AbsentEntry>,
}

/// A filter, or a stack of them.
#[derive(Serialize)]
pub struct EvaluatedEntry {
    pub name: String,
    pub length_insns: usize,
    /// The default engine, and the reason for its choice.
    pub auto: String,
    /// The size of the result cache; `None` for socket filters.
    pub table_bytes: Option<usize>,
    pub prepared: Vec<PreparedEntry>,
    pub cases: Vec<EnginesCaseEntry>,
}

/// The preparation of an evaluator, before its first evaluation.
#[derive(Serialize)]
pub struct PreparedEntry {
    #[serde(flatten)]
    pub row: Row,
    pub min_us: f64,
}

/// Inputs that all evaluators ran on.
#[derive(Serialize)]
pub struct EnginesCaseEntry {
    pub name: String,
    /// The number of evaluations per round and evaluator.
    pub evaluations: usize,
    pub rounds: u32,
    pub is_settled: bool,
    pub results: Vec<EngineEntry>,
}

/// An evaluator on the inputs of a case.
#[derive(Serialize)]
pub struct EngineEntry {
    #[serde(flatten)]
    pub row: Row,
    /// The mean time of an evaluation in the fastest round.
    pub min_ns: f64,
    /// The speed-up over the reference interpreter.
    pub over_reference: f64,
    /// The speed-up over libpcap; `None` without it.
    pub over_libpcap: Option<f64>,
}

/// An evaluator with its options.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
pub struct Row {
    pub engine: &'static str,
    pub is_cached: bool,
    pub is_batch: bool,
}

/// An evaluator that did not run.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct AbsentEntry {
    pub engine: &'static str,
    /// The filter; `None` if the evaluator ran on none.
    pub filter: Option<String>,
    pub reason: String,
}

impl Row {
    /// The name of the reference interpreter.
    pub const REFERENCE: &'static str = "reference";
    /// The name of libpcap's interpreter.
    pub const LIBPCAP: &'static str = "libpcap";

    /// An evaluator without options.
    pub const fn plain(engine: &'static str) -> Row {
        Row {
            engine,
            is_cached: false,
            is_batch: false,
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.engine)?;
        f.write_str(if self.is_cached { ", cached" } else { "" })?;
        f.write_str(if self.is_batch { ", batch" } else { "" })
    }
}

impl EnginesCaseEntry {
    /// The case with these evaluators and the times of their fastest evaluations in nanoseconds.
    pub fn new(
        name: String,
        evaluations: usize,
        rounds: u32,
        is_settled: bool,
        times: &[(Row, f64)],
    ) -> EnginesCaseEntry {
        let of = |engine: &'static str| {
            let mut times = times.iter();
            let found = times.find(|(row, _)| *row == Row::plain(engine));
            found.map(|(_, ns)| *ns)
        };
        let (reference, libpcap) = (of(Row::REFERENCE), of(Row::LIBPCAP));
        let result = |(row, min_ns): &(Row, f64)| EngineEntry {
            row: *row,
            min_ns: *min_ns,
            over_reference: reference.unwrap_or(*min_ns) / min_ns,
            over_libpcap: libpcap.map(|ns| ns / min_ns),
        };
        EnginesCaseEntry {
            name,
            evaluations,
            rounds,
            is_settled,
            results: times.iter().map(result).collect(),
        }
    }
}

impl EnginesReport {
    /// Bars of each case, a drawing for each filter.
    pub fn charts(&self) -> Vec<Drawing> {
        self.filters.iter().map(EvaluatedEntry::chart).collect()
    }
}

impl EvaluatedEntry {
    fn chart(&self) -> Drawing {
        let results = self.cases.iter().flat_map(|case| &case.results);
        let mut rows: Vec<Row> = Vec::new();
        for result in results {
            if !rows.contains(&result.row) {
                rows.push(result.row);
            }
        }
        let group = |case: &EnginesCaseEntry| {
            let bar = |row: &Row| {
                let found = case.results.iter().find(|result| result.row == *row);
                Bar {
                    value: found.map_or(0.0, |result| result.min_ns),
                    mark: None,
                }
            };
            Group {
                name: case.name.clone(),
                bars: rows.iter().map(bar).collect(),
            }
        };
        Bars {
            title: format!("Time of an evaluation: {}", self.name),
            unit: "ns".to_owned(),
            series: rows.iter().map(Row::to_string).collect(),
            groups: self.cases.iter().map(group).collect(),
        }
        .draw()
    }
}

impl fmt::Display for EnginesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for filter in &self.filters {
            filter.fmt(f)?;
        }
        for AbsentEntry {
            engine,
            filter,
            reason,
        } in &self.absent
        {
            let filter = filter.as_ref();
            let place = filter.map_or_else(String::new, |name| format!(" for {name}"));
            writeln!(f, "note: no {engine}{place}: {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Display for EvaluatedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = counted(self.length_insns, "instruction");
        writeln!(f, "{}, {length}; auto is {}\n", self.name, self.auto)?;
        for case in &self.cases {
            case.fmt(f)?;
        }
        writeln!(f, "  {:18}  {:>10}", "to prepare", "µs")?;
        for PreparedEntry { row, min_us } in &self.prepared {
            writeln!(f, "  {:18}  {min_us:10.2}", row.to_string())?;
        }
        if let Some(bytes) = self.table_bytes {
            writeln!(f, "  the result cache has {bytes} bytes")?;
        }
        writeln!(f)
    }
}

impl fmt::Display for EnginesCaseEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let evaluations = counted(self.evaluations, "evaluation");
        let rounds = rounds(self.rounds, self.is_settled);
        writeln!(f, "{}: {evaluations}, {rounds}", self.name)?;
        writeln!(
            f,
            "  {:18}  {:>10}  {:>11}  {:>9}",
            "engine", "ns", "x reference", "x libpcap"
        )?;
        for result in &self.results {
            let over_libpcap = result.over_libpcap;
            let over_libpcap = over_libpcap.map_or_else(|| "-".to_owned(), |x| format!("{x:.2}"));
            writeln!(
                f,
                "  {:18}  {:10.2}  {:11.2}  {over_libpcap:>9}",
                result.row.to_string(),
                result.min_ns,
                result.over_reference
            )?;
        }
        writeln!(f)
    }
}
