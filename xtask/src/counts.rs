//! `cargo xtask counts`: rewrites `bench/counts.tsv` and `bench/goals.tsv`.
//!
//! The tests of the `bench` crate check these tables and can also write them; this task runs these tests.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Writes the tables.
///
/// # Errors
/// If a policy does not compile or the corpus is missing.
pub(crate) fn run() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--package", "tamis-bench"])
        .args(["--no-fail-fast", "--test", "it", "--"])
        .args(["counts::", "goals::", "foreign::"])
        .env("TAMIS_BLESS", "1")
        .status()
        .context("cannot run cargo test")?;
    ensure!(status.success(), "the counts could not be written");
    Ok(())
}
