//! Filters as source code: the programs in the book are built with the output of tamis, and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tamis_abi::Arch;
use tamis_compiler::{CompileOptions, compile};
use tamis_diag::Sources;
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis::{self, TamisOptions};
use tamis_testkit::corpus::repository;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::toolchains::{self, C, CXX, GO, RUST, Toolchain, block, run, stderr_text};

use crate::TAMIS;

/// Builds a program with the filter of a policy and, for Go, a file of the filter's own package; `None`, with a
/// word, where there is no compiler.
fn built(
    toolchain: &Toolchain,
    test: &str,
    policy: &str,
    inside: Option<&str>,
    main: &str,
) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedding");
    let folder = toolchain.folder(&root, test);
    let policy_file = folder.join("server.tamis");
    fs::write(&policy_file, policy).unwrap();
    fs::create_dir_all(folder.join("server")).unwrap();
    let written = Command::new(TAMIS)
        .arg("compile")
        .arg(&policy_file)
        .args(["--arch", "x86_64", "--emit", toolchain.language, "-o"])
        .arg(folder.join(toolchain.filter("server")))
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", stderr_text(&written));
    if let Some(text) = inside {
        fs::write(folder.join("server/inside.go"), text).unwrap();
    }
    toolchain.build(&folder, main)
}

fn book() -> String {
    fs::read_to_string(repository().join("docs/book/embedding.md")).unwrap()
}

/// A file of the examples.
fn example(path: &str) -> String {
    let folder = repository().join("examples/embedding");
    fs::read_to_string(folder.join(path)).unwrap()
}

#[test]
fn the_book_shows_the_examples() {
    let book = book();
    let shown = [
        ("console\n$ cat server.tamis", "server.tamis"),
        ("c", "c/main.c"),
    ];
    for (opening, path) in shown {
        assert_eq!(block(&book, opening), example(path), "{path}");
    }
}

#[test]
fn the_programs_of_the_book_are_confined_to_what_they_bind_in_c() {
    confined(&C);
}

#[test]
fn the_programs_of_the_book_are_confined_to_what_they_bind_in_cxx() {
    confined(&CXX);
}

#[test]
fn the_programs_of_the_book_are_confined_to_what_they_bind_in_rust() {
    confined(&RUST);
}

#[test]
fn the_programs_of_the_book_are_confined_to_what_they_bind_in_go() {
    confined(&GO);
}

fn confined(toolchain: &Toolchain) {
    skip::unless_kernel();
    skip::unless_x86_64();
    let book = book();
    let policy = block(&book, "console\n$ cat server.tamis");
    let main = match toolchain.language {
        "go" => example("go/main.go"),
        language => block(&book, language),
    };
    let program = built(toolchain, "book", &policy, None, &main);
    toolchains::assert_confined(toolchain.program, &program);
}

