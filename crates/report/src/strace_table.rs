//! The table of `strace -c`, with its columns and orders.

use std::cmp::Reverse;

use tamis_abi::{Arch, Nr, syscall};
use tamis_profile::{Call, Profile};

/// A column, and an order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The share of the time.
    TimePercent,
    /// The total time.
    TotalTime,
    /// The shortest time.
    MinTime,
    /// The longest time.
    MaxTime,
    /// The mean time.
    AvgTime,
    /// The elapsed time; all times here are elapsed times.
    WallTotal,
    WallMin,
    WallMax,
    WallAvg,
    /// The number of calls.
    Calls,
    /// The number of failed calls.
    Errors,
    /// The name of the call.
    Name,
}

/// The columns with strace's names, the usual one first.
const NAMES: [(Column, &[&str]); 12] = [
    (
        Column::TimePercent,
        &["time-percent", "time", "time_percent"],
    ),
    (
        Column::TotalTime,
        &["total-time", "total_time", "time-total", "time_total"],
    ),
    (
        Column::MinTime,
        &["min-time", "min_time", "time-min", "time_min", "shortest"],
    ),
    (
        Column::MaxTime,
        &["max-time", "max_time", "time-max", "time_max", "longest"],
    ),
    (
        Column::AvgTime,
        &["avg-time", "avg_time", "time-avg", "time_avg"],
    ),
    (
        Column::WallTotal,
        &["wall-total", "wall_total", "total-wall", "total_wall"],
    ),
    (
        Column::WallMin,
        &["wall-min", "wall_min", "min-wall", "min_wall"],
    ),
    (
        Column::WallMax,
        &["wall-max", "wall_max", "max-wall", "max_wall"],
    ),
    (
        Column::WallAvg,
        &["wall-avg", "wall_avg", "avg-wall", "avg_wall"],
    ),
    (Column::Calls, &["calls", "count"]),
    (Column::Errors, &["errors", "error"]),
    (
        Column::Name,
        &["name", "syscall", "syscall-name", "syscall_name"],
    ),
];

impl Column {
    /// The default columns.
    pub const USUAL: [Column; 6] = [
        Column::TimePercent,
        Column::TotalTime,
        Column::AvgTime,
        Column::Calls,
        Column::Errors,
        Column::Name,
    ];

    /// The column with one of strace's names.
    pub fn named(name: &str) -> Option<Column> {
        let mut columns = NAMES.iter();
        columns
            .find(|(_, names)| names.contains(&name))
            .map(|(column, _)| *column)
    }

    /// The usual names of all columns.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(_, names)| names[0])
    }

    /// Parses column names separated by commas; the name of the call is appended if it is missing.
    ///
    /// # Errors
    /// The name that is unknown or occurs twice.
    pub fn list(text: &str) -> Result<Vec<Column>, String> {
        let mut columns = Vec::new();
        for name in text.split(',') {
            match Column::named(name) {
                Some(column) if !columns.contains(&column) => columns.push(column),
                _ => return Err(name.to_owned()),
            }
        }
        if !columns.contains(&Column::Name) {
            columns.push(Column::Name);
        }
        Ok(columns)
    }

    const fn heading(self) -> &'static str {
        match self {
            Column::TimePercent => "% time",
            Column::TotalTime => "seconds",
            Column::MinTime => "shortest",
            Column::MaxTime => "longest",
            Column::AvgTime => "usecs/call",
            Column::WallTotal => "wall-total",
            Column::WallMin => "wall-min",
            Column::WallMax => "wall-max",
            Column::WallAvg => "wall-avg",
            Column::Calls => "calls",
            Column::Errors => "errors",
            Column::Name => "syscall",
        }
    }

    const fn width(self) -> usize {
        match self {
            Column::TimePercent => 6,
            Column::TotalTime | Column::AvgTime | Column::WallTotal | Column::WallAvg => 11,
            Column::MinTime | Column::MaxTime | Column::WallMin | Column::WallMax => 8,
            Column::Calls | Column::Errors => 9,
            Column::Name => 16,
        }
    }
}

/// The cells of a row.
struct Row {
    name: String,
    nr: Nr,
    total_ns: u64,
    min_ns: u64,
    max_ns: u64,
    calls: u64,
    errors: u64,
}

impl Row {
    fn from_call(arch: Arch, nr: Nr, call: &Call) -> Row {
        let name = syscall::name(arch, nr);
        Row {
            name: name.map_or_else(|| nr.0.to_string(), str::to_owned),
            nr,
            total_ns: call.times.as_ref().map_or(0, |times| times.total_ns),
            min_ns: call.times.as_ref().map_or(0, |times| times.min_ns),
            max_ns: call.times.as_ref().map_or(0, |times| times.max_ns),
            calls: call.count,
            errors: call.errors.values().copied().fold(0, u64::saturating_add),
        }
    }

    fn total(rows: &[Row]) -> Row {
        let sum = |of: fn(&Row) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
        Row {
            name: "total".to_owned(),
            nr: Nr(0),
            total_ns: sum(|row| row.total_ns),
            min_ns: rows.iter().map(|row| row.min_ns).min().unwrap_or(0),
            max_ns: rows.iter().map(|row| row.max_ns).max().unwrap_or(0),
            calls: sum(|row| row.calls),
            errors: sum(|row| row.errors),
        }
    }

