//! The output of `bench/peers`: a document for programs, tables for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::comparison::{Compared, Filters, Made, Origin, Row};
use super::judge::{Meaning, Witness};
use super::rfc::Experiment;
use super::sandbox::Sandbox;
use super::table::Table;

/// All comparisons.
#[derive(Clone, Debug, Serialize)]
pub struct PeersReport {
    /// The schema of the document.
    pub schema: &'static str,
    /// The version of the running kernel, if known.
    pub kernel: Option<String>,
    /// The number of times that filters were installed and timed; `None` if nothing was timed.
    pub rounds: Option<u32>,
    /// Comparisons that were not possible here.
    pub missing: Vec<String>,
    /// The policies.
    pub policies: Vec<Compared>,
    /// The experiment with 306 calls.
    pub rfc: Option<Experiment>,
    /// The sandbox's most frequent calls.
    pub sandbox: Option<Sandbox>,
    /// The total time.
    pub total_s: f64,
}

/// The value of [`PeersReport::schema`].
pub const SCHEMA: &str = "tamis.peers/1";

const HEADINGS: [&str; 13] = [
    "tool", "from", "length", "mean", "max", "weighted", "bitmap", "uncached", "cached", "ns",
    "compile", "x", "meaning",
];

impl PeersReport {
    /// The reason why requested times are missing, if they are.
    pub fn not_timed(&self) -> Option<&str> {
        let policies = self.policies.iter().map(|policy| &policy.not_timed);
        let others = [
            self.rfc.as_ref().and_then(|rfc| rfc.not_timed.as_deref()),
            self.sandbox
                .as_ref()
                .and_then(|sandbox| sandbox.not_timed.as_deref()),
        ];
        let mut reasons = policies
            .filter_map(Option::as_deref)
            .chain(others.into_iter().flatten());
        reasons.next()
    }

    /// The tables, each with its title.
    pub fn tables(&self) -> Vec<String> {
        let mut tables: Vec<String> = self.policies.iter().map(policy_text).collect();
        if let Some(rfc) = &self.rfc {
            let title = "306 allowed calls, getppid timed (the RFC of 2018)\n";
            tables.push(title.to_owned() + &rfc.text());
        }
        if let Some(sandbox) = &self.sandbox {
            let title =
                "gvisor sentry systrap, call by call: steps, then ns over the empty filter\n";
            tables.push(title.to_owned() + &sandbox.text());
        }
        tables
    }

    /// The tables and notes.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for table in self.tables() {
            text += &table;
            text.push('\n');
        }
        for missing in &self.missing {
            let _ = writeln!(text, "missing: {missing}");
        }
        if let Some(reason) = self.not_timed() {
            let _ = writeln!(text, "not timed: {reason}");
        }
        let kernel = self.kernel.as_deref().unwrap_or("an unknown kernel");
        let _ = writeln!(text, "{:.0} s on {kernel}", self.total_s);
        text
    }
}

fn policy_text(policy: &Compared) -> String {
    let mut text = format!(
        "{}: {} calls allowed; weights: {}\n",
        policy.policy, policy.allowed_calls, policy.weights
    );
    let mut table = Table::new(&HEADINGS);
    for row in &policy.rows {
        table.push(cells(row));
    }
    text += &table.text();
    if let (Some(none), Some(empty)) = (policy.no_filter_ns, policy.empty_over_none_ns) {
        let _ = writeln!(
            text,
            "  ns over no filter ({none:.1} ns; the empty filter: {empty:+.1}) of:"
        );
        let _ = writeln!(text, "    {}", names(&policy.timed));
    }
    for better in &policy.better {
        let number = |value: f64| match value.fract() == 0.0 || value >= 100.0 {
            true => format!("{value:.0}"),
            false => format!("{value:.3}"),
        };
        let figure = better.figure.replace('_', " ");
        let others = better.others.iter();
        let others = others.map(|other| format!("{} ({})", other.tool, number(other.value)));
        let others: Vec<String> = others.collect();
        let _ = writeln!(
            text,
            "  better than tamis: {figure} (tamis {}):",
            number(better.tamis)
        );
        let _ = writeln!(text, "    {}", others.join(", "));
    }
    for (witness, tools) in witnesses(&policy.rows) {
        let _ = writeln!(text, "  {witness}\n    {}", tools.join(", "));
    }
    text
}

/// The names of calls, with the number of times each occurs.
fn names(calls: &[String]) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for call in calls {
        let name = call.split('(').next().unwrap_or_default();
        let name = name.rsplit(' ').next().unwrap_or_default();
        match counted.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => counted.push((name, 1)),
        }
    }
    let shown = counted.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        _ => format!("{name} ({count})"),
    });
    shown.collect::<Vec<String>>().join(", ")
}

/// The lines about differences, each with its tools.
fn witnesses(rows: &[Row]) -> BTreeMap<String, Vec<&str>> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let line = |kind: &str, witness: &Witness| {
        let Witness {
            call,
            policy,
            program,
        } = witness;
        format!("{kind}: {call}: policy {policy}, program {program}:")
    };
    for row in rows {
        let text = match &row.made {
            Made::Refused(reason) => format!("none: {reason}:"),
            Made::Filters(filters) => match &filters.meaning {
                Meaning::Equal => continue,
                Meaning::EqualForItsArchitectures { elsewhere } => line("elsewhere", elsewhere),
                Meaning::Differs { witness } => line("differs", witness),
                Meaning::Unknown { reason } => format!("unknown: {reason}:"),
            },
        };
        found.entry(text).or_default().push(&row.tool);
    }
    found
}

fn cells(row: &Row) -> Vec<String> {
    let from = match row.from {
        Origin::Here => "here",
        Origin::File => "file",
    };
    let mut cells = vec![row.tool.clone(), from.to_owned()];
    match &row.made {
        Made::Refused(_) => {
            cells.resize(HEADINGS.len() - 1, "-".to_owned());
            cells.push("none".to_owned());
        }
        Made::Filters(filters) => cells.extend(figures(filters)),
    }
    cells
}

fn figures(filters: &Filters) -> Vec<String> {
    let counts = &filters.counts;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let meaning = match &filters.meaning {
        Meaning::Equal => "equal",
        Meaning::EqualForItsArchitectures { .. } => "equal, but for other architectures",
        Meaning::Differs { .. } => "differs",
        Meaning::Unknown { .. } => "unknown",
    };
    vec![
        counts.length_insns.to_string(),
        format!("{:.2}", counts.mean_steps),
        counts.max_steps.to_string(),
        format!("{:.2}", counts.weighted_steps),
        format!("{:.2}", counts.bitmap_steps),
        format!("{:.2}", counts.uncached_steps),
        counts.cached_calls.to_string(),
        or_dash(filters.over_none_ns.map(|ns| format!("{ns:+.1}"))),
        or_dash(filters.compile_us.map(|us| format!("{us:.0} us"))),
        or_dash(filters.compile_ratio.map(|ratio| format!("{ratio:.2}"))),
        meaning.to_owned(),
    ]
}
