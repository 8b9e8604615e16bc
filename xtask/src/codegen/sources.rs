//! The public sources of the tables, and their places on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

/// Names and numbers of one architecture.
pub(super) type Numbers = BTreeMap<String, u32>;

/// Excludes crates for other systems, which a build does not download.
const PLATFORM: &str = "--filter-platform=x86_64-unknown-linux-gnu";

/// The source directory of the crate linux-raw-sys. This package depends on it, so that it is always present.
pub(super) fn linux_raw_sys() -> Result<&'static Path> {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    if let Some(dir) = DIR.get() {
        return Ok(dir);
    }
    let metadata = output(
        Command::new(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--offline", PLATFORM])
            .current_dir(env!("CARGO_MANIFEST_DIR")),
    )?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "linux-raw-sys")
        .and_then(|package| package["manifest_path"].as_str())
        .context("linux-raw-sys is not among the packages")?;
    Ok(DIR.get_or_init(|| Path::new(manifest).with_file_name("src")))
}

/// A release of the PyPI package `system-calls`, installed under `target/codegen`.
pub(super) struct SystemCalls {
    /// The version of the kernel of its tables.
    pub(super) kernel: (u16, u16),
    tables: PathBuf,
}

impl SystemCalls {
    /// Installs the release unless it is already installed.
    pub(super) fn install(version: &str) -> Result<SystemCalls> {
        let dir = download_dir().join(format!("system-calls-{version}"));
        if !dir.exists() {
            output(
                Command::new("python3")
                    .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
                    .arg(&dir)
                    .arg(format!("system-calls=={version}")),
            )?;
        }
        // The module's name was `syscalls` in the first releases.
        let tables = ["system_calls", "syscalls"]
            .map(|module| dir.join(module).join("tables"))
            .into_iter()
            .find(|tables| tables.is_dir())
            .with_context(|| format!("no tables in {}", dir.display()))?;
        let mut parts = version.split('.').map(str::parse);
        let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
            bail!("version {version}");
        };
        Ok(SystemCalls {
            kernel: (major, minor),
            tables,
        })
    }

    /// The table of an architecture; `None` if this release has none.
    pub(super) fn table(&self, file: &str) -> Option<Numbers> {
        let text = fs::read_to_string(self.tables.join(file).with_extension("py")).ok()?;
        let numbers: Numbers = text
            .lines()
            .filter_map(|line| {
                let (name, number) = line.trim().strip_prefix('"')?.split_once("\": ")?;
                Some((name.to_owned(), number.trim_end_matches(',').parse().ok()?))
            })
            .collect();
        (!numbers.is_empty()).then_some(numbers)
    }
}

/// The directory of downloads, which is not part of the tree.
pub(super) fn download_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
            PathBuf::from,
        )
        .join("codegen")
}

/// The standard output of a command, which must succeed.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("running {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}
