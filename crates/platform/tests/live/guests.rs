//! The programs that run as guests, built when the tests start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs in C, named by their files in `tests/guests`.
const NAMES: [&str; 38] = [
    "attack",
    "answered",
    "answers",
    "arguments",
    "bases",
    "blocked",
    "confined",
    "decided",
    "exceptions",
    "exec",
    "faults",
    "heirs",
    "hides",
    "ignored",
    "inherits",
    "killed",
    "late",
    "loop",
    "lost",
    "many",
    "memory",
    "newborn",
    "pointers",
    "processes",
    "refused",
    "registers",
    "restart",
    "results",
    "rush",
    "siblings",
    "sigsys",
    "signals",
    "stacks",
    "storms",
    "tasks",
    "threads",
    "together",
    "trapped",
];

/// Those for x86-64 alone: its other interfaces, its vsyscall page, and the guests of its virtual machines.
#[cfg(target_arch = "x86_64")]
const OF_THE_ARCH: [&str; 5] = ["interfaces", "machine", "monitor", "permits", "vsyscall"];
#[cfg(not(target_arch = "x86_64"))]
const OF_THE_ARCH: [&str; 0] = [];

/// The path of a program.
pub(crate) fn path(name: &str) -> PathBuf {
    folder().join(name)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests")
}

/// Builds the programs that are older than their sources, statically linked.
///
/// # Errors
/// There is no compiler.
///
/// # Panics
/// If a program doesn't build.
pub(crate) fn build() -> Result<(), String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests");
    fs::create_dir_all(folder()).expect("the folder can be made");
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let headers = ["filter.h", "guest.h"].map(|name| modified(&sources.join(name)));
    let header = headers.into_iter().max().flatten();
    for name in NAMES.into_iter().chain(OF_THE_ARCH) {
        let source = sources.join(format!("{name}.c"));
        let program = path(name);
        let newest = modified(&source).max(header);
        if modified(&program) > newest {
            continue;
        }
        // Another run of the tests may start the program meanwhile.
        let new = folder().join(format!("{name}.{}", std::process::id()));
        let built = Command::new("cc")
            .args([
                "-O1",
                "-g",
                "-static",
                "-pthread",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-result",
                "-o",
            ])
            .args([&new, &source])
            .output()
            .map_err(|error| format!("cc: {error}"))?;
        let stderr = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{name}: {stderr}");
        fs::rename(&new, &program).expect("the program can be moved");
    }
    build_32(&sources);
    build_go();
    Ok(())
}

/// A 32-bit program; its case is skipped if the compiler can't build it.
fn build_32(sources: &Path) {
    let program = path("program32");
    if program.exists() {
        return;
    }
    let _ = Command::new("cc")
        .args([
            "-m32",
            "-O1",
            "-nostdlib",
            "-static",
            "-fno-stack-protector",
            "-fno-pic",
            "-o",
        ])
        .args([&program, &sources.join("program32.c")])
        .output();
}

/// A program in Go: its runtime has threads and sends itself signals. Its case is skipped without a compiler.
fn build_go() {
    let (source, program) = (folder().join("hello.go"), path("hello-go"));
    if program.exists() {
        return;
    }
    let text = "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tc := make(chan int)\n\tfor i := 0; i < 10; i++ {\n\
                \t\tgo func() { c <- i }()\n\t}\n\tsum := 0\n\tfor i := 0; i < 10; i++ {\n\t\tsum += <-c\n\t}\n\
                \tfmt.Println(sum)\n}\n";
    fs::write(&source, text).expect("the folder can be written");
    let _ = Command::new("go")
        .args(["build", "-o"])
        .args([&program, &source])
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .output();
}
