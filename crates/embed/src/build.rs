//! Filters for build scripts: a policy becomes a module in `OUT_DIR`.
//!
//! ```no_run
//! // The whole `main` of build.rs:
//! tamis_embed::build::policy("server.tamis");
//! ```
//!
//! The program includes the module by `mod server { include!(concat!(env!("OUT_DIR"), "/server.rs")); }`. Cargo runs
//! the script again when the policy, or a file that it includes, changes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use tamis_abi::target::Target;
use tamis_abi::{Arch, Endian};

use crate::file::{EmbedError, PolicyFile};
use crate::rust;

/// Compiles a policy for the target machine of cargo and writes the module to `OUT_DIR`, under the name of the policy
/// with the extension `.rs`. An error in the policy ends the build script with its message.
///
/// The path is relative to the package. [`write()`] takes more options.
pub fn policy(path: impl AsRef<Path>) {
    write(&PolicyFile::new(path.as_ref(), target()));
}

/// The same for a policy with options, made for [`target()`].
pub fn write(policy: &PolicyFile) {
    if let Err(error) = try_write(policy) {
        for message in error.messages() {
            eprintln!("error: {message}\n");
        }
        process::exit(1);
    }
}

/// The target architecture of cargo; outside of build scripts the architecture of the machine.
pub fn target() -> Arch {
    let cargo = |key: &str| env::var(format!("CARGO_CFG_TARGET_{key}")).ok();
    let arch = match (cargo("ARCH"), cargo("ENDIAN"), cargo("POINTER_WIDTH")) {
        (Some(arch), Some(endian), Some(width)) => {
            let target = Target {
                arch: &arch,
                endian: match endian.as_str() {
                    "big" => Endian::Big,
                    _ => Endian::Little,
                },
                pointer_bits: width.parse().unwrap_or(64),
            };
            target.native_arch()
        }
        _ => None,
    };
    arch.unwrap_or_else(host)
}

/// The architecture for which this crate was built.
pub fn host() -> Arch {
    tamis_abi::host::arch().unwrap_or(Arch::X86_64)
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
