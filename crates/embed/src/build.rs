//! Filters for build scripts: a policy becomes a module in `OUT_DIR`.
//!
//! ```no_run
//! // All that `main` of build.rs has to do:
//! tamis_embed::build::policy("server.tamis");
//! ```
//!
//! The program has the module by `mod server { include!(concat!(env!("OUT_DIR"), "/server.rs")); }`. Cargo is told
//! to run the script again when the policy, or a file that it includes, changes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use tamis_abi::Arch;

use crate::file::{EmbedError, PolicyFile};
use crate::rust;

/// Compiles a policy for the machine that cargo builds for and writes the module to `OUT_DIR`, named as the policy
/// with `.rs`. A mistake in the policy ends the build script with the message.
///
/// The path is relative to the package. With [`write()`] one can say more about how to read the policy.
pub fn policy(path: impl AsRef<Path>) {
    write(&PolicyFile::new(path.as_ref(), target()));
}

/// The same for a policy of which more is to say, made for [`target()`].
pub fn write(policy: &PolicyFile) {
    if let Err(error) = try_write(policy) {
        for message in error.messages() {
            eprintln!("error: {message}\n");
        }
        process::exit(1);
    }
}

/// The architecture that cargo builds for; outside of build scripts that of the machine.
pub fn target() -> Arch {
    let cargo = |key: &str| env::var(format!("CARGO_CFG_TARGET_{key}")).ok();
    match (cargo("ARCH"), cargo("ENDIAN"), cargo("POINTER_WIDTH")) {
        (Some(arch), Some(endian), Some(width)) => {
            named(&arch, endian == "big", &width).unwrap_or_else(host)
        }
        _ => host(),
    }
}

/// The architecture of the machine that this was built for.
pub fn host() -> Arch {
    let width = if cfg!(target_pointer_width = "64") {
        "64"
    } else {
        "32"
    };
    let found = named(env::consts::ARCH, cfg!(target_endian = "big"), width);
    found.unwrap_or(Arch::X86_64)
}

/// The architecture that Rust calls so.
fn named(arch: &str, is_big_endian: bool, pointer_width: &str) -> Option<Arch> {
    match (arch, is_big_endian) {
        ("x86_64", _) if pointer_width == "32" => Some(Arch::X32),
        ("powerpc64", false) => Some(Arch::Ppc64le),
        ("mips", false) => Some(Arch::Mipsel),
        ("mips64", false) => Some(Arch::Mipsel64),
        _ => Arch::from_name(arch),
    }
}

fn try_write(policy: &PolicyFile) -> Result<PathBuf, EmbedError> {
    println!("cargo::rerun-if-changed={}", policy.path().display());
    let embedded = policy.compile()?;
    for file in embedded.files() {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    for warning in embedded.warnings() {
        for line in warning.lines() {
            println!("cargo::warning={line}");
        }
    }
    let text = embedded.text(&rust::LANGUAGE, "")?;
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let stem = policy.path().file_stem().unwrap_or_default();
    let output = folder.join(stem).with_extension("rs");
    match fs::write(&output, text) {
        Ok(()) => Ok(output),
        Err(error) => Err(EmbedError::Write {
            path: output,
            error,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rust_calls_an_architecture_is_known() {
        let known = [
            ("x86_64", false, "64", Arch::X86_64),
            ("x86_64", false, "32", Arch::X32),
            ("x86", false, "32", Arch::X86),
            ("powerpc64", true, "64", Arch::Ppc64),
            ("powerpc64", false, "64", Arch::Ppc64le),
            ("mips64", false, "64", Arch::Mipsel64),
            ("aarch64", false, "64", Arch::Aarch64),
            ("riscv64", false, "64", Arch::Riscv64),
            ("loongarch64", false, "64", Arch::Loongarch64),
            ("s390x", true, "64", Arch::S390x),
        ];
        for (name, is_big_endian, width, arch) in known {
            assert_eq!(named(name, is_big_endian, width), Some(arch), "{name}");
        }
        assert_eq!(named("hexagon", false, "32"), None);
    }
}
