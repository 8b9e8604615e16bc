//! `cargo xtask counts`: writes `bench/counts.tsv` and `bench/foreign.tsv` anew.
//!
//! The test of the `bench` crate that checks the table also knows how to write it; this is a short way
//! to call it.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Writes the table.
///
/// # Errors
/// If a policy does not compile or the corpus is missing.
pub(crate) fn run() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--package", "tamis-bench"])
        .args(["--test", "counts", "--test", "foreign"])
        .env("TAMIS_BLESS", "1")
        .status()
        .context("cannot run cargo test")?;
    ensure!(status.success(), "the counts could not be written");
    Ok(())
}
