//! `cargo xtask exec`: builds `tamis-exec` as a small static program, and holds its size.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Static: what is linked with musl needs nothing of the machine.
const TARGET: &str = "x86_64-unknown-linux-musl";
const MAX_BYTES: u64 = 600_000;

/// Builds it and prints where it is.
///
/// # Errors
/// If it doesn't build, or is too large.
pub(crate) fn run() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--package", "tamis-exec", "--profile", "small"])
        .args(["--locked", "--target", TARGET])
        .status()
        .context("cannot run cargo build")?;
    ensure!(
        status.success(),
        "it doesn't build; the target is installed by `rustup target add {TARGET}`"
    );
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let path = folder.join(TARGET).join("small/tamis-exec");
    let bytes = fs::metadata(&path).context("the program")?.len();
    ensure!(
        bytes <= MAX_BYTES,
        "it has {bytes} bytes, and may have {MAX_BYTES}"
    );
    println!("{}: {bytes} bytes", path.display());
    Ok(())
}
