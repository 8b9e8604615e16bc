//! `tamis libseccomp install`: the files for programs, compilers and Python exist and match.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::TAMIS;

/// The marks of tamis's library: a function of libseccomp, and a variable that only this library reads.
const FUNCTION: &str = "seccomp_rule_add_array";
const VARIABLE: &[u8] = b"TAMIS_EXPLAIN\0";

/// The type of shared libraries, and that of executables at fixed addresses.
const ET_DYN: u16 = 3;
const ET_EXEC: u16 = 2;

/// An ELF file of a type with one dynamic symbol, which is defined there or elsewhere, and texts: it stands for a library.
fn elf(e_type: u16, symbol: &str, is_defined: bool, texts: &[u8]) -> Vec<u8> {
    const HEADER: u64 = 64;
    const SYMBOLS: u64 = 2 * 24;
    let names = format!("\0{symbol}\0");
    let sections = HEADER + SYMBOLS + names.len() as u64 + texts.len() as u64;
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |bytes: &mut Vec<u8>, words: &[u16]| {
        words
            .iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
    };
    let long = |bytes: &mut Vec<u8>, words: &[u64]| {
        words
            .iter()
            .for_each(|word| bytes.extend(word.to_le_bytes()));
    };
    // x86-64, version 1.
    half(&mut bytes, &[e_type, 62, 1, 0]);
    long(&mut bytes, &[0, 0, sections]);
    half(&mut bytes, &[0, 0, 64, 56, 0, 64, 3, 2]);
    // A global function, in the first section or in none.
    long(&mut bytes, &[0; 3]);
    half(&mut bytes, &[1, 0, 0x12, u16::from(is_defined)]);
    long(&mut bytes, &[0, 0]);
    bytes.extend(names.as_bytes());
    bytes.extend(texts);
    long(&mut bytes, &[0; 8]);
    // The symbols (type 11), whose names (type 3) are in section 2.
    let dynsym = 11 << 32;
    long(
        &mut bytes,
        &[dynsym, 0, 0, HEADER, SYMBOLS, 2 | 1 << 32, 8, 24],
    );
    let strtab = 3 << 32;
    let at = HEADER + SYMBOLS;
    long(&mut bytes, &[strtab, 0, 0, at, names.len() as u64, 0, 1, 0]);
    bytes
}

/// Stands for the library.
fn library() -> Vec<u8> {
    elf(ET_DYN, FUNCTION, true, VARIABLE)
}

fn install(folder: &Path, prefix: &Path) -> Output {
    install_library(&library(), folder, prefix)
}

fn install_library(bytes: &[u8], folder: &Path, prefix: &Path) -> Output {
    install_with(&[], bytes, folder, prefix)
}

fn install_with(options: &[&str], bytes: &[u8], folder: &Path, prefix: &Path) -> Output {
    let library = folder.join("library.so");
    fs::write(&library, bytes).unwrap();
    let mut command = Command::new(TAMIS);
    command.args(["libseccomp", "install"]).args(options);
    command
        .arg("--library")
        .arg(&library)
        .arg("--prefix")
        .arg(prefix);
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
        library()
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
    let itself = elf(ET_DYN, FUNCTION, true, b"");
    let output = install_library(&itself, &folder, &prefix);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("is libseccomp itself"), "{errors}");
    assert!(!prefix.exists());
}

#[test]
fn what_only_names_the_functions_is_refused() {
    let folder = folder("names");
    let prefix = folder.join("prefix");
    let texts = [b"\x7fELF and ", FUNCTION.as_bytes(), b"\0", VARIABLE].concat();
    let files = [
        fs::read(TAMIS).unwrap(),
        elf(ET_EXEC, FUNCTION, true, VARIABLE),
        elf(ET_DYN, FUNCTION, false, VARIABLE),
        elf(ET_DYN, "seccomp_load", true, VARIABLE),
        texts,
    ];
    for (file, bytes) in files.iter().enumerate() {
        let output = install_library(bytes, &folder, &prefix);
        assert_eq!(output.status.code(), Some(2), "{file}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("no library with"), "{file}: {errors}");
        assert!(!prefix.exists());
    }
}

#[test]
fn headers_belong_to_the_interface_of_the_library() {
    let folder = folder("interfaces");
    let prefix = folder.join("prefix");
    let text = |name: &str| fs::read_to_string(prefix.join(name)).unwrap();
    let reference = install(&folder, &prefix);
    assert!(reference.status.success(), "{reference:?}");
    assert!(text("include/seccomp.h").contains("#define SCMP_VER_MINOR 6\n"));
    assert!(!text("include/seccomp.h").contains("TRAPX"));
    assert!(!prefix.join("include/seccomp-kvers.h").exists());
    let other = install_with(&["--next"], &library(), &folder, &prefix);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    let message = String::from_utf8_lossy(&other.stderr);
    assert!(
        message.contains("has the interface of libseccomp 2.6.1"),
        "{message}"
    );
}

#[test]
fn the_built_library_of_the_main_branch_is_installed_with_its_headers() {
    let folder = folder("next");
    let prefix = folder.join("prefix");
    let run = |options: &[&str]| {
        let mut command = Command::new(TAMIS);
        command.args(["libseccomp", "install"]).args(options);
        command.arg("--prefix").arg(&prefix);
        let output = command.output().expect("tamis starts");
        assert!(output.status.success(), "{output:?}");
    };
    let text = |name: &str| fs::read_to_string(prefix.join(name)).unwrap();
    run(&["--next"]);
    assert!(text("include/seccomp.h").contains("SCMP_ACT_TRAPX"));
    assert!(text("include/seccomp-kvers.h").contains("SCMP_KV_7_2 = 85,"));
    assert!(text("lib/pkgconfig/libseccomp.pc").contains("Version: 2.7.0\n"));
    assert!(prefix.join("lib/libseccomp.so.2.7.0").is_file());
    // Back to the reference: nothing of the other stays.
    run(&[]);
    assert!(!text("include/seccomp.h").contains("SCMP_ACT_TRAPX"));
    assert!(!prefix.join("include/seccomp-kvers.h").exists());
    assert!(!prefix.join("lib/libseccomp.so.2.7.0").exists());
    assert!(prefix.join("lib/libseccomp.so.2.6.1").is_file());
}
