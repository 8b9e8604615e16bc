//! Programs for victims, and starting victims.

use std::env;
use std::process::{Command, Output, Stdio};

use libtest_mimic::Trial;
use tamis_abi::{Action, SeccompData};
use tamis_bpf::{Op, Program, Stack, Test};
use tamis_kernel::NATIVE_ENDIAN;
use tamis_testkit::{child, harness, skip};

use crate::victim;

/// The call that the programs of these tests decide about; no library makes it by itself, it takes
/// only numbers, and it fails with `EINVAL` for the first argument in [`ARGS`].
pub(crate) const CALL: i64 = libc::SYS_getpriority;

/// Arguments that can't be taken for something else.
pub(crate) const ARGS: [u64; 6] = [
    0x1111_2222_3333_4444,
    0x2222_3333_4444_5555,
    0x3333_4444_5555_6666,
    0x4444_5555_6666_7777,
    0x5555_6666_7777_8888,
    0x6666_7777_8888_9999,
];

/// A test that fails by panicking.
pub(crate) fn trial(name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    harness::trial(name, move || {
        skip::unless_live();
        test();
        Ok(())
    })
}

/// A program that answers one number with a return value and allows the rest.
pub(crate) fn answering(nr: i64, ret: u32) -> Program {
    answering_all(&[(nr, ret)])
}

/// A program that answers each of some numbers with a return value and allows the rest.
pub(crate) fn answering_all(answers: &[(i64, u32)]) -> Program {
    let mut ops = vec![Op::LoadData(0)];
    for (nr, ret) in answers {
        ops.push(Op::branch(Test::Eq, *nr as u32, 0, 1));
        ops.push(Op::RetImm(*ret));
    }
    ops.push(Op::RetImm(Action::ALLOW.ret()));
    program(ops)
}

/// A program of one answer.
pub(crate) fn constant(ret: u32) -> Program {
    program(vec![Op::RetImm(ret)])
}

/// A valid program.
pub(crate) fn program(ops: Vec<Op>) -> Program {
    let insns = ops.into_iter().map(Into::into).collect();
    Program::new(insns, NATIVE_ENDIAN).expect("a valid program")
}

/// The filters of one task, the oldest first.
pub(crate) fn stack(programs: Vec<Program>) -> Stack {
    Stack::new(programs).expect("all are for this machine")
}

/// A call as filters on this machine see it.
pub(crate) fn native_call(nr: i64, args: [u64; 6]) -> SeccompData {
    let arch = tamis_abi::host::arch().expect("a known architecture");
    SeccompData {
        nr: nr as u32,
        arch: arch.audit(),
        ip: 0,
        args,
    }
}

/// The path of this executable.
pub(crate) fn own_path() -> std::path::PathBuf {
    env::current_exe().expect("the test's own path")
}

/// A victim with a role, not started yet; its standard output is captured.
pub(crate) fn victim(role: &[&str]) -> Command {
    let mut command = Command::new(own_path());
    command
        .arg(victim::MARK)
        .args(role)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// Lets a victim play its role to the end.
pub(crate) fn play(role: &[&str]) -> Output {
    child::output(&mut victim(role)).expect("the victim starts")
}

/// The output of a victim that succeeded, trimmed.
#[track_caller]
pub(crate) fn output_of(role: &[&str]) -> String {
    let output = play(role);
    assert!(
        output.status.success(),
        "{role:?}: {} {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
