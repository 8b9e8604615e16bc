//! `cargo xtask kernels`: the suites that depend on the kernel, under other kernels and on another architecture.
//!
//! Kernels and a userland are packages of Debian, which are unpacked and not installed; the programs are static ones,
//! and the tests of this tree. A virtual machine without a network boots each kernel with all of that as its initial
//! file system, in an emulated processor, so that any machine can do it. The result is a table of kernels and suites.
//! Nothing is measured, because times in an emulated processor mean nothing.
//!
//! Each run of an executable has a limit, a kernel that stops costs the run in which it stopped, and all runs of a
//! kernel have a limit together. `--smoke` runs the short ones, within five minutes.

mod apt;
mod cpio;
mod image;
mod kernel;
mod machine;
mod results;
mod suite;
mod sysroot;
mod tests;
mod userland;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lexopt::Arg;

use crate::programs::target_folder;
pub(crate) use apt::Archive;
use kernel::Kernel;
use results::Table;
use suite::{SUITES, Suite};
pub(crate) use sysroot::shared_linker;

const USAGE: &str = "usage: cargo xtask kernels [--list] [--smoke] [--suite SUITE]... [KERNEL]...";

/// What the arguments select.
struct Selection {
    kernels: Vec<&'static Kernel>,
    suites: Vec<Suite>,
    /// The time limit of each kernel.
    limit: Duration,
}

/// Runs the suites under the kernels that are named, or under all.
///
/// # Errors
/// If something can't be downloaded, built or started, or a suite fails.
pub(crate) fn run(args: impl Iterator<Item = String>) -> Result<()> {
    let Some(Selection {
        kernels,
        suites,
        limit,
    }) = parse(args)?
    else {
        return Ok(());
    };
    machine::require_qemu(&kernels)?;
    let suites: Vec<&Suite> = suites.iter().collect();
    let mut table = Table::new(&suites);
    // Everything is built before the first machine starts, because builds and emulation need the same processors.
    let mut images = Vec::new();
    for kernel in kernels {
        let image = image::make(kernel, &suites).with_context(|| kernel.name.to_owned())?;
        images.push((kernel, image));
    }
    for (kernel, image) in images {
        let log = folder()?.join(format!("{}.log", kernel.name));
        println!("{}: {}", kernel.name, image.version);
        let printed = machine::run(kernel, &image, limit, &log)?;
        println!("  {} s of emulation", printed.time.as_secs());
        let results = results::read(&suites, &printed.lines);
        results::print(&results);
        let is_passed = results.iter().all(results::SuiteResult::is_passed);
        match is_passed {
            true => {
                std::fs::remove_file(&log)?;
                std::fs::remove_file(&image.initial)?;
            }
            false => println!("{}: what it printed is in {}", kernel.name, log.display()),
        }
        table.add(kernel.name, results);
    }
    println!("\n{table}");
    ensure!(table.is_passed(), "suites failed");
    Ok(())
}

/// What the arguments select; `None` after `--list`, which prints all.
fn parse(args: impl Iterator<Item = String>) -> Result<Option<Selection>> {
    let (mut kernels, mut suites) = (Vec::new(), Vec::new());
    let mut limit = machine::LIMIT;
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("list") => {
                list();
                return Ok(None);
            }
            Arg::Long("smoke") => limit = machine::SMOKE_LIMIT,
            Arg::Long("suite") => suites.push(*suite::by_name(&parser.value()?.to_string_lossy())?),
            Arg::Value(name) => kernels.push(kernel::by_name(&name.to_string_lossy())?),
            _ => bail!(USAGE),
        }
    }
    if kernels.is_empty() {
        kernels.extend(&kernel::KERNELS);
    }
    if suites.is_empty() {
        suites.extend(SUITES);
    }
    if limit == machine::SMOKE_LIMIT {
        suites = suites.iter().filter_map(Suite::smoke).collect();
    }
    Ok(Some(Selection {
        kernels,
        suites,
        limit,
    }))
}

fn list() {
    for kernel in &kernel::KERNELS {
        println!("{}", kernel.name);
    }
    println!();
    for suite in &SUITES {
        println!("{}: {}", suite.name, suite.summary);
    }
}

/// The folder of all that this task makes.
fn folder() -> Result<PathBuf> {
    let folder = target_folder()?.join("kernels");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
