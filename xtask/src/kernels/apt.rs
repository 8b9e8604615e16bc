//! Debian's packages, downloaded by apt and unpacked in a folder.
//!
//! apt gets a configuration, sources, lists and a status file of its own, so the machine's sources, architectures and
//! installed packages neither matter nor change. The packages' signatures are checked with the keys of the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::folder;
use crate::arch::Arch;

/// The server of Debian's packages; another one is taken from this environment variable.
const MIRROR: (&str, &str) = ("TAMIS_DEBIAN_MIRROR", "http://deb.debian.org/debian");

/// Where apt keeps the keys of Debian's archive.
const KEYS: &str = "/usr/share/keyrings";

/// The packages of one release for one architecture.
pub(crate) struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// The packages of a release, with lists of this day.
    ///
    /// # Errors
    /// If apt isn't there, or the server can't be reached.
    pub(crate) fn open(release: &str, arch: Arch) -> Result<Archive> {
        let folder = folder()?.join(format!("apt-{release}-{}", arch.debian()));
        let archive = Archive { folder };
        archive.configure(release, arch)?;
        archive.update()?;
        Ok(archive)
    }

    fn configure(&self, release: &str, arch: Arch) -> Result<()> {
        for name in [
            "lists/partial",
            "cache/archives/partial",
            "etc/apt.conf.d",
            "etc/preferences.d",
            "unpacked",
        ] {
            fs::create_dir_all(self.folder.join(name))?;
        }
        let mirror = std::env::var(MIRROR.0).unwrap_or_else(|_| MIRROR.1.to_owned());
        // A mirror may be some weeks behind. Its lists have then expired, but the signatures are still checked.
        let source = format!("deb [check-valid-until=no] {mirror} {release} main\n");
        fs::write(self.folder.join("etc/sources.list"), source)?;
        fs::write(self.folder.join("status"), "")?;
        let at = self.folder.display();
        let debian = arch.debian();
        let text = format!(
            "APT::Architecture \"{debian}\";\nAPT::Architectures {{ \"{debian}\"; }};\nAPT::Sandbox::User \"root\";\n\
             Acquire::Languages \"none\";\nDir::State \"{at}\";\nDir::State::Lists \"{at}/lists\";\n\
             Dir::State::status \"{at}/status\";\nDir::Cache \"{at}/cache\";\nDir::Etc \"{at}/etc\";\n\
             Dir::Etc::sourcelist \"{at}/etc/sources.list\";\nDir::Etc::trustedparts \"{KEYS}\";\n"
        );
        fs::write(self.config(), text).context("a configuration of apt")
    }

    fn config(&self) -> PathBuf {
        self.folder.join("apt.conf")
    }

    fn update(&self) -> Result<()> {
        let stamp = self.folder.join("updated");
        let age = fs::metadata(&stamp).and_then(|data| data.modified());
        let is_fresh = age.is_ok_and(|time| time.elapsed().is_ok_and(|age| age.as_secs() < 86400));
        if !is_fresh {
            self.apt("apt-get", &["update", "-qq"])?;
            fs::write(stamp, "")?;
        }
        Ok(())
    }

    fn apt(&self, program: &str, words: &[&str]) -> Result<String> {
        let output = Command::new(program)
            .args(words)
            .env("APT_CONFIG", self.config())
            .env("LC_ALL", "C")
            .current_dir(self.folder.join("cache/archives"))
            .output()
            .with_context(|| format!("{program} is needed: packages of Debian are taken by it"))?;
        let problem = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{program} {}: {problem}",
            words.join(" ")
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The packages on which a package depends.
    ///
    /// # Errors
    /// If there is no such package.
    pub(crate) fn dependencies(&self, package: &str) -> Result<Vec<String>> {
        let text = self.apt("apt-cache", &["depends", "--important", package])?;
        let names = text
            .lines()
            .filter_map(|line| line.trim().split_once("epends: "));
        Ok(names.map(|(_, name)| name.to_owned()).collect())
    }

    /// A folder with the files of one package.
    ///
    /// # Errors
    /// If it can't be downloaded or unpacked.
    pub(crate) fn unpacked(&self, package: &str) -> Result<PathBuf> {
        let mut folders = self.all_unpacked(&[package])?;
        folders.pop().context("the folder of one package")
    }

    /// The folders with the files of packages, in the same order. One call of apt downloads all that are missing.
    ///
    /// # Errors
    /// If one can't be downloaded or unpacked.
    pub(crate) fn all_unpacked(&self, packages: &[&str]) -> Result<Vec<PathBuf>> {
        self.forget_downloads()?;
        let printed = self.apt(
            "apt-get",
            &[&["download", "--print-uris"], packages].concat(),
        )?;
        // The version is in a file's name, so another one has another folder.
        let folder_of = |file: &str| {
            let name = file.trim_end_matches(".deb");
            self.folder.join("unpacked").join(name)
        };
        let files = packages
            .iter()
            .map(|package| file_of(&printed, package))
            .collect::<Result<Vec<&str>>>()?;
        let all = packages.iter().zip(&files);
        let missing: Vec<(&str, &str)> = all
            .map(|(package, file)| (*package, *file))
            .filter(|(_, file)| !folder_of(file).exists())
            .collect();
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|(package, _)| *package).collect();
            self.apt("apt-get", &[&["download", "-qq"], &names[..]].concat())?;
        }
        for (_, file) in missing {
            let package = self.folder.join("cache/archives").join(file);
            unpack(&package, &folder_of(file))?;
            fs::remove_file(package)?;
        }
        Ok(files.into_iter().map(folder_of).collect())
    }

    /// Removes what a run that was ended has downloaded and not unpacked: apt names no file that is there.
    fn forget_downloads(&self) -> Result<()> {
        for entry in fs::read_dir(self.folder.join("cache/archives"))? {
            let path = entry?.path();
            if path.is_file() {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// The name of a package's file in what apt prints, a line for each: its address, its name, its size and a sum.
fn file_of<'p>(printed: &'p str, package: &str) -> Result<&'p str> {
    let mut files = printed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    let found = files.find(|file| {
        let rest = file.strip_prefix(package);
        rest.is_some_and(|rest| rest.starts_with('_'))
    });
    found.with_context(|| format!("apt names no file of {package}"))
}

/// Unpacks a package. The folder appears only once it is complete.
fn unpack(package: &Path, folder: &Path) -> Result<()> {
    let partial = folder.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    let status = Command::new("dpkg-deb")
        .arg("-x")
        .args([package, &partial])
        .status();
    let status = status.context("dpkg-deb is needed: it unpacks packages")?;
    ensure!(status.success(), "{} can't be unpacked", package.display());
    fs::rename(&partial, folder)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_that_of_the_whole_name() {
        let printed = "'http://x/gcc-14_14.2-19_arm64.deb' gcc-14_14.2-19_arm64.deb 5 SHA256:0\n\
                       'http://x/gcc_4%3a14.2-1_arm64.deb' gcc_4%3a14.2-1_arm64.deb 5 SHA256:0\n";
        assert_eq!(file_of(printed, "gcc").unwrap(), "gcc_4%3a14.2-1_arm64.deb");
        assert!(file_of(printed, "gcc-1").is_err());
    }
}
