//! The content of the packages, in the places that it has below `/usr`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{VERSION, done, glibc, shell};
use crate::arch::Arch;
use crate::programs::{CHECK, EXEC, LIBRARY, TAMIS};
use crate::tidy::root;

/// The maintainer in the packages.
const MAINTAINER: &str = "The tamis authors <tamis@packages.invalid>";
/// The shells with their files of completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/tamis"),
    ("zsh", "share/zsh/site-functions/_tamis"),
    ("fish", "share/fish/vendor_completions.d/tamis.fish"),
];

/// Exceptions for lintian, with the reasons.
const OVERRIDES: &str = "\
# Static, at an address that differs from run to run: it works in every container.
tamis: shared-library-lacks-prerequisites [usr/bin/tamis]
tamis: shared-library-lacks-prerequisites [usr/bin/tamis-exec]
tamis: shared-library-lacks-prerequisites [usr/bin/tamis-check]
# Made by the project, not for an archive of Debian's.
tamis: initial-upload-closes-no-bugs *
";

/// Fills a new folder and returns it.
pub(super) fn fill(stage: &Path, tools: &Path, epoch: &str, arch: Arch) -> Result<PathBuf> {
    let tamis = TAMIS.build(arch)?;
    copy(&tamis, &stage.join("bin/tamis"), 0o755)?;
    copy(&EXEC.build(arch)?, &stage.join("bin/tamis-exec"), 0o755)?;
    copy(&CHECK.build(arch)?, &stage.join("bin/tamis-check"), 0o755)?;
    // The folder that the dynamic linker of a command is given, so it has nothing else.
    let library = stage.join("lib/tamis/libseccomp");
    let built = LIBRARY.build(arch)?;
    glibc::check(&built)?;
    copy(&built, &library.join("libseccomp.so.2"), 0o644)?;
    let module = root().join("crates/tamis/python/seccomp.py");
    copy(&module, &library.join("python3/seccomp.py"), 0o644)?;

    // Its texts are the same for all architectures, and this machine runs its own.
    let tamis = match arch == Arch::host()? {
        true => tamis,
        false => TAMIS.build(Arch::host()?)?,
    };
    let manuals = stage.join("share/man/man1");
    done(Command::new(&tamis).arg("man").arg(&manuals))?;
    shell("gzip -9n *.1", &manuals)?;
    for (name, path) in COMPLETIONS {
        let script = Command::new(&tamis).args(["completions", name]).output()?;
        write(&stage.join(path), &script.stdout)?;
    }
    copy_folder(
        "crates/policy/policies",
        &stage.join("share/tamis/policies"),
    )?;
    write(
        &stage.join("share/lintian/overrides/tamis"),
        OVERRIDES.as_bytes(),
    )?;
    documents(&stage.join("share/doc/tamis"), tools, epoch)?;
    Ok(stage.to_owned())
}

fn documents(folder: &Path, tools: &Path, epoch: &str) -> Result<()> {
    let mut book = Command::new(tools.join("mdbook"));
    book.arg("build").arg(root().join("docs")).arg("--dest-dir");
    done(book.arg(folder.join("html")))?;
    // The pages link to them.
    copy_folder("docs/schemas", &folder.join("schemas"))?;
    copy_folder("docs/decisions", &folder.join("decisions"))?;
    copy_folder("docs/examples/sandbox", &folder.join("examples/sandbox"))?;
    let mit = fs::read_to_string(root().join("LICENSE-MIT"))?;
    let year = shell(&format!("date -u +%Y -d @{epoch}"), &root())?;
    write(
        &folder.join("copyright"),
        copyright(&mit, year.trim()).as_bytes(),
    )?;
    let changes = fs::read(root().join("CHANGELOG.md"))?;
    write(&folder.join("changelog"), &changes)?;
    let date = shell(&format!("LC_ALL=C date -u -R -d @{epoch}"), folder)?;
    let debian = format!(
        "tamis ({VERSION}-1) unstable; urgency=medium\n\n  * What changed is in changelog.gz.\n\n -- {MAINTAINER}  {date}"
    );
    write(&folder.join("changelog.Debian"), debian.as_bytes())?;
    shell("gzip -9n changelog", folder).map(drop)
}

/// In the form that Debian wants: `debian/copyright` 1.0.
fn copyright(mit: &str, year: &str) -> String {
    let owner = mit
        .lines()
        .find_map(|line| line.strip_prefix("Copyright (c) "));
    let text: Vec<String> = mit
        .lines()
        .skip_while(|line| !line.starts_with("Permission"))
        .map(|line| {
            if line.is_empty() {
                " .".to_owned()
            } else {
                format!(" {line}")
            }
        })
        .collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: tamis\n\n\
         Files: *\nCopyright: {year} {}\nLicense: Expat or Apache-2.0\n\nLicense: Expat\n{}\n\n\
         License: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n",
        owner.unwrap_or("The tamis authors"),
        text.join("\n")
    )
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().context("a file in a folder")?;
    fs::create_dir_all(folder)?;
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    write(
        to,
        &fs::read(from).with_context(|| from.display().to_string())?,
    )?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

/// Copies the files of a folder of the repository.
fn copy_folder(from: &str, to: &Path) -> Result<()> {
    let from = root().join(from);
    for entry in fs::read_dir(&from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            copy(&entry.path(), &to.join(entry.file_name()), 0o644)?;
        }
    }
    Ok(())
}
