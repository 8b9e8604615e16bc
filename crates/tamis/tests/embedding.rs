//! Filters as source code: the programs that the book shows are built with what tamis writes, and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tamis_abi::{Arch, Endian};
use tamis_compiler::{Options, compile_template};
use tamis_diag::Sources;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis::{self, Options as PolicyOptions};
use tamis_testkit::child;
use tamis_testkit::corpus::repository;
use tamis_testkit::skip::{self, Need};

const TAMIS: &str = env!("CARGO_BIN_EXE_tamis");

/// How a language's programs are built.
struct Toolchain {
    /// What `--emit` and the book's blocks call the language.
    language: &'static str,
    /// The compiler.
    program: &'static str,
    /// Its arguments for a program that is in its folder.
    build: &'static [&'static str],
    /// Where the text of the filter has to be.
    filter: &'static str,
    /// Where the program has to be.
    main: &'static str,
}

const C: Toolchain = Toolchain {
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
    filter: "server.h",
    main: "main.c",
};

/// The same text is C++.
const CXX: Toolchain = Toolchain {
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

const RUST: Toolchain = Toolchain {
    language: "rust",
    program: "rustc",
    build: &["--edition=2024", "-Dwarnings", "-o", "program", "main.rs"],
    filter: "server.rs",
    main: "main.rs",
};

const GO: Toolchain = Toolchain {
    language: "go",
    program: "go",
    build: &["build", "-o", "program", "."],
    filter: "server/server.go",
    main: "main.go",
};

const TOOLCHAINS: [Toolchain; 4] = [C, CXX, RUST, GO];

impl Toolchain {
    /// A new folder of a test's own.
    fn folder(&self, test: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("embedding")
            .join(test)
            .join(self.program);
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        fs::create_dir_all(folder.join("server")).unwrap();
        folder
    }

    /// Builds a program with the filter of a policy and, for Go, a file of the filter's own package; `None`,
    /// with a word, where there is no compiler.
    fn program(
        &self,
        test: &str,
        policy: &str,
        inside: Option<&str>,
        main: &str,
    ) -> Option<PathBuf> {
        let folder = self.folder(test);
        let policy_file = folder.join("server.tamis");
        fs::write(&policy_file, policy).unwrap();
        let written = Command::new(TAMIS)
            .arg("compile")
            .arg(&policy_file)
            .args(["--arch", "x86_64", "--emit", self.language, "-o"])
            .arg(folder.join(self.filter))
            .output()
            .unwrap();
        assert!(written.status.success(), "{}", said(&written));
        fs::write(folder.join(self.main), main).unwrap();
        if let Some(text) = inside {
            fs::write(folder.join("server/inside.go"), text).unwrap();
        }
        fs::write(
            folder.join("go.mod"),
            "module example.org/confined\n\ngo 1.19\n",
        )
        .unwrap();
        let built = Command::new(self.program)
            .args(self.build)
            .current_dir(&folder)
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=mod")
            .output();
        let built = match built {
            Ok(built) => built,
            Err(error) => {
                skip::because(Need::Toolchains, format!("{}: {error}", self.program));
                return None;
            }
        };
        assert!(built.status.success(), "{}: {}", self.program, said(&built));
        Some(folder.join("program"))
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn book() -> String {
    fs::read_to_string(repository().join("docs/book/embedding.md")).unwrap()
}

/// A file of the examples.
fn example(path: &str) -> String {
    let folder = repository().join("examples/embedding");
    fs::read_to_string(folder.join(path)).unwrap()
}

/// The first block of a text that begins with this line.
fn block(text: &str, opening: &str) -> String {
    let after = text.split_once(&format!("```{opening}\n")).unwrap().1;
    after.split_once("```").unwrap().0.to_owned()
}

fn run(program: &Path, argument: &str) -> Output {
    child::output(Command::new(program).arg(argument).stdin(Stdio::null())).unwrap()
}

#[test]
fn the_book_shows_the_examples() {
    let book = book();
    let shown = [
        ("console\n$ cat server.tamis", "server.tamis"),
        ("c", "c/main.c"),
        ("go", "go/main.go"),
    ];
    for (opening, path) in shown {
        assert_eq!(block(&book, opening), example(path), "{path}");
    }
}

#[test]
fn the_programs_of_the_book_are_confined_to_what_they_bind() {
    if !cfg!(target_arch = "x86_64") || skip::without_kernel() {
        return;
    }
    let book = book();
    let policy = block(&book, "console\n$ cat server.tamis");
    for toolchain in TOOLCHAINS {
        let main = block(&book, toolchain.language);
        let Some(program) = toolchain.program("book", &policy, None, &main) else {
            continue;
        };
        let language = toolchain.program;
        let output = run(&program, "1");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{language}: {}",
            said(&output)
        );
        assert_eq!(output.stdout, b"confined", "{language}");
        assert_eq!(output.stderr, b"", "{language}: nothing leaks");
        let output = run(&program, "-1");
        assert_eq!(
            output.status.code(),
            Some(2),
            "{language}: -1 is no descriptor"
        );
    }
}

/// What the tests below compile: all kinds of variables, with names that are words of the languages, and one that
/// no instruction needs.
const ALL_KINDS: &str = "\
let errno: u32
let self: u64
let a_b: u32 in 3..1023
let ab: u64[2] in 5..0xffffffffff
let idle: u32
default allow
bad-arch kill-process
errno(EPERM) write(fd != errno && fd >= a_b), mmap(addr == self || addr in ab)
errno(ENOENT) read(fd == idle || fd != idle), close(fd < a_b)
";

/// Values for them, in order: `errno`, `self`, `a_b`, `ab`, `idle`.
const VALUES: [u64; 6] = [7, 0x0123_4567_89ab_cdef, 1023, 5, 0xff_ffff_ffff, 9];

const C_DUMP: &str = "\
#include <stdio.h>
#include \"server.h\"
int main(void)
{
	struct sock_filter filter[server_insns_len];
	const struct server_values values = { 7, 0x0123456789abcdef, 1023, { 5, 0xffffffffff }, 9 };
	const struct server_values low = { 7, 0, 2, { 5, 5 }, 9 }, high = { 7, 0, 3, { 5, 0x10000000000 }, 9 };

	if (server_bind(filter, &low) != -1 || errno != ERANGE || server_bind(filter, &high) != -1)
		return 1;
	if (server_bind(filter, &values) != 0)
		return 2;
	fwrite(filter, sizeof filter, 1, stdout);
	return 0;
}
";

const RUST_DUMP: &str = "\
mod server {
    include!(\"server.rs\");
    pub fn words(filter: &Filter) -> impl Iterator<Item = (u16, u8, u8, u32)> + '_ {
        filter.0.iter().map(|insn| (insn.code, insn.jt, insn.jf, insn.k))
    }
}
use std::io::Write;
fn main() {
    let bind = |a_b, second| {
        let ab = [5, second];
        server::bind(&server::Values { errno: 7, self_: 0x0123456789abcdef, a_b, ab, idle: 9 })
    };
    let refusal = bind(2, 5).err().unwrap();
    assert_eq!((refusal.variable, refusal.value), (\"a_b\", 2));
    let refusal = bind(3, 0x10000000000).err().unwrap();
    assert_eq!(refusal.to_string(), \"`ab[1]` was not declared for 1099511627776\");
    let filter = bind(1023, 0xffffffffff).unwrap();
    for (code, jt, jf, k) in server::words(&filter) {
        let mut bytes = code.to_le_bytes().to_vec();
        bytes.extend([jt, jf]);
        bytes.extend(k.to_le_bytes());
        std::io::stdout().write_all(&bytes).unwrap();
    }
    if std::env::args().len() > 5 {
        filter.install(server::FLAG_TSYNC, true).unwrap();
    }
}
";

const GO_DUMP: &str = "\
package main

import \"example.org/confined/server\"

func main() {
	server.Dump()
}
";

/// A file of the generated package, which sees what it doesn't export.
const GO_DUMP_INSIDE: &str = "\
package server

import (
	\"encoding/binary\"
	\"os\"
)

func Dump() {
	values := Values{Errno: 7, Self: 0x0123456789abcdef, AB: 2, Ab: [2]uint64{5, 5}, Idle: 9}
	if _, err := Bind(&values); err.Error() != \"a_b was not declared for 2\" {
		panic(err)
	}
	values.AB, values.Ab[1] = 3, 0x10000000000
	if _, err := Bind(&values); err.Error() != \"ab[1] was not declared for 1099511627776\" {
		panic(err)
	}
	values.AB, values.Ab[1] = 1023, 0xffffffffff
	filter, err := Bind(&values)
	if err != nil {
		panic(err)
	}
	for _, insn := range filter.insns {
		bytes := binary.LittleEndian.AppendUint16(nil, insn.code)
		bytes = append(bytes, insn.jt, insn.jf)
		os.Stdout.Write(binary.LittleEndian.AppendUint32(bytes, insn.k))
	}
}
";

/// What the proved template makes of the values.
fn bound(policy: &str, values: &[u64]) -> Vec<u8> {
    let mut sources = Sources::new();
    let source = sources.add("server.tamis", policy);
    let options = PolicyOptions::new(vec![Arch::X86_64]);
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    let ruleset = parsed.ruleset.expect("the policy is right");
    let filter = compile_template(&ruleset, &Options::default()).unwrap();
    filter.bind(values).unwrap().to_bytes(Endian::Little)
}

#[test]
fn every_language_binds_as_the_proved_template_does() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let expected = bound(ALL_KINDS, &VALUES);
    for (toolchain, main) in [(C, C_DUMP), (CXX, C_DUMP), (RUST, RUST_DUMP), (GO, GO_DUMP)] {
        let inside = Some(GO_DUMP_INSIDE).filter(|_| toolchain.program == GO.program);
        let Some(program) = toolchain.program("dump", ALL_KINDS, inside, main) else {
            continue;
        };
        let output = run(&program, "");
        let language = toolchain.program;
        assert!(output.status.success(), "{language}: {}", said(&output));
        assert!(output.stdout == expected, "{language}: {:?}", output.stdout);
    }
}

/// No instruction needs the variable, and none is needed at all.
#[test]
fn a_policy_of_idle_variables_builds() {
    let policy = "let idle: u32\ndefault allow\nerrno(EPERM) read(fd == idle || fd != idle)\n";
    let mains = [
        (
            C,
            "#include \"server.h\"\nint main(void) { struct server_values v = { 1 }; \
             struct sock_filter f[server_insns_len]; return server_bind(f, &v); }\n",
        ),
        (
            RUST,
            "mod server;\nfn main() { let f = server::bind(&server::Values { idle: 1 }).unwrap();\n\
                if std::env::args().len() > 5 { f.install(server::FLAG_TSYNC, true).unwrap(); } }\n",
        ),
        (
            GO,
            "package main\nimport \"example.org/confined/server\"\n\
              func main() { server.Bind(&server.Values{}) }\n",
        ),
    ];
    for (toolchain, main) in mains {
        if let Some(program) = toolchain.program("idle", policy, None, main) {
            let output = run(&program, "");
            assert!(
                output.status.success(),
                "{}: {}",
                toolchain.program,
                said(&output)
            );
        }
    }
}
