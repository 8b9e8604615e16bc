//! `cargo xtask release --check`: two releases of the commit, in folders of other names, have the same bytes.

use std::env;
use std::fs;

use anyhow::{Context, Result, ensure};

use super::{SUMS, TOOLS_FOLDER, cargo, done, epoch, install_tools, shell};
use crate::programs::target_folder;
use crate::tidy::root;

/// Folders of different lengths, so that no path in a program has the same.
const FOLDERS: [&str; 2] = ["first", "the-second-of-them"];

/// Compares.
///
/// # Errors
/// If a release fails, or the bytes differ.
pub(super) fn run() -> Result<()> {
    let tools = install_tools()?;
    let tools = tools.parent().context("a folder of tools")?;
    let epoch = epoch()?;
    let work = target_folder()?.join("release-check");
    let mut sums = Vec::new();
    for name in FOLDERS {
        let folder = work.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let line = format!("git archive HEAD | tar -x -C '{}'", folder.display());
        shell(&line, &root())?;
        let mut release = cargo();
        release
            .args([
                "run",
                "--quiet",
                "--locked",
                "--package",
                "xtask",
                "--",
                "release",
            ])
            .env("SOURCE_DATE_EPOCH", &epoch)
            .env("CARGO_TARGET_DIR", folder.join("target"))
            .env(TOOLS_FOLDER, tools);
        // Cargo's variables for this task don't apply to the other one.
        for (variable, _) in env::vars_os() {
            let is_about_this = variable.to_string_lossy().starts_with("CARGO_PKG_");
            if is_about_this || variable == "CARGO_MANIFEST_DIR" {
                release.env_remove(variable);
            }
        }
        done(release.current_dir(&folder))?;
        sums.push(fs::read_to_string(folder.join("dist").join(SUMS))?);
        fs::remove_dir_all(folder.join("target"))?;
    }
    ensure!(
        sums[0] == sums[1],
        "the releases in {} differ:\n{}\n{}",
        work.display(),
        sums[0],
        sums[1]
    );
    fs::remove_dir_all(&work)?;
    println!("two releases, the same bytes");
    Ok(())
}
