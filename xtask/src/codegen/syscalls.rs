//! System call numbers: sources → `syscalls.csv` → `syscalls.rs`.
//!
//! One column per table of numbers; architectures that differ only in byte order share one. A number is written as
//! the filter reads it, except that x32's are without bit 30. A number after `=` belongs to a second name of a call:
//! lookups accept the name but never print it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result, bail, ensure};

use super::columns::{COLUMNS, Column, attribute, check_header, table_of_arch};
use super::since::{Bounds, History, Kernel, Since};
use super::sources::{Numbers, SystemCalls, linux_raw_sys};
use super::{Output, write_data};

/// The data file.
pub(super) const DATA: &str = "syscalls.csv";

/// The releases of `system-calls`, oldest first, each with the tables of one kernel.
const RELEASES: [&str; 14] = [
    "5.13.0", "5.15.0", "5.16.0", "5.19.0", "6.4.0", "6.6.0", "6.7.0", "6.11.0", "6.13.0",
    "6.15.0", "6.17.0", "6.19.0", "7.0", "7.2",
];

/// `__NR_*` macros of the headers that are not calls.
const MARKERS: [&str; 4] = ["OABI_SYSCALL_BASE", "SYSCALL_BASE", "SYSCALL_MASK", "Linux"];

/// Prefixes of names that reserve a number.
const PLACEHOLDERS: [&str; 2] = ["unused", "reserved"];

/// Second names of calls in the headers.
const SECOND_NAMES: [&str; 1] = ["arm_sync_file_range"];

const X32_BIT: u32 = 0x4000_0000;

/// A cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    nr: u32,
    is_second_name: bool,
}

/// A call: one row of the data file.
struct Row {
    name: String,
    since: Since,
    cells: BTreeMap<&'static str, Cell>,
}

/// Reads the sources into the data file.
pub(super) fn refresh() -> Result<()> {
    let releases = RELEASES
        .iter()
        .map(|version| SystemCalls::install(version))
        .collect::<Result<Vec<_>>>()?;
    let mut cells: BTreeMap<String, BTreeMap<&'static str, Cell>> = BTreeMap::new();
    let mut bounds: BTreeMap<String, BTreeMap<&'static str, Bounds>> = BTreeMap::new();
    for column in &COLUMNS {
        let tables: Vec<(Kernel, Numbers)> = releases
            .iter()
            .filter_map(|release| {
                let table = release.table(column.series)?;
                Some((
                    Kernel(release.kernel.0, release.kernel.1),
                    without_x32_bit(table),
                ))
            })
            .collect();
        for (name, nr) in merged(column, &tables)? {
            if let Some(found) = bounds_of(&name, &tables) {
                bounds
                    .entry(name.clone())
                    .or_default()
                    .insert(column.name, found);
            }
            let is_second_name = SECOND_NAMES.contains(&name.as_str());
            let cell = Cell { nr, is_second_name };
            cells.entry(name).or_default().insert(column.name, cell);
        }
    }
    let history = History::read()?;
    let mut rows = Vec::new();
    for (name, cells) in cells {
        let since = history.decide(&name, bounds.get(&name).unwrap_or(&BTreeMap::new()))?;
        rows.push(Row { name, since, cells });
    }
    let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let unused = history.unused(&names);
    ensure!(unused.is_empty(), "kernels without a call: {unused:?}");
    write_data(DATA, &to_csv(&rows))
}

/// The numbers of one column from all sources; an error if two disagree.
fn merged(column: &Column, tables: &[(Kernel, Numbers)]) -> Result<Numbers> {
    let raw = column.raw.map(raw_numbers).transpose()?.unwrap_or_default();
    let mut merged = raw;
    for (kernel, table) in tables {
        for (name, &nr) in table {
            let known = *merged.entry(name.clone()).or_insert(nr);
            ensure!(
                known == nr,
                "{} {name}: {known} and {nr} (system-calls {kernel})",
                column.name
            );
        }
    }
    ensure!(!merged.is_empty(), "no source for {}", column.name);
    Ok(merged)
}

/// The `__NR_*` constants of a module of linux-raw-sys that are calls.
pub(super) fn raw_numbers(module: &str) -> Result<Numbers> {
    let path = linux_raw_sys()?.join(module).join("general.rs");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let numbers = text
        .lines()
        .filter_map(|line| {
            let (name, nr) = line
                .strip_prefix("pub const __NR_")?
                .strip_suffix(';')?
                .split_once(": u32 = ")?;
            let is_call =
                !MARKERS.contains(&name) && !PLACEHOLDERS.iter().any(|p| name.starts_with(p));
            is_call.then_some((name.to_owned(), nr.parse().ok()?))
        })
        .collect();
    Ok(without_x32_bit(numbers))
}

fn without_x32_bit(mut numbers: Numbers) -> Numbers {
    for nr in numbers.values_mut() {
        *nr &= !X32_BIT;
    }
    numbers
}

fn bounds_of(name: &str, tables: &[(Kernel, Numbers)]) -> Option<Bounds> {
    let first = tables
        .iter()
        .position(|(_, table)| table.contains_key(name))?;
    Some(Bounds {
        absent: first
            .checked_sub(1)
            .map(|last_absent| tables[last_absent].0),
        present: tables[first].0,
    })
}

