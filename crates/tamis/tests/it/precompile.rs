//! Families of filters as source code: programs are built with the output of tamis, and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tamis_testkit::corpus::repository;
use tamis_testkit::skip;
use tamis_testkit::toolchains::{C, CXX, GO, RUST, Toolchain, block, run, stderr_text};

use crate::TAMIS;

fn tamis(arguments: &[&str], folder: &Path) -> Output {
    let output = Command::new(TAMIS)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr_text(&output)
    );
    output
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("precompile")
}

/// Builds a program with the filters of a matrix, `server.toml` among these files.
fn built(toolchain: &Toolchain, test: &str, files: &[(&str, &str)], main: &str) -> PathBuf {
    let folder = toolchain.folder(&root(), test);
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let filter = toolchain.filter("server");
    tamis(
        &[
            "precompile",
            "server.toml",
            "--emit",
            toolchain.language,
            "-o",
            &filter,
        ],
        &folder,
    );
    toolchain.build(&folder, main)
}

#[test]
fn the_programs_of_the_book_are_confined_as_they_choose_in_c() {
    confined(&C);
}

#[test]
fn the_programs_of_the_book_are_confined_as_they_choose_in_cxx() {
    confined(&CXX);
}

#[test]
fn the_programs_of_the_book_are_confined_as_they_choose_in_rust() {
    confined(&RUST);
}

#[test]
fn the_programs_of_the_book_are_confined_as_they_choose_in_go() {
    confined(&GO);
}

/// The program in the language: the page shows that in C, the examples have the others.
fn main_program(page: &str, toolchain: &Toolchain) -> String {
    let file = match toolchain.language {
        "rust" => "main.rs",
        "go" => "main.go",
        language => return block(page, language),
    };
    fs::read_to_string(repository().join("examples/precompile").join(file)).unwrap()
}

fn confined(toolchain: &Toolchain) {
    skip::unless_kernel();
    skip::unless_x86_64();
    let page = fs::read_to_string(repository().join("docs/book/precompile.md")).unwrap();
    let shown = |name: &str| block(&page, &format!("console\n$ cat {name}"));
    let files = ["server.toml", "server.tamis", "network.tamis"].map(|name| (name, shown(name)));
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let main = main_program(&page, toolchain);
    let program = built(toolchain, "book", &files, &main);
    let language = toolchain.program;
    for (network, code) in [("none", 6), ("host", 0)] {
        let output = run(&program, &[network, "1"]);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{language} {network}: {}",
            stderr_text(&output)
        );
        assert_eq!(output.stdout, b"confined", "{language} {network}");
        assert_eq!(output.stderr, b"", "{language} {network}: nothing leaks");
    }
    let output = run(&program, &["host", "-1"]);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{language}: -1 is no descriptor"
    );
}

/// Variables that only some combinations have, with other ranges and in another order, 64 bits, a set; a
/// combination that has no filter.
const MATRIX: &str = r#"
policy = "server.tamis"
arch = "x86_64"
[option.first]
a = { let.low = "u32 in 3..9", let.wide = "u64", rules = "errno(EPERM) mmap(addr == wide), write(fd == low)" }
b = { let.low = "u32 in 5..20", let.wide = "u64", rules = "errno(ENOENT) mmap(addr != wide), write(fd > low)" }
c = { let.low = "u32", let.wide = "u64 in 1..0xffffffffff", rules = "log mmap(addr == wide), dup(fildes == low)" }
[option.second]
false = {}
true = { rules = "errno(EINTR) close(fd == 3)", include = "declared.tamis" }
[[exclude]]
first = "c"
second = true
"#;
const DECLARED: &str = "let set_b: u32[2]\nerrno(EINTR) dup2(oldfd in set_b)\n";
const POLICY: &str = "default allow\nbad-arch kill-process\nerrno(EPERM) reboot\n";

/// Fixed values for all of them.
const LOW: u64 = 7;
const WIDE: u64 = 0x0123_4567_89ab_cdef;
const SET_B: [u64; 2] = [40, 50];

