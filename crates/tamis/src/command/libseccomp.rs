//! `tamis libseccomp`: install the library that replaces libseccomp.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use tamis_report::installed::InstalledReport;
use tamis_scmp::{Release, header};
use tamis_session::path_text::PathText;

use crate::cli::library::failed;
use crate::cli::output::{show, write_link, write_over_link};
use crate::cli::{Failure, Global, exit, library, replace};

/// The end of the help of `libseccomp` and of `libseccomp install`.
const INSTALL: &str = "\
Examples:
  tamis libseccomp install --prefix tamis
  tamis run --libseccomp -- ls              without installing it
Programs that are linked to libseccomp find the library by LD_LIBRARY_PATH=PREFIX/lib and need no change; \
Python programs find the module `seccomp` by PYTHONPATH=PREFIX/lib/python3. \
A prefix in which another libseccomp is installed is refused.";

/// Install the library that takes the place of libseccomp
#[derive(clap::Args)]
#[command(after_help = INSTALL)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: LibseccompCommand,
}

/// What to do.
#[derive(Subcommand)]
enum LibseccompCommand {
    /// Install library, headers, pkg-config file, Python module and a note on how to switch back
    #[command(after_help = INSTALL)]
    Install {
        /// The folder that gets `lib`, `include` and `share`
        #[arg(long, value_name = "DIR")]
        prefix: PathBuf,
        /// The library's file [default: the one beside this program]
        #[arg(long, value_name = "FILE")]
        library: Option<PathBuf>,
        /// Also install `libseccomp.a`, which lies beside the library's file, for programs that are linked statically
        #[arg(long = "static")]
        is_static: bool,
        /// The interface of libseccomp's main branch, which programs see as 2.7.0: `seccomp_notify_addfd`, `SCMP_ACT_TRAPX`
        #[arg(long, conflicts_with = "is_static")]
        next: bool,
    },
}

/// The file that marks an installation by tamis.
const NOTE: &str = "share/doc/tamis-libseccomp/README";

/// The header with the versions of Linux, which only the newer interface has.
const VERSIONS: &str = "include/seccomp-kvers.h";

const ARCHIVE: &str = "lib/libseccomp.a";

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let LibseccompCommand::Install {
        prefix,
        library,
        is_static,
        next,
    } = &args.command;
    let asked = match next {
        true => Release::Next,
        false => Release::Reference,
    };
    let named = library.as_deref();
    let library = library::find(named, asked)?;
    // Headers and module match the library, whether it was named or found.
    let release = library::release_of(&library)?;
    if release != asked {
        return Err(other_release(&library, release));
    }
    let archive = is_static.then(|| library::archive(&library)).transpose()?;
    // The dynamic linker and pkg-config need an absolute path.
    let prefix = std::path::absolute(prefix).map_err(|error| failed(prefix, &error))?;
    refuse_foreign(&prefix)?;
    let files = install(&prefix, (&library, release), archive.as_deref())?;
    let report = InstalledReport {
        library: prefix.join("lib").text(),
        prefix: prefix.text(),
        files,
    };
    show(&report, global)?;
    Ok(exit::OK)
}

/// Fails if the prefix contains a libseccomp that tamis didn't install, in `lib` or a distribution's folder beside or
/// below it.
fn refuse_foreign(prefix: &Path) -> Result<(), Failure> {
    if prefix.join(NOTE).exists() {
        return Ok(());
    }
    let [major, ..] = Release::default().version();
    let soname = format!("libseccomp.so.{major}");
    let below = fs::read_dir(prefix.join("lib"))
        .into_iter()
        .flatten()
        .flatten();
    let folders = ["lib", "lib64", "lib32"].map(|name| prefix.join(name));
    let folders = folders.into_iter().chain(below.map(|entry| entry.path()));
    let libraries = folders.map(|folder| folder.join(&soname));
    let mut files = libraries.chain([prefix.join("include/seccomp.h")]);
    match files.find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => Err(Failure::usage(
            format!("{} exists and isn't tamis's", path.text()),
            "choose a prefix of its own, such as /opt/tamis",
        )),
        None => Ok(()),
    }
}

