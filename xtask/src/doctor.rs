//! `cargo xtask doctor`: what this machine and this user lack for the tests and the product, and how to get it.
//!
//! The probes are those of the tests. The table is therefore made by an example of testkit, which this task builds and
//! runs.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Prints the table.
///
/// # Errors
/// If the example can't be built or fails.
pub(crate) fn run() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "run",
            "--quiet",
            "--package",
            "tamis-testkit",
            "--example",
            "doctor",
        ])
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the table could not be made");
    Ok(())
}
