//! What a virtual machine boots: a kernel, and an initial file system with the userland, the tests and a script.
//!
//! Tests find programs and folders by the absolute paths that were compiled into them, so everything lies where it lies
//! on this machine. The script is process 1; it runs the suites and turns the machine off.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::apt::Archive;
use super::cpio::Cpio;
use super::kernel::Kernel;
use super::suite::{self, Suite};
use super::tests::{self, Built};
use super::{folder, userland};
use crate::arch::Arch;
use crate::programs::target_folder;
use crate::tidy::root;

/// What is booted.
pub(super) struct Image {
    pub(super) kernel: PathBuf,
    pub(super) initial: PathBuf,
    /// The name of the kernel's package.
    pub(super) version: String,
    /// How many runs the script has.
    pub(super) runs: usize,
}

/// Makes the image for a kernel.
///
/// # Errors
/// If a part can't be had or built.
pub(super) fn make(kernel: &Kernel, suites: &[&Suite]) -> Result<Image> {
    let (version, path) = vmlinuz(kernel)?;
    let built = tests::build(kernel.arch, suites)?;
    let userland = userland::archive(kernel.arch)?;
    let initial = folder()?.join(format!("{}.cpio", kernel.name));
    let mut file = BufWriter::new(File::create(&initial)?);
    // The kernel reads one archive after the other.
    io::copy(&mut File::open(userland)?, &mut file)?;
    let mut archive = Cpio::new(file);
    archive.device(Path::new("dev/console"), (5, 1))?;
    archive.device(Path::new("dev/null"), (1, 3))?;
    add_tests(&mut archive, kernel.arch, &built, suites)?;
    archive.file(Path::new("init"), 0o755, script(&built, suites)?.as_bytes())?;
    archive.finish()?;
    Ok(Image {
        kernel: path,
        initial,
        version,
        runs: suites.iter().map(|suite| suite.filters.len()).sum(),
    })
}

/// The newest kernel of a release: the name of its package, and its file.
fn vmlinuz(kernel: &Kernel) -> Result<(String, PathBuf)> {
    let packages = Archive::open(kernel.release, kernel.arch)?;
    let latest = packages.dependencies(&format!("linux-image-cloud-{}", kernel.arch.debian()))?;
    let image = latest
        .into_iter()
        .find(|name| name.starts_with("linux-image-"));
    let image = image.context("no kernel is the newest")?;
    // Since 7.1 the file is in a package of its own.
    let inner = packages.dependencies(&image)?;
    let inner = inner
        .into_iter()
        .find(|name| name.starts_with("linux-binary-"));
    let folder = packages.unpacked(inner.as_deref().unwrap_or(&image))?;
    let version = image.trim_start_matches("linux-image-").to_owned();
    let places = [
        format!("boot/vmlinuz-{version}"),
        format!("usr/lib/modules/{version}/vmlinuz"),
    ];
    let path = places
        .iter()
        .map(|place| folder.join(place))
        .find(|path| path.exists());
    Ok((version, path.context("the package has no kernel")?))
}

fn add_tests(
    archive: &mut Cpio<BufWriter<File>>,
    arch: Arch,
    built: &Built,
    suites: &[&Suite],
) -> Result<()> {
    let mut paths: Vec<&Path> = built.programs.iter().map(PathBuf::as_path).collect();
    for suite in suites {
        paths.push(built.executable(suite.test)?);
    }
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        archive.file(path, 0o755, &tests::stripped(path)?)?;
    }
    // Cargo's folder for the files of tests, and the folders in which they start.
    archive.folder(&target_folder()?.join(arch.static_target()).join("tmp"))?;
    for suite in suites {
        archive.folder(&manifest_folder(suite)?)?;
    }
    add_guests(archive)
}

/// The sources of the platforms' guests, which their suite builds.
fn add_guests(archive: &mut Cpio<BufWriter<File>>) -> Result<()> {
    let folder = root().canonicalize()?.join("crates/platform/tests/guests");
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        archive.file(&path, 0o644, &fs::read(&path)?)?;
    }
    Ok(())
}

/// The folder of a suite's package.
fn manifest_folder(suite: &Suite) -> Result<PathBuf> {
    let name = suite.test.package.trim_start_matches("tamis-");
    Ok(root().canonicalize()?.join("crates").join(name))
}

/// The script that is process 1.
fn script(built: &Built, suites: &[&Suite]) -> Result<String> {
    let mut text =
        fs::read_to_string(root().join("xtask/src/kernels/init.sh")).context("the script")?;
    for suite in suites {
        let executable = built.executable(suite.test)?;
        let folder = manifest_folder(suite)?;
        for filter in suite.filters {
            text.push_str(&format!(
                "run {} {} '{}' '{}' '{filter}'\n",
                suite.name,
                suite::LIMIT_S,
                folder.display(),
                executable.display()
            ));
        }
    }
    Ok(text)
}