/// Writes all files; returns their paths.
fn install(
    prefix: &Path,
    (library, release): (&Path, Release),
    archive: Option<&Path>,
) -> Result<Vec<String>, Failure> {
    let [major, minor, micro] = release.version();
    let real = format!("libseccomp.so.{major}.{minor}.{micro}");
    let soname = format!("libseccomp.so.{major}");
    let bytes = fs::read(library).map_err(|error| failed(library, &error))?;
    let interface = header::seccomp_h(release);
    let calls = header::seccomp_syscalls_h();
    let pkg_config = header::pkg_config(&prefix.to_string_lossy(), release);
    let versions = header::seccomp_kvers_h();
    let versions = (release == Release::Next).then_some((VERSIONS, versions.as_bytes()));
    let mut installed = Vec::new();
    // The mark is written first, so that an interrupted installation can be repeated.
    let module = format!("lib/{}", library::PYTHON_MODULE_PATH);
    let files: [(&str, &[u8]); 6] = [
        (NOTE, NOTE_TEXT.as_bytes()),
        ("include/seccomp.h", interface.as_bytes()),
        ("include/seccomp-syscalls.h", calls.as_bytes()),
        ("lib/pkgconfig/libseccomp.pc", pkg_config.as_bytes()),
        (&format!("lib/{real}"), &bytes),
        (&module, library::PYTHON_MODULE.as_bytes()),
    ];
    let archive_bytes =
        archive.map(|archive| fs::read(archive).map_err(|error| failed(archive, &error)));
    let archive_bytes = archive_bytes.transpose()?;
    let archive = archive_bytes.as_deref().map(|bytes| (ARCHIVE, bytes));
    for (name, bytes) in files.into_iter().chain(archive).chain(versions) {
        let path = prefix.join(name);
        make_folder(&path)?;
        write_over_link(&path, bytes)?;
        installed.push(path.text());
    }
    // Files of an earlier installation would be of another version.
    let mut stale = vec![(ARCHIVE.to_owned(), archive.is_none())];
    stale.push((VERSIONS.to_owned(), release == Release::Reference));
    for other in [Release::Reference, Release::Next] {
        let [major, minor, micro] = other.version();
        stale.push((
            format!("lib/libseccomp.so.{major}.{minor}.{micro}"),
            other != release,
        ));
    }
    for (name, _) in stale.into_iter().filter(|(_, is_stale)| *is_stale) {
        let path = prefix.join(name);
        if path.exists() {
            fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
        }
    }
    for (name, target) in [(&soname, &real), (&"libseccomp.so".to_owned(), &soname)] {
        let path = prefix.join("lib").join(name);
        write_link(&path, Path::new(target))?;
        installed.push(path.text());
    }
    Ok(installed)
}

fn other_release(library: &Path, release: Release) -> Failure {
    let (what, help) = match release {
        Release::Next => ("libseccomp's main branch", "add `--next`"),
        Release::Reference => ("libseccomp 2.6.1", "leave out `--next`"),
    };
    Failure::usage(
        format!("{} has the interface of {what}", library.text()),
        help,
    )
}

fn make_folder(of: &Path) -> Result<(), Failure> {
    let make = |folder| replace::make_folder(folder, replace::INSTALLED_FOLDER);
    let made = of.parent().map_or(Ok(()), make);
    made.map_err(|error| failed(of, &error))
}

const NOTE_TEXT: &str = "\
This prefix has tamis's replacement of libseccomp 2.6.1, or with seccomp-kvers.h that of libseccomp's main branch.

Programs use it if LD_LIBRARY_PATH names its lib folder, or if that folder comes first in
/etc/ld.so.conf.d and ldconfig was run. Programs that have a copy of libseccomp in themselves don't.
Debian's Python module `seccomp` has one: PYTHONPATH with this prefix's lib/python3 replaces the module.

TAMIS_LOG=stderr in the environment of a program writes a line for each filter that is made,
TAMIS_EXPLAIN=FILE the last filter as a policy in the tamis language.

To switch back, remove the folders from LD_LIBRARY_PATH, PYTHONPATH and /etc/ld.so.conf.d, run ldconfig,
and delete the files: lib/libseccomp.so*, lib/libseccomp.a, lib/pkgconfig/libseccomp.pc, lib/python3/seccomp.py,
include/seccomp.h, include/seccomp-syscalls.h, include/seccomp-kvers.h and this file. Nothing else was changed.
";
