//! C programs that are linked to tamis's library, against its headers.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_scmp::{Release, header};

use crate::libseccomp::{built_library, built_next_library};
use crate::skip::{self, Need};

/// Creates a folder and compiles a program in it, for a release of libseccomp; the library is there under its soname.
/// Without a C compiler the test is [skipped](skip::because).
///
/// # Panics
/// If there is no library, or the program doesn't compile.
pub fn compile(folder: &Path, source: &str, release: Release) -> PathBuf {
    skip::unless_runs(Need::Toolchains, "cc", &["--version"]);
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("a folder for the test");
    let library = match release {
        Release::Reference => built_library(),
        Release::Next => built_next_library(),
    };
    let files = [
        ("program.c", source.to_owned()),
        ("seccomp.h", header::seccomp_h(release).into_owned()),
        ("seccomp-syscalls.h", header::seccomp_syscalls_h()),
        ("seccomp-kvers.h", header::seccomp_kvers_h()),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file of the test");
    }
    symlink(library, folder.join("libseccomp.so.2")).expect("a link to the library");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"])
        .args(["-Wno-missing-field-initializers", "-I.", "-o", "program"])
        .args(["program.c", "libseccomp.so.2", "-pthread", "-ldl"])
        .current_dir(folder);
    let built = compiler.output().expect("it has just run");
    let messages = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{messages}");
    folder.join("program")
}
