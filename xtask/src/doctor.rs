//! `cargo xtask doctor`: what this machine and this user lack for the tests and the product, and how to get it.
//!
//! The probes are those of the tests, so they are an example of testkit; this task builds and runs it.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Prints the table.
///
/// # Errors
/// If it can't be built.
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
