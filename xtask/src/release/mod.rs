//! `cargo xtask release [ARCH]`: the installable files, the same bytes from the same commit on every machine with these tools.
//!
//! The output in `dist/` is a tarball, a Debian package, an RPM package, the bill of materials, and their checksums.
//! The packages' content is laid out in `dist/stage` first; `crates/tamis/Cargo.toml` defines the destinations. Times
//! are those of the commit. `--check` makes a release in two folders and compares the bytes.

mod check;
mod glibc;
mod materials;
mod stage;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::arch::Arch;
use crate::programs::{cargo, target_folder};
use crate::tidy::root;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Programs of the registry that only releases need, with their versions.
const TOOLS: [(&str, &str); 3] = [
    ("cargo-deb", "3.8.0"),
    ("cargo-generate-rpm", "0.21.1"),
    ("mdbook", "0.5.4"),
];
/// The folder of the tools; the default is `tools` in cargo's target folder.
const TOOLS_FOLDER: &str = "TAMIS_RELEASE_TOOLS";
const SUMS: &str = "SHA256SUMS";

/// Makes a release, or two that are compared.
///
/// # Errors
/// If something doesn't build, or the two differ.
pub(crate) fn run(args: impl Iterator<Item = String>) -> Result<()> {
    let args: Vec<String> = args.collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => make(Arch::host()?),
        ["--check"] => check::run(),
        [arch] if !arch.starts_with('-') => make(Arch::by_name(arch)?),
        _ => bail!("usage: cargo xtask release [--check | ARCH]"),
    }
}

fn make(arch: Arch) -> Result<()> {
    refuse_changes()?;
    let tools = install_tools()?;
    let epoch = epoch()?;
    let dist = std::path::absolute(root().canonicalize()?.join("dist"))?;
    if dist.exists() {
        fs::remove_dir_all(&dist).context("dist")?;
    }
    fs::create_dir(&dist).context("dist")?;
    let stage = stage::fill(&dist.join("stage"), &tools, &epoch, arch)?;
    let name = format!("tamis-{VERSION}-{}-linux", arch.name());
    tarball(&stage, &dist, &name, &epoch)?;
    materials::write(&dist.join(format!("{name}.cdx.json")), &epoch, arch)?;
    let manifest = root().join("crates/tamis/Cargo.toml").canonicalize()?;
    let mut deb = Command::new(tools.join("cargo-deb"));
    deb.args([
        "deb",
        "--no-build",
        "--no-strip",
        "--locked",
        "--target",
        arch.static_target(),
        "--output",
    ]);
    deb.arg(dist.join(format!("tamis_{VERSION}-1_{}.deb", arch.debian())))
        .arg("--manifest-path")
        .arg(manifest)
        .env("SOURCE_DATE_EPOCH", &epoch);
    done(deb.current_dir(root()))?;
    let mut rpm = Command::new(tools.join("cargo-generate-rpm"));
    rpm.args([
        "--package",
        "crates/tamis",
        "--arch",
        arch.name(),
        "--payload-compress",
        "gzip",
        "--source-date",
    ])
    .args([&epoch])
    .arg("--output")
    .arg(dist.join(format!("tamis-{VERSION}-1.{}.rpm", arch.name())));
    done(rpm.current_dir(root().canonicalize()?))?;
    fs::remove_dir_all(&stage)?;
    let sums = shell(
        "LC_ALL=C sha256sum -- * > .sums && mv .sums SHA256SUMS && cat SHA256SUMS",
        &dist,
    )?;
    print!("{sums}");
    Ok(())
}

/// A release has the content of its commit: with changes in the tree it would not be reproducible.
fn refuse_changes() -> Result<()> {
    // An archive of the sources has no repository, and so no commit to differ from.
    if !root().join(".git").exists() {
        return Ok(());
    }
    let changes = shell("git status --porcelain --untracked-files=normal", &root())
        .context("git can't say whether the tree has changes")?;
    ensure!(
        changes.is_empty(),
        "the tree has changes; commit them first:\n{}",
        changes.trim_end()
    );
    Ok(())
}

/// The folder with the tools, which are installed if they aren't there in these versions.
fn install_tools() -> Result<PathBuf> {
    let folder = env::var_os(TOOLS_FOLDER).map(PathBuf::from);
    let folder = folder.map_or_else(|| Ok(target_folder()?.join("tools")), anyhow::Ok)?;
    let programs = folder.join("bin");
    // Cargo's list of installed programs.
    let installed = fs::read_to_string(folder.join(".crates.toml")).unwrap_or_default();
    for (name, version) in TOOLS {
        let is_noted = installed.contains(&format!("\"{name} {version} ("));
        if is_noted && programs.join(name).is_file() {
            continue;
        }
        // Without optimisation they are built in a third of the time, and make the same files.
        let mut install = cargo();
        install.args([
            "install",
            "--locked",
            "--debug",
            "--force",
            &format!("{name}@{version}"),
            "--root",
        ]);
        done(install.arg(&folder).env_remove("CARGO_TARGET_DIR"))?;
    }
    Ok(programs)
}

/// The time of everything in a release, in seconds since 1970.
fn epoch() -> Result<String> {
    if let Ok(epoch) = env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let text = shell("git log -1 --format=%ct", &root())
        .context("set SOURCE_DATE_EPOCH where there is no repository")?;
    Ok(text.trim().to_owned())
}

/// One folder as below a prefix such as `/usr/local`.
fn tarball(stage: &Path, dist: &Path, name: &str, epoch: &str) -> Result<()> {
    let line = format!(
        "tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@{epoch} --format=gnu \
         --transform='s,^[.],{name},' -cf - . | gzip -9n > '{}'",
        dist.join(format!("{name}.tar.gz")).display()
    );
    shell(&line, stage).map(drop)
}

/// Runs a command that has to succeed.
fn done(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| program.clone())?;
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

/// The output of a line of bash in a folder.
fn shell(line: &str, folder: &Path) -> Result<String> {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", line])
        .current_dir(folder)
        .output()
        .context("bash")?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{line}: {problem}");
    Ok(String::from_utf8(output.stdout)?)
}
