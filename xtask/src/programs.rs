//! `cargo xtask exec [ARCH]` and `cargo xtask dist [ARCH]`: static programs with limits of their size.
//!
//! Their bytes don't depend on the folder of the build: the paths of the repository and of cargo's registry are
//! replaced. Relocations are packed, which makes `tamis` 300 KB smaller, and the toolchain's linker folds functions
//! with equal code, another 140 KB. Programs for another architecture are linked by the toolchain's linker alone.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::arch::Arch;
use crate::tidy::root;

/// Something that is built to be given away.
pub(crate) struct Product {
    package: &'static str,
    profile: &'static str,
    kind: Kind,
    file: &'static str,
    max_bytes: u64,
}

/// How a product is linked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// With musl: the program needs no library of the machine.
    Static,
    /// With glibc: the library is loaded by programs of the distribution.
    Shared,
}

/// The command.
pub(crate) const TAMIS: Product = Product {
    package: "tamis",
    profile: "dist",
    kind: Kind::Static,
    file: "tamis",
    max_bytes: 9_000_000,
};

/// A command under raw filters, in place.
pub(crate) const EXEC: Product = Product {
    package: "tamis-exec",
    profile: "small",
    kind: Kind::Static,
    file: "tamis-exec",
    max_bytes: 600_000,
};

/// The checker of certificates.
pub(crate) const CHECK: Product = Product {
    package: "tamis-check",
    profile: "dist",
    kind: Kind::Static,
    file: "tamis-check",
    max_bytes: 500_000,
};

/// The replacement of libseccomp.
pub(crate) const LIBRARY: Product = Product {
    package: "tamis-libseccomp",
    profile: "release",
    kind: Kind::Shared,
    file: "libtamis_libseccomp.so",
    max_bytes: 4_500_000,
};

/// The architecture that the arguments of a task name, or else this machine's.
///
/// # Errors
/// If there are other arguments.
pub(crate) fn arch_of(mut args: impl Iterator<Item = String>) -> Result<Arch> {
    match (args.next(), args.next()) {
        (None, _) => Arch::host(),
        (Some(name), None) => Arch::by_name(&name),
        (_, Some(other)) => bail!("unexpected argument `{other}`"),
    }
}

impl Product {
    /// Builds it for an architecture, prints its size and returns its path.
    ///
    /// # Errors
    /// If the build fails, or the product is too large.
    pub(crate) fn build(&self, arch: Arch) -> Result<PathBuf> {
        let (what, target) = match self.kind {
            Kind::Static => ("--bins", arch.static_target()),
            Kind::Shared => ("--lib", arch.shared_target()),
        };
        let status = cargo()
            .args(["build", "--package", self.package, what, "--locked"])
            .args(["--profile", self.profile, "--target", target])
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags(arch)?.join("\x1f"))
            .current_dir(root())
            .status()
            .context("cannot run cargo build")?;
        ensure!(
            status.success(),
            "{} doesn't build; its target is installed by `rustup target add {target}`",
            self.package
        );
        let path = target_folder()?
            .join(target)
            .join(self.profile)
            .join(self.file);
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

    fn flags(&self, arch: Arch) -> Result<Vec<String>> {
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
        let home = home.context("where is cargo's home?")?;
        let root = root().canonicalize()?;
        let mut flags = vec![
            format!("--remap-path-prefix={}=/tamis", root.display()),
            format!("--remap-path-prefix={}=/cargo", home.display()),
        ];
        let is_native = arch == Arch::host()?;
        match (self.kind, is_native) {
            (Kind::Static, true) => {
                flags.push("-Clink-arg=-Wl,-z,pack-relative-relocs".to_owned());
                flags.extend(linker()?);
            }
            (Kind::Static, false) => {
                // The profile's `strip` left the symbols of `tamis`, 4 MB.
                let words = [
                    FOREIGN_LINKER,
                    "-Clink-arg=-zpack-relative-relocs",
                    "-Clink-arg=--icf=all",
                    "-Clink-arg=--strip-all",
                ];
                flags.extend(words.map(str::to_owned));
            }
            (Kind::Shared, true) => {}
            (Kind::Shared, false) => flags.extend(crate::kernels::shared_linker(arch)?),
        }
        Ok(flags)
    }
}

/// The toolchain's linker, which links for all architectures.
pub(crate) const FOREIGN_LINKER: &str = "-Clinker=rust-lld";

/// The flags of `cc` for the toolchain's linker.
fn linker() -> Result<[String; 3]> {
    let folder = sysroot_programs()?.join("gcc-ld");
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

/// The folder of the toolchain's own programs.
///
/// # Errors
/// If there is no toolchain.
pub(crate) fn sysroot_programs() -> Result<PathBuf> {
    let printed = Command::new("rustc").args(["--print", "sysroot"]).output();
    let printed = String::from_utf8(printed.context("cannot run rustc")?.stdout)?;
    let host = Arch::host()?.shared_target();
    Ok(PathBuf::from(printed.trim())
        .join("lib/rustlib")
        .join(host)
        .join("bin"))
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
