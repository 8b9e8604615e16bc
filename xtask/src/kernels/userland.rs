//! The programs around the tests: a shell, what it starts, a compiler for the tests' guests, and the C library, from
//! Debian's packages.

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

/// The packages, with their dependencies but those that only an installation needs. `TRIPLET` is the architecture's in
/// names of packages.
const PACKAGES: [&str; 55] = [
    "base-files",
    "bash",
    "binutils",
    "binutils-TRIPLET",
    "binutils-common",
    "busybox-static",
    "coreutils",
    "cpp-14-TRIPLET",
    "dash",
    "debianutils",
    "gcc",
    "gcc-TRIPLET",
    "gcc-14",
    "gcc-14-TRIPLET",
    "grep",
    "libacl1",
    "libattr1",
    "libbinutils",
    "libblkid1",
    "libc6",
    "libc6-dev",
    "libcap-ng0",
    "libcap2",
    "libcrypt1",
    "libctf0",
    "libgcc-14-dev",
    "libgcc-s1",
    "libgmp10",
    "libisl23",
    "libjansson4",
    "liblzma5",
    "libmount1",
    "libmpc3",
    "libmpfr6",
    "libncursesw6",
    "libpcre2-8-0",
    "libproc2-0",
    "libselinux1",
    "libsframe1",
    "libsmartcols1",
    "libssl3t64",
    "libstdc++6",
    "libsystemd0",
    "libtinfo6",
    "libudev1",
    "libunwind8",
    "libuuid1",
    "libzstd1",
    "linux-libc-dev",
    "mount",
    "procps",
    "sed",
    "strace",
    "util-linux",
    "zlib1g",
];

/// Folders and files without which programs run; the last ones belong to the compiler, and are not for C.
const UNWANTED: [&str; 14] = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/bash-completion",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/bug",
    "usr/lib/udev",
    "usr/share/zsh",
    "usr/bin/TRIPLET-lto-dump-14",
    "usr/libexec/gcc/TRIPLET/14/lto1",
    "usr/libexec/gcc/TRIPLET/14/g++-mapper-server",
    "usr/share/gcc",
    "usr/share/gdb",
];

/// An archive with the programs, made once for an architecture and a list of packages.
///
/// # Errors
/// If the packages can't be had.
pub(super) fn archive(arch: Arch) -> Result<PathBuf> {
    let path = folder()?.join(format!("userland-{}.cpio", arch.name()));
    let triplet = format!("{}-linux-gnu", arch.name());
    let names = PACKAGES.map(|name| name.replace("TRIPLET", &triplet.replace('_', "-")));
    let unwanted = UNWANTED.map(|path| path.replace("TRIPLET", &triplet));
    let list = path.with_extension("list");
    let listed = [&names[..], &unwanted[..]].concat().join("\n");
    if path.exists() && fs::read_to_string(&list).is_ok_and(|earlier| earlier == listed) {
        return Ok(path);
    }
    let packages = Archive::open(RELEASE, arch)?;
    let partial = path.with_extension("partial");
    let mut archive = Cpio::new(BufWriter::new(File::create(&partial)?));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for folder in packages.all_unpacked(&names)? {
        archive.tree(&folder, &|path| {
            !unwanted.iter().any(|unwanted| path.starts_with(unwanted))
        })?;
    }
    for (link, target) in [
        ("usr/bin/which", "which.debianutils"),
        ("usr/bin/awk", "busybox"),
        ("usr/bin/cc", "gcc"),
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
    fs::write(list, listed)?;
    Ok(path)
}
