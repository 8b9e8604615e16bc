//! `cargo xtask slim`: what a program takes that uses the library without features.
//!
//! The example `library-user` is built as its users would build a small program, in a folder of its own. The packages below
//! it and its size are held; an empty program is built beside it, so that what the standard library takes isn't counted.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::programs::{cargo, target_folder};
use crate::tidy::root;

/// The example.
const PACKAGE: &str = "library-user";

/// How many packages the library is, itself included.
const MAX_PACKAGES: usize = 12;

/// The bytes that the library adds to a stripped program that is made for size.
const MAX_ADDED_BYTES: u64 = 1_350_000;

/// Builds the example and an empty program, prints their sizes, and checks the limits.
///
/// # Errors
/// If a build fails or a limit is passed.
pub(crate) fn run() -> Result<()> {
    let packages = packages()?;
    let folder = target_folder()?.join("slim");
    let user = example(&folder)?;
    let empty = empty(&folder)?;
    let added = user.saturating_sub(empty);
    println!(
        "{} packages, {user} - {empty} = {added} bytes",
        packages.len()
    );
    ensure!(
        packages.len() <= MAX_PACKAGES,
        "the library has {} packages, and may have {MAX_PACKAGES}: {packages:?}",
        packages.len()
    );
    ensure!(
        added <= MAX_ADDED_BYTES,
        "the library adds {added} bytes, and may add {MAX_ADDED_BYTES}"
    );
    Ok(())
}

/// The packages that are linked into the example, without itself.
fn packages() -> Result<BTreeSet<String>> {
    let mut tree = cargo();
    tree.args(["tree", "--locked", "--package", PACKAGE]);
    tree.args([
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let output = tree.current_dir(root()).output().context("cargo tree")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout)?;
    let names = text.lines().filter_map(|line| line.split(' ').next());
    let own = names.filter(|name| !name.is_empty() && *name != PACKAGE);
    Ok(own.map(str::to_owned).collect())
}

/// The size of the example.
fn example(folder: &Path) -> Result<u64> {
    let mut build = cargo();
    build.args(["build", "--locked", "--profile", "small"]);
    build.args(["--package", PACKAGE, "--bin", PACKAGE, "--target-dir"]);
    let status = build.arg(folder).current_dir(root()).status();
    ensure!(status.context("cargo build")?.success(), "no {PACKAGE}");
    let program = folder.join("small").join(PACKAGE);
    Ok(fs::metadata(program)?.len())
}

/// The size of a program that prints a word, with the same options.
fn empty(folder: &Path) -> Result<u64> {
    let source = folder.join("empty.rs");
    fs::write(&source, "fn main() {\n    println!(\"confined\");\n}\n")?;
    let program = folder.join("empty");
    let mut rustc = Command::new("rustc");
    rustc.args([
        "--edition",
        "2024",
        "-Copt-level=z",
        "-Clto",
        "-Cpanic=abort",
    ]);
    rustc.args(["-Ccodegen-units=1", "-Cstrip=symbols", "-o"]);
    let status = rustc.arg(&program).arg(&source).status();
    ensure!(status.context("rustc")?.success(), "no empty program");
    Ok(fs::metadata(program)?.len())
}
