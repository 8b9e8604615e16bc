//! Arguments that the kernel truncates: `widths.csv` → `widths.rs`.

use std::fmt::Write;

use anyhow::{Context, Result, bail, ensure};

use super::Output;
use super::columns::COLUMNS;

/// The data file, reviewed by hand, with the place in the kernel for every row.
pub(super) const DATA: &str = "widths.csv";

/// The Rust table of the data file.
pub(super) fn generate(data: &str) -> Result<Output> {
    let mut rows = Vec::new();
    for row in super::csv_rows(data) {
        let [call, argument, arches, bits, reason] = row[..] else {
            bail!("{DATA}: {row:?} doesn't have five fields");
        };
        ensure!(!reason.is_empty(), "{DATA}: `{call}` without a reason");
        let width = match bits {
            "16" => "Bits16",
            "32" => "Bits32",
            _ => bail!("{DATA}: {bits} bits"),
        };
        rows.push((call, argument, arches_of(arches)?, width));
    }
    ensure!(rows.is_sorted(), "{DATA} is not sorted");
    let mut text = super::header(
        "Arguments of which the kernel reads fewer bits than their C type has.",
        &[DATA],
        "the kernel's source, as the data file says row by row",
    );
    text.push_str("use crate::arch::Arch;\nuse crate::signature::Width;\n\n");
    text.push_str("/// Call, argument, architectures (none: all), width; sorted.\n");
    writeln!(
        text,
        "pub(crate) static WIDTHS: [(&str, &str, &[Arch], Width); {}] = [",
        rows.len()
    )?;
    for (call, argument, arches, width) in rows {
        writeln!(
            text,
            "    ({call:?}, {argument:?}, &[{}], Width::{width}),",
            arches.join(", ")
        )?;
    }
    text.push_str("];\n");
    Ok(Output {
        file: "widths.rs",
        text,
    })
}

/// The Rust names of the architectures of a row; empty for all.
fn arches_of(field: &str) -> Result<Vec<String>> {
    if field == "*" {
        return Ok(Vec::new());
    }
    let variant = |name: &str| {
        let mut variants = COLUMNS.iter().flat_map(|column| column.archs);
        let variant = variants.find(|variant| variant.to_lowercase() == name);
        let variant = variant.with_context(|| format!("{DATA}: no architecture `{name}`"))?;
        Ok(format!("Arch::{variant}"))
    };
    field.split(' ').map(variant).collect()
}
