//! Arguments are compared in the bits that the kernel reads: setting other bits does not bypass a denial.

use std::fs;
use std::path::PathBuf;
use std::process::Command as Plain;

use tamis_abi::Arch;
use tamis_bpf::{Program, Stack};
use tamis_compiler::compile;
use tamis_diag::Sources;
use tamis_kernel::{Command, Ended, run};
use tamis_policy::loader::NoIncludes;
use tamis_policy::tamis;
use tamis_testkit::skip::{self, Need};

const EPERM: &str = "-1";

/// The filter of a policy.
#[track_caller]
fn filter(policy: &str) -> Program {
    let mut sources = Sources::new();
    let root = sources.add("a.tamis", policy);
    let options = tamis::TamisOptions::new(vec![Arch::X86_64, Arch::X86]);
    let parsed = tamis::parse(&mut sources, root, &mut NoIncludes, &options);
    let ruleset = parsed
        .ruleset
        .unwrap_or_else(|| panic!("{:#?}", parsed.diagnostics));
    let compiled = compile(&ruleset, &tamis_compiler::CompileOptions::default());
    compiled.expect("it compiles").program().unwrap().clone()
}

/// A program that makes one call with exactly these registers and prints its result; the test ends if
/// it can't be made or its result without a filter varies.
#[track_caller]
fn caller(name: &str, assembly: &str, free: &str) -> PathBuf {
    skip::unless_x86_64();
    skip::unless_live();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("widths-{name}"));
    fs::create_dir_all(&directory).expect("a directory for the test");
    let (source, program) = (directory.join("a.c"), directory.join("a"));
    let text = format!(
        "#include <stdio.h>\n#include <stdlib.h>\n\
         int main(int argc, char **argv) {{ long answer;\n\
         __asm__ volatile ({assembly} : \"memory\", \"rcx\", \"r8\", \"r9\", \"r10\", \"r11\");\n\
         FILE *out = fopen(argv[1], \"w\"); fprintf(out, \"%d\", (int)answer); fclose(out); return 0; }}\n"
    );
    fs::write(&source, &text).expect("a file is written");
    if Plain::new("cc").arg("--version").output().is_err() {
        skip::because(Need::Peers, "no C compiler");
    }
    let mut compiler = Plain::new("cc");
    let made = compiler.arg(&source).arg("-o").arg(&program).status();
    assert!(made.is_ok_and(|status| status.success()), "{text}");
    if answer(&program, vec![]).as_deref() != Some(free) {
        skip::because(Need::Live, "this kernel doesn't take such calls");
    }
    program
}

/// The program's output; `None` if it was killed.
fn answer(program: &PathBuf, filters: Vec<Program>) -> Option<String> {
    let out = program.with_extension("out");
    let _ = fs::remove_file(&out);
    let command = Command {
        args: vec![out.clone().into()],
        filters: Stack::new(filters).expect("all are for this machine"),
        ..Command::new(program)
    };
    let report = run(&command).expect("the program is executed");
    (report.ended == Ended::Exited(0)).then(|| fs::read_to_string(out).expect("its answer"))
}

/// The call is denied by a policy about the bits that the kernel reads.
#[track_caller]
fn denied(name: &str, assembly: &str, free: &str, policy: &str) {
    let program = caller(name, assembly, free);
    let policy = format!("{policy}\ndefault allow\nbad-arch allow\n");
    let answer = answer(&program, vec![filter(&policy)]);
    assert_eq!(answer.as_deref(), Some(EPERM), "{name}");
}

#[test]
fn a_mode_has_16_bits() {
    let fchmod = "\"syscall\" : \"=a\"(answer) : \"a\"(91L), \"D\"(99L), \"S\"(0x109edL)";
    denied("fchmod", fchmod, "-9", "deny fchmod(mode == 0o4755)");
}

#[test]
fn a_descriptor_has_32_bits_whatever_its_type_is() {
    let writev =
        "\"syscall\" : \"=a\"(answer) : \"a\"(20L), \"D\"(0x100000001L), \"S\"(0L), \"d\"(0L)";
    denied("writev", writev, "0", "deny writev(fd == 1)");
}

#[test]
fn a_32_bit_call_has_32_bits_whatever_the_registers_hold() {
    let close = "\"int $0x80\" : \"=a\"(answer) : \"a\"(6L), \"b\"(0x100000063L)";
    denied("close", close, "-9", "deny close(fd == 99)");
    denied("close-position", close, "-9", "deny close(arg[0] == 99)");
    denied(
        "close-number",
        close,
        "-9",
        "on x86 { deny nr 6(arg0 == 99) }",
    );
    let setuid = "\"int $0x80\" : \"=a\"(answer) : \"a\"(23L), \"b\"(0x1ffffL)";
    denied("setuid", setuid, "-22", "deny setuid(uid == -1)");
}