/// A filter without variables, in Go: nothing else has to hold it.
#[test]
fn a_complete_filter_is_installed_where_it_is_made() {
    skip::unless_kernel();
    skip::unless_x86_64();
    let policy = "default allow\nbad-arch kill-process\nerrno(EPERM) write(fd == 2)\n";
    let main = "\
package main

import (
	\"os\"
	\"syscall\"

	\"example.org/confined/server\"
)

func main() {
	if _, err := server.New().Install(server.FlagTsync, true); err != nil {
		os.Exit(3)
	}
	if _, err := syscall.Write(2, []byte(\"leak\")); err != syscall.EPERM {
		os.Exit(5)
	}
}
";
    let program = built(&GO, "complete", policy, None, main);
    let ended = Command::new(program).status().expect("it starts");
    assert_eq!(ended.code(), Some(0));
}

/// Rust in the file of a program of any edition, with all lints of the edition that follows as errors.
#[test]
fn what_is_written_in_rust_builds_in_every_edition() {
    skip::unless_runs(Need::Toolchains, "rustc", &["--version"]);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedding/editions");
    fs::create_dir_all(&folder).unwrap();
    let texts = [
        ("server.tamis", ALL_KINDS),
        (
            "matrix.toml",
            "policy = \"server.tamis\"\narch = \"x86_64\"\n[option.a]\nyes = {}\nno = { rules = \"errno(EPERM) getpid\" }\n",
        ),
        (
            "main.rs",
            "pub mod alone { include!(\"alone.rs\"); }\npub mod all { include!(\"all.rs\"); }\n",
        ),
    ];
    for (name, text) in texts {
        fs::write(folder.join(name), text).unwrap();
    }
    for words in [
        "compile server.tamis --arch x86_64 --emit rust -o alone.rs",
        "precompile matrix.toml --emit rust -o all.rs",
    ] {
        let mut tamis = Command::new(TAMIS);
        let written = tamis.args(words.split(' ')).current_dir(&folder).output();
        let written = written.unwrap();
        assert!(written.status.success(), "{}", stderr_text(&written));
    }
    for edition in ["2015", "2018", "2021", "2024"] {
        let mut rustc = Command::new("rustc");
        rustc
            .args(["--edition", edition, "--crate-type=lib", "--emit=metadata"])
            .args([
                "-D",
                "warnings",
                "-D",
                "future-incompatible",
                "-D",
                "rust-2018-compatibility",
            ])
            .args([
                "-D",
                "rust-2021-compatibility",
                "-D",
                "rust-2024-compatibility",
                "main.rs",
            ])
            .current_dir(&folder);
        let built = rustc.output().unwrap();
        assert!(built.status.success(), "{edition}: {}", stderr_text(&built));
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

/// A file of the generated package, which can use unexported names.
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

/// The proved template, bound to the values.
fn bound(policy: &str, values: &[u64]) -> Vec<u8> {
    let mut sources = Sources::new();
    let source = sources.add("server.tamis", policy);
    let options = TamisOptions::new(vec![Arch::X86_64]);
    let parsed = tamis::parse(&mut sources, source, &mut NoIncludes, &options);
    let ruleset = parsed.ruleset.expect("the policy is right");
    let filter = compile(&ruleset, &CompileOptions::default()).unwrap();
    filter.bind(values).unwrap().to_bytes()
}

#[test]
fn c_binds_as_the_proved_template_does() {
    binds_as_the_proved_template_does(&C, C_DUMP);
}

#[test]
fn cxx_binds_as_the_proved_template_does() {
    binds_as_the_proved_template_does(&CXX, C_DUMP);
}

#[test]
fn rust_binds_as_the_proved_template_does() {
    binds_as_the_proved_template_does(&RUST, RUST_DUMP);
}

#[test]
fn go_binds_as_the_proved_template_does() {
    binds_as_the_proved_template_does(&GO, GO_DUMP);
}

fn binds_as_the_proved_template_does(toolchain: &Toolchain, main: &str) {
    skip::unless_x86_64();
    let inside = Some(GO_DUMP_INSIDE).filter(|_| toolchain.program == GO.program);
    let program = built(toolchain, "dump", ALL_KINDS, inside, main);
    let output = run(&program, &[]);
    assert!(output.status.success(), "{}", stderr_text(&output));
    let expected = bound(ALL_KINDS, &VALUES);
    assert!(output.stdout == expected, "{:?}", output.stdout);
}

/// No instruction needs the variable, and none is needed at all.
const IDLE: &str = "let idle: u32\ndefault allow\nerrno(EPERM) read(fd == idle || fd != idle)\n";

#[test]
fn a_policy_of_idle_variables_builds_in_c() {
    assert_idle(
        &C,
        "#include \"server.h\"\nint main(void) { struct server_values v = { 1 }; \
         struct sock_filter f[server_insns_len]; return server_bind(f, &v); }\n",
    );
}

#[test]
fn a_policy_of_idle_variables_builds_in_rust() {
    assert_idle(
        &RUST,
        "mod server;\nfn main() { let f = server::bind(&server::Values { idle: 1 }).unwrap();\n\
            if std::env::args().len() > 5 { f.install(server::FLAG_TSYNC, true).unwrap(); } }\n",
    );
}

#[test]
fn a_policy_of_idle_variables_builds_in_go() {
    assert_idle(
        &GO,
        "package main\nimport \"example.org/confined/server\"\n\
          func main() { server.Bind(&server.Values{}) }\n",
    );
}

fn assert_idle(toolchain: &Toolchain, main: &str) {
    let program = built(toolchain, "idle", IDLE, None, main);
    let output = run(&program, &[]);
    assert!(output.status.success(), "{}", stderr_text(&output));
}