fn to_csv(rows: &[Row]) -> String {
    let mut text = String::from("name,since");
    for column in &COLUMNS {
        write!(text, ",{}", column.name).unwrap();
    }
    text.push('\n');
    for row in rows {
        write!(text, "{},{}", row.name, row.since).unwrap();
        for column in &COLUMNS {
            match row.cells.get(column.name) {
                None => text.push(','),
                Some(cell) => {
                    let mark = if cell.is_second_name { "=" } else { "" };
                    write!(text, ",{mark}{}", cell.nr).unwrap();
                }
            }
        }
        text.push('\n');
    }
    text
}

fn from_csv(text: &str) -> Result<Vec<Row>> {
    let header: Vec<&str> = text.lines().next().unwrap_or("").split(',').collect();
    check_header(&header, &["name", "since"])?;
    super::csv_rows(text)
        .map(|fields| {
            ensure!(fields.len() == header.len(), "{DATA}: {fields:?}");
            let mut cells = BTreeMap::new();
            for (column, field) in COLUMNS.iter().zip(&fields[2..]) {
                if !field.is_empty() {
                    cells.insert(column.name, cell(field)?);
                }
            }
            Ok(Row {
                name: fields[0].to_owned(),
                since: fields[1].parse()?,
                cells,
            })
        })
        .collect()
}

fn cell(field: &str) -> Result<Cell> {
    let (is_second_name, nr) = match field.strip_prefix('=') {
        Some(nr) => (true, nr),
        None => (false, field),
    };
    let nr = nr
        .parse()
        .with_context(|| format!("{DATA}: number `{field}`"))?;
    Ok(Cell { nr, is_second_name })
}

/// The Rust tables of the data file.
pub(super) fn generate(data: &str) -> Result<Output> {
    let rows = from_csv(data)?;
    let mut text = super::header(
        "System call numbers per architecture.",
        &[DATA],
        "linux-raw-sys 0.12.1, PyPI system-calls 5.13 to 7.2, man-pages 6.03",
    );
    text.push_str("use crate::Arch;\nuse crate::syscall::{Call, NONE, Table, call};\n\n");
    text.push_str("/// Every name of any architecture, sorted.\n");
    text.push_str("pub(crate) static NAMES: [&str; NAME_COUNT] = [\n");
    let names = rows.iter().map(|row| format!("{:?},", row.name));
    super::wrapped(&mut text, "    ", names);
    text.push_str("];\n");
    text.push_str("\n/// How many names there are.\n");
    writeln!(text, "pub(crate) const NAME_COUNT: usize = {};", rows.len())?;
    text.push_str("\n/// The table of an architecture, if it is there.\n");
    text.push_str(&table_of_arch("table", "Table"));
    for column in &COLUMNS {
        generate_table(&mut text, column, &rows)?;
    }
    Ok(Output {
        file: "syscalls.rs",
        text,
    })
}

fn generate_table(text: &mut String, column: &Column, rows: &[Row]) -> Result<()> {
    let bit = if column.name == "x32" { X32_BIT } else { 0 };
    let mut calls: BTreeMap<u32, (usize, &Row)> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        if let Some(cell) = row.cells.get(column.name)
            && !cell.is_second_name
            && let Some((_, other)) = calls.insert(cell.nr | bit, (place, row))
        {
            bail!(
                "{}: {} is {} and {}",
                column.name,
                cell.nr,
                other.name,
                row.name
            );
        }
    }
    let numbers = rows.iter().map(|row| match row.cells.get(column.name) {
        Some(cell) => format!("{:#x},", cell.nr | bit),
        None => "NONE,".to_owned(),
    });

    let constant = column.name.to_uppercase();
    let attribute = attribute(column);
    writeln!(text, "\n{attribute}static {constant}: Table = Table {{")?;
    writeln!(text, "    calls: &{constant}_CALLS,")?;
    writeln!(text, "    numbers: &[")?;
    super::wrapped(text, "        ", numbers);
    writeln!(text, "    ],\n}};\n")?;
    let count = calls.len();
    writeln!(
        text,
        "{attribute}static {constant}_CALLS: [Call; {count}] = ["
    )?;
    let calls = calls.iter().map(|(nr, (place, row))| {
        let Kernel(major, minor) = row.since.column(column.name).unwrap_or(Kernel(0, 0));
        format!("call({nr:#x}, {place}, {major}, {minor}),")
    });
    super::wrapped(text, "    ", calls);
    text.push_str("];\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_holds_every_number_of_linux_raw_sys() {
        let rows = from_csv(&crate::codegen::read_data(DATA).unwrap()).unwrap();
        let cells: BTreeMap<&str, &Row> = rows.iter().map(|row| (row.name.as_str(), row)).collect();
        for column in &COLUMNS {
            let Some(module) = column.raw else { continue };
            let numbers = raw_numbers(module).unwrap();
            assert!(numbers.len() > 300, "{module}");
            for (name, nr) in numbers {
                let cell = cells[name.as_str()].cells[column.name];
                assert_eq!(cell.nr, nr, "{} {name}", column.name);
            }
        }
    }

    #[test]
    fn data_file_is_what_its_rows_give() {
        let text = crate::codegen::read_data(DATA).unwrap();
        assert_eq!(to_csv(&from_csv(&text).unwrap()), text);
    }
}