    fn cell(&self, column: Column, total_ns: u64) -> String {
        let seconds = |ns: u64| format!("{:.6}", ns as f64 / 1e9);
        match column {
            Column::TimePercent => {
                let share = self.total_ns as f64 / total_ns.max(1) as f64;
                format!("{:.2}", share * 100.0)
            }
            Column::TotalTime | Column::WallTotal => seconds(self.total_ns),
            Column::MinTime | Column::WallMin => seconds(self.min_ns),
            Column::MaxTime | Column::WallMax => seconds(self.max_ns),
            Column::AvgTime | Column::WallAvg => {
                (self.total_ns / 1000 / self.calls.max(1)).to_string()
            }
            Column::Calls => self.calls.to_string(),
            Column::Errors if self.errors == 0 => String::new(),
            Column::Errors => self.errors.to_string(),
            Column::Name => self.name.clone(),
        }
    }
}

/// The table of `strace -c -w`: a row for each call and a table for each architecture; times include sleep. Rows are
/// ordered by a column, descending, or by number without one.
pub fn table(profile: &Profile, columns: &[Column], order: Option<Column>) -> String {
    let mut text = String::new();
    for arch in [Arch::X86_64, Arch::X86, Arch::X32] {
        let calls = profile.calls().filter(|(of, _, _)| *of == arch);
        let rows: Vec<Row> = calls
            .map(|(_, nr, call)| Row::from_call(arch, nr, call))
            .collect();
        if rows.is_empty() {
            continue;
        }
        text += match arch {
            Arch::X86 => "System call usage summary for 32 bit mode:\n",
            Arch::X32 => "System call usage summary for x32 mode:\n",
            _ => "",
        };
        add(rows, columns, order, &mut text);
    }
    text
}

fn add(mut rows: Vec<Row>, columns: &[Column], order: Option<Column>, text: &mut String) {
    let key = |row: &Row| match order {
        Some(Column::TimePercent | Column::TotalTime | Column::WallTotal) => row.total_ns,
        Some(Column::MinTime | Column::WallMin) => row.min_ns,
        Some(Column::MaxTime | Column::WallMax) => row.max_ns,
        Some(Column::AvgTime | Column::WallAvg) => row.total_ns / row.calls.max(1),
        Some(Column::Calls) => row.calls,
        Some(Column::Errors) => row.errors,
        Some(Column::Name) | None => 0,
    };
    match order {
        Some(Column::Name) => rows.sort_by(|one, other| one.name.cmp(&other.name)),
        None => rows.sort_by_key(|row| row.nr),
        Some(_) => rows.sort_by_key(|row| (Reverse(key(row)), Reverse(row.calls), row.nr)),
    }
    let total = Row::total(&rows);
    let mut line = |cell: &dyn Fn(Column) -> String| {
        let cells = columns.iter().map(|column| {
            let (cell, width) = (cell(*column), column.width());
            match column {
                Column::Name => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            }
        });
        let cells: Vec<String> = cells.collect();
        *text += cells.join(" ").trim_end_matches(' ');
        text.push('\n');
    };
    let rule = |column: Column| "-".repeat(column.width());
    line(&|column| column.heading().to_owned());
    line(&rule);
    for row in &rows {
        line(&|column| row.cell(column, total.total_ns));
    }
    line(&rule);
    line(&|column| total.cell(column, total.total_ns));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_profile::Times;

    fn profile() -> Profile {
        let mut profile = Profile::default();
        for (nr, count, total_ns) in [(0, 4, 8_000_000), (1, 9, 2_000_000)] {
            let call = profile.call_mut(Arch::X86_64, Nr(nr));
            call.count = count;
            call.times = Some(Box::new(Times {
                total_ns,
                min_ns: 1000,
                max_ns: total_ns / 2,
                buckets: [0; Times::BUCKETS],
            }));
        }
        profile.call_mut(Arch::X86_64, Nr(1)).errors.insert(2, 3);
        profile
    }

    #[test]
    fn the_usual_table_is_that_of_strace() {
        let text = table(&profile(), &Column::USUAL, Some(Column::TimePercent));
        let expected = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 80.00    0.008000        2000         4           read
 20.00    0.002000         222         9         3 write
------ ----------- ----------- --------- --------- ----------------
100.00    0.010000         769        13         3 total
";
        assert_eq!(text, expected);
    }

    #[test]
    fn columns_and_order_are_chosen() {
        let columns = Column::list("name,longest,count").unwrap();
        let text = table(&profile(), &columns, Some(Column::Calls));
        let expected = "\
syscall           longest     calls
---------------- -------- ---------
write            0.001000         9
read             0.004000         4
---------------- -------- ---------
total            0.004000        13
";
        assert_eq!(text, expected);
        assert_eq!(
            Column::list("calls").unwrap(),
            [Column::Calls, Column::Name]
        );
        // The names of strace 7.1.
        let columns = Column::list("wall_total,min-wall,wall-avg").unwrap();
        let text = table(&profile(), &columns, Some(Column::WallMax));
        let expected = " wall-total wall-min    wall-avg syscall
----------- -------- ----------- ----------------
   0.008000 0.000001        2000 read
   0.002000 0.000001         222 write
----------- -------- ----------- ----------------
   0.010000 0.000001         769 total
";
        assert_eq!(text, expected);
        assert_eq!(Column::list("calls,count"), Err("count".to_owned()));
        assert_eq!(Column::list("pace"), Err("pace".to_owned()));
    }
}
