//! The page about seccompiler and libseccomp: its programs build, and both sides of each do the same.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use tamis::{CompiledPolicy, Policy};
use tamis_abi::{Endian, SeccompData, host};
use tamis_bpf::{Insn, Program, interp};
use tamis_scmp::Release;
use tamis_testkit::corpus::repository;
use tamis_testkit::libseccomp_program;
use tamis_testkit::scratch::Scratch;
use tamis_testkit::skip;
use tamis_testkit::toolchains::{C, block, stderr_text};

use crate::TAMIS;

#[rustfmt::skip]
fn before() -> Result<BpfProgram, Box<dyn Error>> {
    let to_output = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, 1)?;
    let rules = [
        (libc::SYS_read, vec![]),
        (libc::SYS_exit_group, vec![]),
        (libc::SYS_futex, vec![]),
        (libc::SYS_write, vec![SeccompRule::new(vec![to_output])?]),
    ];
    let default = SeccompAction::Errno(libc::EPERM as u32);
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules.into(), default, SeccompAction::Allow, arch)?;
    Ok(filter.try_into()?) // then apply_filter_all_threads
}

#[rustfmt::skip]
fn after(policy: &str) -> Result<CompiledPolicy, tamis::Error> {
    let filter = Policy::from_text("service.tamis", policy)?.compile()?;
    Ok(filter) // then install_with(&filter, &Install::default().all_threads())
}

fn page() -> String {
    fs::read_to_string(repository().join("docs/book/migrating.md")).expect("the page")
}

#[test]
fn the_page_shows_these_functions() {
    let shown = block(&page(), "rust,ignore");
    let functions: Vec<&str> = shown.split("\n\n").map(str::trim).collect();
    assert_eq!(functions.len(), 2);
    for function in functions {
        assert!(
            include_str!("migrating.rs").contains(function),
            "{function}"
        );
    }
}

#[test]
fn both_sides_of_seccompiler_decide_the_same() {
    let native = host::arch().expect("a known architecture");
    let before = before().expect("it compiles").into_iter();
    let insns = before.map(|own| Insn {
        code: own.code,
        jt: own.jt,
        jf: own.jf,
        k: own.k,
    });
    let before = Program::new(insns.collect(), Endian::Little).expect("the kernel accepts it");
    let after = after(&block(&page(), "text")).expect("it compiles");
    let after = after.program().expect("no variables");
    for nr in 0..600 {
        for descriptor in [0, 1, 2, 1 << 32 | 1, 1 << 32] {
            let call = SeccompData {
                nr,
                arch: native.audit(),
                args: [descriptor, 0, 0, 0, 0, 0],
                ..SeccompData::default()
            };
            let [old, new] = [&before, after].map(|own| interp::run(own, &call).ret);
            assert_eq!(old, new, "{call:x?}");
        }
    }
    let [old, new] = [&before, after].map(|own| interp::run(own, &SeccompData::default()).ret);
    assert_eq!(old, new, "another architecture");
}

/// A program of C that confines itself by the block of the page: 0 if it may write to descriptor 1 and not to 2.
fn program(headers: &str, confine: &str) -> String {
    format!(
        "#include <errno.h>\n{headers}\n{confine}\n\
         int main(void)\n{{\n\
         \tif (confine() != 0)\n\t\treturn 2;\n\
         \tif (write(1, \"confined\", 8) != 8)\n\t\treturn 3;\n\
         \treturn write(2, \"leak\", 4) == -1 && errno == EPERM ? 0 : 4;\n}}\n"
    )
}

fn assert_confined(program: &Path) {
    let output = Command::new(program).output().expect("it starts");
    let error = stderr_text(&output);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert_eq!(
        (output.stdout.as_slice(), error.as_str()),
        (&b"confined"[..], "")
    );
}

#[test]
fn both_sides_of_libseccomp_confine() {
    skip::unless_kernel();
    let page = page();
    let before = block(&page, "c");
    let (_, rest) = page.split_once(&before).expect("it is there");
    let after = block(rest, "c");
    let folder = Scratch::new("migrating").expect("a folder");

    let headers = "#include <seccomp.h>\n#include <unistd.h>";
    let text = program(headers, &before);
    let built =
        libseccomp_program::compile(&folder.path().join("before"), &text, Release::Reference);
    assert_confined(&built);

    let own = folder.path().join("after");
    fs::create_dir(&own).expect("a folder");
    fs::write(own.join("service.tamis"), block(&page, "text")).expect("a file");
    let mut tamis = Command::new(TAMIS);
    tamis.args(["compile", "service.tamis", "--emit", "c", "-o", "service.h"]);
    let output = tamis.current_dir(&own).output().expect("it starts");
    assert!(output.status.success(), "{}", stderr_text(&output));
    let headers = "#include <linux/seccomp.h>\n#include <unistd.h>\n#include \"service.h\"";
    assert_confined(&C.build(&own, &program(headers, &after)));
}
