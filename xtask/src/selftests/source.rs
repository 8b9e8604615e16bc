//! The tests' source: from Debian's source package of its newest kernel, built statically against its headers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::arch::Arch;
use crate::kernels::Archive;
use crate::programs::target_folder;

/// The release that has the newest kernel.
const RELEASE: &str = "sid";
/// The library with which the tests are linked, of an old release, because it then needs no newer glibc than the
/// compiler's.
const CAPABILITIES: (&str, &str) = ("bookworm", "libcap-dev");
/// The folder of all self-tests in the source.
const FOLDER: &str = "tools/testing/selftests";

/// The files of the newest kernel's source package.
pub(super) struct Source {
    arch: Arch,
    archive: Archive,
    /// The name of the package.
    pub(super) package: String,
    /// Where everything that is made of it lies.
    pub(super) folder: PathBuf,
}

impl Source {
    /// The newest package; nothing is downloaded yet.
    ///
    /// # Errors
    /// If the lists of packages can't be had.
    pub(super) fn newest() -> Result<Source> {
        let arch = Arch::host()?;
        let archive = Archive::open(RELEASE, arch)?;
        let latest = archive.dependencies("linux-source")?;
        let latest = latest
            .into_iter()
            .find(|name| name.starts_with("linux-source-"));
        let package = latest.context("no source is the newest")?;
        let folder = target_folder()?.join("selftests");
        fs::create_dir_all(&folder)?;
        Ok(Source {
            arch,
            archive,
            package,
            folder,
        })
    }

    /// The headers for programs of the same kernel.
    ///
    /// # Errors
    /// If the package can't be had.
    pub(super) fn headers(&self) -> Result<[PathBuf; 2]> {
        let headers = self.archive.unpacked("linux-libc-dev")?.join("usr/include");
        let own = headers.join(format!("{}-linux-gnu", self.arch.name()));
        Ok([headers, own])
    }

    /// The tree of the source, with the files that have these names.
    ///
    /// # Errors
    /// If the package can't be had or unpacked.
    pub(super) fn tree(&self, patterns: &[String]) -> Result<PathBuf> {
        let package = &self.package;
        let archive = self.archive.unpacked(package)?.join("usr/src");
        let archive = archive.join(format!("{package}.tar.xz"));
        let names = patterns.iter().map(|name| format!("{package}/{name}"));
        let status = Command::new("tar")
            .arg("-xJf")
            .arg(&archive)
            .arg("-C")
            .arg(&self.folder)
            .arg("--wildcards")
            .args(names)
            .status();
        ensure!(
            status.context("tar")?.success(),
            "{} can't be unpacked",
            archive.display()
        );
        Ok(self.folder.join(package))
    }
}

/// The executable with the tests, and the version of its kernel.
///
/// # Errors
/// If the packages can't be had, or it doesn't build.
pub(super) fn tests() -> Result<(PathBuf, String)> {
    let source = Source::newest()?;
    let program = source
        .folder
        .join(format!("seccomp_bpf-{}", source.package));
    if !program.exists() {
        let names = ["seccomp/*", "*.h"].map(|name| format!("{FOLDER}/{name}"));
        let tree = source.tree(&names)?;
        let capabilities = Archive::open(CAPABILITIES.0, source.arch)?.unpacked(CAPABILITIES.1)?;
        build(&source, &tree, &capabilities.join("usr"), &program)?;
    }
    Ok((program, source.package))
}

fn build(source: &Source, tree: &Path, capabilities: &Path, program: &Path) -> Result<()> {
    let tests = tree.join(FOLDER);
    let triplet = format!("{}-linux-gnu", source.arch.name());
    let mut command = Command::new("cc");
    command.args(["-O2", "-static", "-pthread", "-w", "-D_GNU_SOURCE="]);
    for folder in source.headers()? {
        command.arg("-isystem").arg(folder);
    }
    command
        .arg("-isystem")
        .arg(capabilities.join("include"))
        .arg("-I")
        .arg(&tests)
        .arg("-o")
        .arg(program)
        .arg(tests.join("seccomp/seccomp_bpf.c"));
    let status = command
        .arg(capabilities.join("lib").join(triplet).join("libcap.a"))
        .status();
    ensure!(
        status.context("cc")?.success(),
        "the kernel's tests of seccomp don't build"
    );
    Ok(())
}
