//! The programs around the tests: a shell, what it starts, and the C library, from Debian's packages.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::apt::Archive;
use super::cpio::Cpio;
use super::folder;
use crate::arch::Arch;

/// The release of the packages: all its files lie below `/usr`.
const RELEASE: &str = "trixie";

/// The packages, with their dependencies but those that only an installation needs.
const PACKAGES: [&str; 36] = [
    "base-files",
    "bash",
    "busybox-static",
    "coreutils",
    "dash",
    "debianutils",
    "grep",
    "libacl1",
    "libattr1",
    "libblkid1",
    "libc6",
    "libcap-ng0",
    "libcap2",
    "libcrypt1",
    "libgcc-s1",
    "libgmp10",
    "liblzma5",
    "libmount1",
    "libncursesw6",
    "libpcre2-8-0",
    "libproc2-0",
    "libselinux1",
    "libsmartcols1",
    "libssl3t64",
    "libsystemd0",
    "libtinfo6",
    "libudev1",
    "libunwind8",
    "libuuid1",
    "libzstd1",
    "mount",
    "procps",
    "sed",
    "strace",
    "util-linux",
    "zlib1g",
];

/// Folders without which programs run.
const UNWANTED: [&str; 9] = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/bash-completion",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/bug",
    "usr/lib/udev",
    "usr/share/zsh",
];

/// An archive with the programs, made once for an architecture.
///
/// # Errors
/// If the packages can't be had.
pub(super) fn archive(arch: Arch) -> Result<PathBuf> {
    let path = folder()?.join(format!("userland-{}.cpio", arch.name()));
    if path.exists() {
        return Ok(path);
    }
    let packages = Archive::open(RELEASE, arch)?;
    let partial = path.with_extension("partial");
    let mut archive = Cpio::new(BufWriter::new(File::create(&partial)?));
    for package in PACKAGES {
        let folder = packages.unpacked(package)?;
        archive.tree(&folder, &|path| {
            !UNWANTED.iter().any(|unwanted| path.starts_with(unwanted))
        })?;
    }
    for (link, target) in [
        ("usr/bin/which", "which.debianutils"),
        ("usr/bin/awk", "busybox"),
    ] {
        archive.link(Path::new(link), Path::new(target))?;
    }
    let users = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
    archive.file(Path::new("etc/passwd"), 0o644, users.as_bytes())?;
    archive.file(
        Path::new("etc/group"),
        0o644,
        b"root:x:0:\nnogroup:x:65534:\n",
    )?;
    archive.file(Path::new("etc/hosts"), 0o644, b"127.0.0.1 localhost\n")?;
    archive.finish()?;
    fs::rename(partial, &path)?;
    Ok(path)
}
