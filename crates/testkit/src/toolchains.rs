//! The compilers of the languages in which tamis writes filters, for tests that build and run its output.
//!
//! For each language a test gets a directory, writes the program and the output of tamis to it, and builds it with
//! all warnings as errors. A test of a language without a compiler is ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::child;
use crate::skip::{self, Judge, Need};

/// The build of a language's programs.
#[derive(Clone, Copy, Debug)]
pub struct Toolchain {
    /// The language's name for `--emit` and for the blocks of the book.
    pub language: &'static str,
    /// The compiler.
    pub program: &'static str,
    /// Its arguments for a program in its directory.
    build: &'static [&'static str],
    /// The required place of the program.
    main: &'static str,
}

/// C.
pub const C: Toolchain = Toolchain {
    language: "c",
    program: "cc",
    build: &[
        "-std=gnu99",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-pedantic",
        "-Werror",
        "-O2",
        "-o",
        "program",
        "main.c",
    ],
    main: "main.c",
};

/// C++, which accepts the text for C.
pub const CXX: Toolchain = Toolchain {
    program: "c++",
    build: &[
        "-std=c++20",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        "-o",
        "program",
        "-x",
        "c++",
        "main.c",
    ],
    ..C
};

/// Rust.
pub const RUST: Toolchain = Toolchain {
    language: "rust",
    program: "rustc",
    build: &["--edition=2024", "-Dwarnings", "-o", "program", "main.rs"],
    main: "main.rs",
};

/// Go.
pub const GO: Toolchain = Toolchain {
    language: "go",
    program: "go",
    build: &["build", "-o", "program", "."],
    main: "main.go",
};

/// All languages.
pub const ALL: [Toolchain; 4] = [C, CXX, RUST, GO];

impl Toolchain {
    /// An empty directory below `root` for the language and a test of this name; removes that of an earlier run.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn folder(&self, root: &Path, test: &str) -> PathBuf {
        let folder = root.join(test).join(self.program);
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("the folder can be emptied");
        }
        fs::create_dir_all(&folder).expect("the folder can be made");
        folder
    }

    /// The place in the directory where a program expects the filter of this name; in Go this is a package.
    pub fn filter(&self, name: &str) -> String {
        match self.language {
            "c" => format!("{name}.h"),
            "go" => format!("{name}/{name}.go"),
            _ => format!("{name}.rs"),
        }
    }

    /// Builds a program in a directory and returns its path. Go programs belong to the module `example.org/confined`.
    /// Without a compiler the test is [skipped](skip::because).
    ///
    /// # Panics
    /// If it does not build, or `TAMIS_REQUIRE` lists `toolchains` and the compiler is missing.
    pub fn build(&self, folder: &Path, main: &str) -> PathBuf {
        self.build_with(folder, main, &[])
    }

    /// The same with further words for the compiler.
    ///
    /// # Panics
    /// As [`build`](Self::build).
    pub fn build_with(&self, folder: &Path, main: &str, flags: &[&str]) -> PathBuf {
        if self.program != C.program {
            skip::unless_asked(Judge::Languages);
        }
        let version = if self.language == "go" {
            "version"
        } else {
            "--version"
        };
        skip::unless_runs(Need::Toolchains, self.program, &[version]);
        let module = "module example.org/confined\n\ngo 1.19\n";
        let files = [(self.main, main), ("go.mod", module)];
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("the folder can be written");
        }
        let built = Command::new(self.program)
            .args(self.build)
            .args(flags)
            .current_dir(folder)
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=mod")
            .output()
            .expect("it has just run");
        let problem = stderr_text(&built);
        assert!(built.status.success(), "{}: {problem}", self.program);
        folder.join("program")
    }
}

/// A program's output to standard error.
pub fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a program with empty standard input.
///
/// # Panics
/// If it can't be run.
pub fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    let output = child::output(command.args(arguments).stdin(Stdio::null()));
    output.expect("a program that was built can be run")
}

/// Runs a server of the book, which must confine itself to the descriptor it gets, and reject an argument that is not
/// a descriptor.
///
/// # Panics
/// If it does not.
pub fn assert_confined(name: &str, program: &Path) {
    let output = run(program, &["1"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{name}: {}",
        stderr_text(&output)
    );
    assert_eq!(output.stdout, b"confined", "{name}");
    assert_eq!(output.stderr, b"", "{name}: nothing leaks");
    let output = run(program, &["-1"]);
    assert_eq!(output.status.code(), Some(2), "{name}: -1 is no descriptor");
}

/// The first block of a page of the book with this opening line, given without its backticks.
///
/// # Panics
/// If there is none.
pub fn block(page: &str, opening: &str) -> String {
    let (_, after) = page
        .split_once(&format!("```{opening}\n"))
        .unwrap_or_else(|| panic!("no block begins with {opening}"));
    let (block, _) = after.split_once("```").expect("a block ends");
    block.to_owned()
}
