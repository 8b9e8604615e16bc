//! Debian's glibc of another architecture, with which the toolchain's linker links libraries for it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::apt::Archive;
use super::folder;
use crate::arch::Arch;

/// The release of this glibc. Programs with an older glibc can't load the library.
const RELEASE: &str = "bookworm";
/// The libraries, and the files for linking with them.
const PACKAGES: [&str; 3] = ["libc6", "libc6-dev", "libgcc-s1"];

/// The compiler's flags that link a shared library for an architecture of which this machine has no libraries.
///
/// # Errors
/// If the packages can't be had.
pub(crate) fn shared_linker(arch: Arch) -> Result<Vec<String>> {
    let sysroot = sysroot(arch)?;
    let triplet = format!("{}-linux-gnu", arch.name());
    let mut flags = vec![
        crate::programs::FOREIGN_LINKER.to_owned(),
        format!("-Clink-arg=--sysroot={}", sysroot.display()),
    ];
    for folder in ["lib", "usr/lib"] {
        flags.push(format!(
            "-Clink-arg=-L{}",
            sysroot.join(folder).join(&triplet).display()
        ));
    }
    Ok(flags)
}

fn sysroot(arch: Arch) -> Result<PathBuf> {
    let sysroot = folder()?.join(format!("sysroot-{}", arch.name()));
    if sysroot.exists() {
        return Ok(sysroot);
    }
    let partial = sysroot.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    fs::create_dir_all(&partial)?;
    let packages = Archive::open(RELEASE, arch)?;
    for (package, folder) in PACKAGES.iter().zip(packages.all_unpacked(&PACKAGES)?) {
        let status = Command::new("cp")
            .arg("-a")
            .args([folder.join("."), partial.clone()])
            .status();
        ensure!(status.context("cp")?.success(), "{package} can't be copied");
    }
    // The name by which the linker finds it; compilers have a script of the linker there.
    let library = format!("lib/{}-linux-gnu", arch.name());
    symlink("libgcc_s.so.1", partial.join(library).join("libgcc_s.so"))?;
    fs::rename(partial, &sysroot)?;
    Ok(sysroot)
}