const C_DUMP: &str = r#"
#include <stdio.h>
#include "server.h"
int main(void)
{
	const struct server_values values = { 7, 0x0123456789abcdef, { 40, 50 } };
	const struct server_values low = { 4, 1, { 40, 50 } };
	struct server_filter filter;
	struct server_config config;
	int first, second, made = 0;

	for (first = 0; first < 3; first++)
		for (second = 0; second < 2; second++) {
			config.first = (enum server_first)first;
			config.second = second;
			if (server_bind(&filter, &config, &values) == 0) {
				fwrite(filter.insns, sizeof filter.insns[0], filter.insns_len, stdout);
				made++;
			} else if (errno != (first == 2 && second ? EINVAL : ERANGE)) {
				return 1;
			}
		}
	config.first = server_first_b;
	config.second = 0;
	if (server_bind(&filter, &config, &low) != -1 || errno != ERANGE)
		return 2;
	config.first = (enum server_first)3;
	if (server_bind(&filter, &config, &low) != -1 || errno != EINVAL)
		return 3;
	return made == 4 ? 0 : 4;
}
"#;

const RUST_DUMP: &str = r#"
mod server {
    include!("server.rs");
    pub fn words(filter: &Filter) -> impl Iterator<Item = (u16, u8, u8, u32)> + '_ {
        filter.0.iter().map(|insn| (insn.code, insn.jt, insn.jf, insn.k))
    }
}
use server::{BindError, Config, First, Values};
use std::io::Write;
fn main() {
    let values = Values { low: 7, wide: 0x0123456789abcdef, set_b: [40, 50] };
    let low = Values { low: 4, wide: 1, ..values };
    for first in [First::A, First::B, First::C] {
        for second in [false, true] {
            let filter = match server::bind(&Config { first, second }, &values) {
                Ok(filter) => filter,
                Err(error) => {
                    assert_eq!(first, First::C);
                    assert_eq!(error == BindError::Excluded, second, "{error}");
                    continue;
                }
            };
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
    }
    let refusal = server::bind(&Config { first: First::B, second: false }, &low).err().unwrap();
    assert_eq!(refusal.to_string(), "`low` was not declared for 4");
}
"#;

const GO_DUMP: &str = "\
package main

import \"example.org/confined/server\"

func main() {
	server.Dump()
}
";

/// A file of the generated package, which can use unexported names.
const GO_DUMP_INSIDE: &str = r#"
package server

import (
	"encoding/binary"
	"os"
)

func Dump() {
	values := Values{Low: 7, Wide: 0x0123456789abcdef, SetB: [2]uint32{40, 50}}
	for _, first := range []First{FirstA, FirstB, FirstC} {
		for _, second := range []bool{false, true} {
			filter, err := Bind(&Config{first, second}, &values)
			if err != nil {
				if first != FirstC || (err == ErrExcluded) != second {
					panic(err)
				}
				continue
			}
			for _, insn := range filter.insns[:filter.length] {
				bytes := binary.LittleEndian.AppendUint16(nil, insn.code)
				bytes = append(bytes, insn.jt, insn.jf)
				os.Stdout.Write(binary.LittleEndian.AppendUint32(bytes, insn.k))
			}
		}
	}
	values.Low = 4
	if _, err := Bind(&Config{First: FirstB}, &values); err.Error() != "low was not declared for 4" {
		panic(err)
	}
	if _, err := Bind(&Config{First: 3}, &values); err != ErrExcluded {
		panic(err)
	}
}
"#;

#[test]
fn c_binds_as_the_policy_of_the_combination_does() {
    binds_as_the_policy_of_the_combination_does(&C, C_DUMP);
}

#[test]
fn cxx_binds_as_the_policy_of_the_combination_does() {
    binds_as_the_policy_of_the_combination_does(&CXX, C_DUMP);
}

#[test]
fn rust_binds_as_the_policy_of_the_combination_does() {
    binds_as_the_policy_of_the_combination_does(&RUST, RUST_DUMP);
}

#[test]
fn go_binds_as_the_policy_of_the_combination_does() {
    binds_as_the_policy_of_the_combination_does(&GO, GO_DUMP);
}

fn binds_as_the_policy_of_the_combination_does(toolchain: &Toolchain, main: &str) {
    skip::unless_x86_64();
    let files = [
        ("server.toml", MATRIX),
        ("server.tamis", POLICY),
        ("declared.tamis", DECLARED),
        ("server/inside.go", GO_DUMP_INSIDE),
    ];
    let program = built(toolchain, "dump", &files, main);
    let output = run(&program, &[]);
    let problem = stderr_text(&output);
    assert!(output.status.success(), "{} {problem}", output.status);
    check_filters(toolchain, &output.stdout, &expected(toolchain, &files));
}

/// The programs of the combinations, compiled from their policies.
fn expected(toolchain: &Toolchain, files: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let folder = toolchain.folder(&root(), "expected");
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in files.iter().filter(|(name, _)| !name.ends_with(".go")) {
        fs::write(folder.join(name), text).unwrap();
    }
    let mut expected = Vec::new();
    for (first, second) in [("a", "false"), ("a", "true"), ("b", "false"), ("b", "true")] {
        let only = [format!("first={first}"), format!("second={second}")];
        let arguments = [
            "precompile",
            "server.toml",
            "--only",
            &only[0],
            "--only",
            &only[1],
            "--emit",
            "policy",
        ];
        let policy = tamis(&[&arguments[..], &["-o", "one.tamis"]].concat(), &folder);
        assert!(policy.stdout.is_empty());
        let (low, wide) = (format!("low={LOW}"), format!("wide={WIDE}"));
        let set_b = format!("set_b={},{}", SET_B[0], SET_B[1]);
        let mut arguments = vec!["compile", "one.tamis", "--arch", "x86_64", "--emit", "bpf"];
        arguments.extend(["--bind", &low, "--bind", &wide]);
        if second == "true" {
            arguments.extend(["--bind", &set_b]);
        }
        // A filter for given values may be a different program, so equivalence is proved.
        expected.push(tamis(&arguments, &folder).stdout);
    }
    expected
}

/// Splits the output of a program at the lengths of `--emit json`, and compares each filter with the expected one.
fn check_filters(toolchain: &Toolchain, written: &[u8], expected: &[Vec<u8>]) {
    let folder = &toolchain.folder(&root(), "compare");
    let matrix = root().join("expected").join(toolchain.program);
    let document = tamis(&["precompile", "server.toml", "--emit", "json"], &matrix).stdout;
    let document: Value = serde_json::from_slice(&document).unwrap();
    let mut rest = written;
    for (configuration, expected) in document["configurations"]
        .as_array()
        .unwrap()
        .iter()
        .zip(expected)
    {
        let filter = configuration["filter"].as_u64().unwrap() as usize;
        let length = document["filters"][filter]["length_insns"]
            .as_u64()
            .unwrap() as usize;
        let (own, others) = rest.split_at(length * 8);
        rest = others;
        fs::write(folder.join("own.bpf"), own).unwrap();
        fs::write(folder.join("expected.bpf"), expected).unwrap();
        let proof = tamis(&["prove", "own.bpf", "expected.bpf"], folder);
        assert!(proof.status.success(), "{configuration}");
    }
    assert_eq!(
        document["configurations"].as_array().unwrap().len(),
        expected.len() + 1,
        "and c without second"
    );
    assert!(rest.is_empty());
}

/// The example of the book with 144 combinations: all are made, and together they take less than half the room.
#[test]
fn the_sandbox_has_a_filter_for_each_of_its_combinations() {
    let folder = repository().join("docs/examples/sandbox");
    let output = tamis(&["precompile", "sandbox.toml", "--json"], &folder);
    assert_eq!(stderr_text(&output), "", "no warnings");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["configurations"].as_array().unwrap().len(), 144);
    let sizes = &document["sizes"];
    let bytes = |name: &str| sizes[name].as_u64().unwrap();
    assert!(
        bytes("shared_bytes") * 2 < bytes("separate_bytes"),
        "{sizes}"
    );
    let again = tamis(&["precompile", "sandbox.toml", "--json"], &folder);
    assert!(
        output.stdout == again.stdout,
        "the same whichever processor is faster"
    );
}

#[test]
fn a_matrix_says_the_effort_and_the_command_line_counts_more() {
    let folder = root().join("effort");
    fs::create_dir_all(&folder).unwrap();
    let matrix = |effort: &str| {
        let text = format!(
            "policy = \"container-default\"\narch = [\"x86_64\"]\n{effort}\n[option.x]\nnone = {{}}\n"
        );
        fs::write(folder.join("server.toml"), text).unwrap();
    };
    let filters = |options: &[&str]| {
        let arguments = ["precompile", "server.toml", "--emit", "json", "-o", "-"];
        tamis(&[&arguments, options].concat(), &folder).stdout
    };
    matrix("");
    let (full, quick) = (filters(&[]), filters(&["--effort", "quick"]));
    assert!(full != quick);
    matrix("effort = \"quick\"");
    assert!(filters(&[]) == quick);
    assert!(filters(&["--effort", "full"]) == full);
}
