//! `tamis libseccomp install`: what programs, compilers and Python look for is there and belongs together.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::TAMIS;

/// Stands for the library, of which the command sees only the format and the names of its function and its variable.
const LIBRARY: &[u8] = b"\x7fELF and seccomp_rule_add_array\0TAMIS_EXPLAIN\0";

fn install(folder: &Path, prefix: &Path) -> Output {
    install_library(LIBRARY, folder, prefix)
}

fn install_library(bytes: &[u8], folder: &Path, prefix: &Path) -> Output {
    let library = folder.join("library.so");
    fs::write(&library, bytes).unwrap();
    let mut command = Command::new(TAMIS);
    command.args(["libseccomp", "install", "--library"]);
    command.arg(&library).arg("--prefix").arg(prefix);
    command.output().expect("tamis starts")
}

fn folder(test: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("install")
        .join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_module_of_python_finds_the_library_in_the_folder_above_its_own() {
    let folder = folder("python");
    let prefix = folder.join("prefix");
    for _ in ["first", "again"] {
        let output = install(&folder, &prefix);
        assert!(output.status.success(), "{output:?}");
    }
    let modules = prefix.join("lib/python3");
    let module = fs::read_to_string(modules.join("seccomp.py")).unwrap();
    assert!(module.contains("class SyscallFilter"));
    assert_eq!(
        fs::read(modules.join("../libseccomp.so.2")).unwrap(),
        LIBRARY
    );
}

#[test]
fn the_static_library_is_that_beside_the_shared_one() {
    let folder = folder("static");
    let prefix = folder.join("prefix");
    let with_static = |prefix: &Path| {
        let mut command = Command::new(TAMIS);
        command.args(["libseccomp", "install", "--static", "--library"]);
        command.arg(folder.join("library.so")).arg("--prefix");
        command.arg(prefix).output().expect("tamis starts")
    };
    assert!(install(&folder, &folder.join("shared")).status.success());
    let refused = with_static(&prefix);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(!prefix.exists());
    fs::write(folder.join("library.a"), "an archive").unwrap();
    assert!(with_static(&prefix).status.success());
    let archive = fs::read(prefix.join("lib/libseccomp.a")).unwrap();
    assert_eq!(archive, b"an archive");
    let links = fs::read_to_string(prefix.join("lib/pkgconfig/libseccomp.pc")).unwrap();
    assert!(links.contains("Libs.private:"));
    assert!(install(&folder, &prefix).status.success());
    assert!(
        !prefix.join("lib/libseccomp.a").exists(),
        "that of another version"
    );
}

#[test]
fn a_prefix_with_another_libseccomp_is_refused_and_left_alone() {
    let folder = folder("foreign");
    let prefix = folder.join("prefix");
    let foreign = prefix.join("lib/x86_64-linux-gnu/libseccomp.so.2");
    fs::create_dir_all(foreign.parent().unwrap()).unwrap();
    fs::write(&foreign, "another").unwrap();
    let output = install(&folder, &prefix);
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("isn't tamis's"), "{errors}");
    assert!(!prefix.join("share").exists() && !prefix.join("lib/python3").exists());
}

#[test]
fn libseccomp_itself_is_refused() {
    let folder = folder("itself");
    let prefix = folder.join("prefix");
    let output = install_library(b"\x7fELF and seccomp_rule_add_array\0", &folder, &prefix);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("is libseccomp itself"), "{errors}");
    assert!(!prefix.exists());
}
