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

/// The executable with the tests, and the version of its kernel.
///
/// # Errors
/// If the packages can't be had, or it doesn't build.
pub(super) fn tests() -> Result<(PathBuf, String)> {
    let arch = Arch::host()?;
    let packages = Archive::open(RELEASE, arch)?;
    let latest = packages.dependencies("linux-source")?;
    let latest = latest
        .into_iter()
        .find(|name| name.starts_with("linux-source-"));
    let package = latest.context("no source is the newest")?;
    let folder = target_folder()?.join("selftests");
    fs::create_dir_all(&folder)?;
    let program = folder.join(format!("seccomp_bpf-{package}"));
    if !program.exists() {
        let tree = unpacked(&folder, &packages.unpacked(&package)?, &package)?;
        let headers = packages.unpacked("linux-libc-dev")?.join("usr/include");
        let capabilities = Archive::open(CAPABILITIES.0, arch)?.unpacked(CAPABILITIES.1)?;
        build(
            &tree,
            &[&headers, &capabilities.join("usr")],
            arch,
            &program,
        )?;
    }
    Ok((program, package))
}

/// The self-tests of a source package, unpacked.
fn unpacked(folder: &Path, files: &Path, package: &str) -> Result<PathBuf> {
    let archive = files.join("usr/src").join(format!("{package}.tar.xz"));
    let status = Command::new("tar")
        .arg("-xJf")
        .arg(&archive)
        .arg("-C")
        .arg(folder)
        .arg("--wildcards")
        .args([
            format!("{package}/{FOLDER}/seccomp/*"),
            format!("{package}/{FOLDER}/*.h"),
        ])
        .status();
    ensure!(
        status.context("tar")?.success(),
        "{} can't be unpacked",
        archive.display()
    );
    Ok(folder.join(package))
}

fn build(
    tree: &Path,
    [headers, capabilities]: &[&Path; 2],
    arch: Arch,
    program: &Path,
) -> Result<()> {
    let tests = tree.join(FOLDER);
    let triplet = format!("{}-linux-gnu", arch.name());
    let mut command = Command::new("cc");
    command.args(["-O2", "-static", "-pthread", "-w", "-D_GNU_SOURCE="]);
    for folder in [
        headers,
        &*headers.join(&triplet),
        &*capabilities.join("include"),
    ] {
        command.arg("-isystem").arg(folder);
    }
    command
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
