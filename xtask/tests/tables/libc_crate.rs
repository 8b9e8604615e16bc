//! The `SYS_*` constants of the crate libc, read from its source, which has all architectures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_abi::{Arch, Nr, syscall};

/// The files of libc's glibc bindings, below `src/unix/linux_like/linux/gnu`.
const FILES: [(Arch, &str); 13] = [
    (Arch::X86_64, "b64/x86_64/not_x32.rs"),
    (Arch::X32, "b64/x86_64/x32.rs"),
    (Arch::X86, "b32/x86/mod.rs"),
    (Arch::Aarch64, "b64/aarch64/mod.rs"),
    (Arch::Arm, "b32/arm/mod.rs"),
    (Arch::Riscv64, "b64/riscv64/mod.rs"),
    (Arch::Riscv32, "b32/riscv32/mod.rs"),
    (Arch::Loongarch64, "b64/loongarch64/mod.rs"),
    (Arch::Ppc64, "b64/powerpc64/mod.rs"),
    (Arch::Ppc, "b32/powerpc.rs"),
    (Arch::S390x, "b64/s390x.rs"),
    (Arch::Mips, "b32/mips/mod.rs"),
    (Arch::Mips64, "b64/mips64/mod.rs"),
];

/// Excludes crates for other systems, which a build does not download.
const PLATFORM: &str = "--filter-platform=x86_64-unknown-linux-gnu";

/// The source directory of the version of libc that the workspace uses.
fn libc_source() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", PLATFORM])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let libc = packages
        .iter()
        .find(|package| package["name"] == "libc")
        .unwrap();
    Path::new(libc["manifest_path"].as_str().unwrap()).with_file_name("src")
}

/// Reads `pub const SYS_openat: c_long = 4000 + 288;`.
fn constant(line: &str) -> Option<(&str, u32)> {
    let (name, value) = line
        .trim()
        .strip_prefix("pub const SYS_")?
        .split_once(": c_long = ")?;
    let terms = value.split_once(';')?.0.split(" + ");
    let sum = terms.map(|term| match term {
        "__X32_SYSCALL_BIT" => Some(Arch::X32_BIT),
        number => number.parse().ok(),
    });
    Some((name, sum.sum::<Option<u32>>()?))
}

#[test]
fn numbers_are_those_of_the_crate_libc() {
    let dir = libc_source().join("unix/linux_like/linux/gnu");
    for (arch, file) in FILES {
        let text = fs::read_to_string(dir.join(file)).unwrap();
        let (mut compared, mut unknown) = (0, Vec::new());
        for (name, nr) in text.lines().filter_map(constant) {
            match syscall::number(arch, name) {
                Some(known) => assert_eq!(known, Nr(nr), "{arch} {name}"),
                None => unknown.push(name),
            }
            compared += 1;
        }
        println!("{arch}: {compared} compared, unknown {unknown:?}");
        assert!(compared > 250, "{arch}: {compared}");
    }
}
