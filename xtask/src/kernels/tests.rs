//! The test executables, static and without symbols.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::folder;
use super::suite::{Suite, Test};
use crate::arch::Arch;
use crate::programs::{FOREIGN_LINKER, cargo, sysroot_programs};
use crate::tidy::root;

/// What cargo built.
pub(super) struct Built {
    /// The executables of tests, by package and target.
    tests: BTreeMap<(String, String), PathBuf>,
    /// The programs that the tests start, by their paths.
    pub(super) programs: Vec<PathBuf>,
}

impl Built {
    /// The executable of a suite.
    pub(super) fn executable(&self, test: Test) -> Result<&Path> {
        let path = self
            .tests
            .get(&(test.package.to_owned(), test.target.to_owned()));
        let path = path
            .with_context(|| format!("cargo built no test {} of {}", test.target, test.package))?;
        Ok(path)
    }
}

/// Builds the tests of suites.
///
/// # Errors
/// If they don't build.
pub(super) fn build(arch: Arch, suites: &[&Suite]) -> Result<Built> {
    let mut command = cargo();
    command.args([
        "test",
        "--no-run",
        "--locked",
        "--message-format=json-render-diagnostics",
        "--target",
        arch.static_target(),
    ]);
    for suite in suites {
        command.args(["--package", suite.test.package, "--test", suite.test.target]);
    }
    if arch != Arch::host()? {
        // Some crates link musl's `libdl.a`, which is an empty library and missing from the toolchain.
        let empty = folder()?.join("empty");
        fs::create_dir_all(&empty)?;
        fs::write(empty.join("libdl.a"), "!<arch>\n")?;
        let flags = format!("{FOREIGN_LINKER}\x1f-Lnative={}", empty.display());
        command.env("CARGO_ENCODED_RUSTFLAGS", flags);
    }
    let output = command
        .env("CARGO_PROFILE_DEV_DEBUG", "none")
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo test")?;
    ensure!(
        output.status.success(),
        "the tests don't build; their target is installed by `rustup target add {}`",
        arch.static_target()
    );
    let mut built = Built {
        tests: BTreeMap::new(),
        programs: Vec::new(),
    };
    for line in String::from_utf8(output.stdout)?.lines() {
        built.add(&serde_json::from_str(line)?);
    }
    Ok(built)
}

impl Built {
    fn add(&mut self, message: &Value) {
        let Some(executable) = message["executable"].as_str().map(PathBuf::from) else {
            return;
        };
        let (Some(package), Some(target)) = (
            message["package_id"].as_str(),
            message["target"]["name"].as_str(),
        ) else {
            return;
        };
        if message["profile"]["test"] == true {
            // `path+file:///…/crates/exec#tamis-exec@0.1.0`, or `…/crates/tamis#0.1.0`.
            let named = package.rsplit_once('#').unwrap_or(("", package));
            let name = match named.1.split_once('@') {
                Some((name, _)) => name,
                None => named.0.rsplit('/').next().unwrap_or_default(),
            };
            self.tests
                .insert((name.to_owned(), target.to_owned()), executable);
        } else {
            self.programs.push(executable);
        }
    }
}

/// The bytes of an executable without its symbols, which nothing reads.
///
/// # Errors
/// If the toolchain has no program for it.
pub(super) fn stripped(executable: &Path) -> Result<Vec<u8>> {
    let to = folder()?.join("stripped");
    let programs = sysroot_programs()?;
    // Its library is in the toolchain's `lib`, four folders above, which is not in the search path of these programs.
    let libraries = programs
        .ancestors()
        .nth(3)
        .context("the toolchain's folder")?;
    let status = Command::new(programs.join("rust-objcopy"))
        .env("LD_LIBRARY_PATH", libraries)
        .arg("--strip-all")
        .args([executable, &to])
        .status();
    ensure!(
        status.context("rust-objcopy of the toolchain")?.success(),
        "{} can't be stripped",
        executable.display()
    );
    let bytes = fs::read(&to)?;
    fs::remove_file(to)?;
    Ok(bytes)
}
