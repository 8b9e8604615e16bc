//! `cargo xtask exec` and `cargo xtask dist`: static programs with limits of their size.
//!
//! Their bytes don't depend on the folder of the build: the paths of the repository and of cargo's registry are
//! replaced. Relocations are packed, which makes `tamis` 300 KB smaller, and the toolchain's linker folds functions
//! with equal code, another 140 KB.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tidy::root;

/// Static: programs linked with musl need no library of the machine.
pub(crate) const STATIC: &str = "x86_64-unknown-linux-musl";
/// For the shared library, which is loaded by programs of the distribution.
const SHARED: &str = "x86_64-unknown-linux-gnu";

/// Something that is built to be given away.
pub(crate) struct Product {
    package: &'static str,
    profile: &'static str,
    target: &'static str,
    file: &'static str,
    max_bytes: u64,
}

/// The command.
pub(crate) const TAMIS: Product = Product {
    package: "tamis",
    profile: "dist",
    target: STATIC,
    file: "tamis",
    max_bytes: 9_000_000,
};

/// A command under raw filters, in place.
pub(crate) const EXEC: Product = Product {
    package: "tamis-exec",
    profile: "small",
    target: STATIC,
    file: "tamis-exec",
    max_bytes: 600_000,
};

/// The replacement of libseccomp.
pub(crate) const LIBRARY: Product = Product {
    package: "tamis-libseccomp",
    profile: "release",
    target: SHARED,
    file: "libtamis_libseccomp.so",
    max_bytes: 4_500_000,
};

impl Product {
    /// Builds it, prints its size and returns its path.
    ///
    /// # Errors
    /// If the build fails, or the product is too large.
    pub(crate) fn build(&self) -> Result<PathBuf> {
        let what = if self.target == STATIC {
            "--bins"
        } else {
            "--lib"
        };
        let status = cargo()
            .args(["build", "--package", self.package, what, "--locked"])
            .args(["--profile", self.profile, "--target", self.target])
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags()?.join("\x1f"))
            .current_dir(root())
            .status()
            .context("cannot run cargo build")?;
        ensure!(
            status.success(),
            "{} doesn't build; its target is installed by `rustup target add {}`",
            self.package,
            self.target
        );
        let folder = target_folder()?.join(self.target).join(self.profile);
        let path = folder.join(self.file);
        let bytes = fs::metadata(&path).context(self.file)?.len();
        ensure!(
            bytes <= self.max_bytes,
            "{} has {bytes} bytes, and may have {}",
            self.file,
            self.max_bytes
        );
        println!("{}: {bytes} bytes", path.display());
        Ok(path)
    }

    fn flags(&self) -> Result<Vec<String>> {
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
        let home = home.context("where is cargo's home?")?;
        let root = root().canonicalize()?;
        let mut flags = vec![
            format!("--remap-path-prefix={}=/tamis", root.display()),
            format!("--remap-path-prefix={}=/cargo", home.display()),
        ];
        if self.target == STATIC {
            flags.push("-Clink-arg=-Wl,-z,pack-relative-relocs".to_owned());
            flags.extend(linker()?);
        }
        Ok(flags)
    }
}

/// The flags of `cc` for the toolchain's linker.
fn linker() -> Result<[String; 3]> {
    let printed = Command::new("rustc").args(["--print", "sysroot"]).output();
    let printed = String::from_utf8(printed.context("cannot run rustc")?.stdout)?;
    let folder = PathBuf::from(printed.trim())
        .join("lib/rustlib")
        .join(SHARED)
        .join("bin/gcc-ld");
    ensure!(
        folder.join("ld.lld").exists(),
        "the toolchain has no linker in {}",
        folder.display()
    );
    Ok([
        format!("-Clink-arg=-B{}", folder.display()),
        "-Clink-arg=-fuse-ld=lld".to_owned(),
        "-Clink-arg=-Wl,--icf=all".to_owned(),
    ])
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Cargo's target folder, as an absolute path.
///
/// # Errors
/// If the working folder is gone.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let folder =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(std::path::absolute(folder)?)
}
