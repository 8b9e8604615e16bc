//! Reports about compiled filters, selected by environment variables.
//!
//! `TAMIS_LOG=stderr` writes a line for each compiled program, `TAMIS_EXPLAIN=FILE` its policy in the tamis language,
//! or its ruleset if the language can't express it. A program with more privileges than its user ignores both.

use std::ffi::{CStr, c_char, c_int};
use std::fmt::Write;

use tamis_bpf::Program;
use tamis_compiler::meter::{Workload, measure};
use tamis_export::tamis::{Style, policy};
use tamis_rules::Ruleset;

use crate::filter::Rules;

/// Reports a compiled program.
pub(crate) fn built(rules: &Rules, ruleset: &Ruleset, program: &Program) {
    if variable(c"TAMIS_LOG").is_some_and(|value| value == c"stderr") {
        write(libc::STDERR_FILENO, &line(rules, ruleset, program));
    }
    if let Some(path) = variable(c"TAMIS_EXPLAIN") {
        explain(path, &policy_text(ruleset));
    }
}

// SAFETY: the C library has this function, with this type.
unsafe extern "C" {
    /// `getenv`, null in a program with more privileges than its user.
    fn secure_getenv(name: *const c_char) -> *mut c_char;
}

/// The value of a variable; `None` in a program with more privileges than its user.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name is a string. The value stays until the program changes its environment, and is used at once.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

fn line(rules: &Rules, ruleset: &Ruleset, program: &Program) -> String {
    let workload = Workload::of_ruleset(None, ruleset);
    let cost = measure(std::slice::from_ref(program), &workload, false);
    let mut line = format!(
        "tamis: {} instructions, {:.1} steps on average, proved; libseccomp's list: {} instructions",
        program.len(),
        cost.all().mean_steps(),
        rules.list_length_insns(ruleset.bad_arch)
    );
    for filter in rules.filters() {
        let calls = filter.calls().count();
        // Writing to a string can't fail.
        let _ = write!(line, "; {}: {calls} calls with rules", filter.arch());
    }
    line.push('\n');
    line
}

/// The policy, or the ruleset: the language has a limit of length and no error numbers above 4095.
fn policy_text(ruleset: &Ruleset) -> String {
    policy(ruleset, Style::Named).unwrap_or_else(|_| ruleset.to_string())
}

/// Truncates and writes the file. Errors are ignored, because they don't concern the program.
fn explain(path: &CStr, text: &str) {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the path is a string.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if fd >= 0 {
        write(fd, text);
        // SAFETY: it was opened above.
        unsafe { libc::close(fd) };
    }
}

fn write(fd: c_int, text: &str) {
    // SAFETY: the kernel reads at most so many bytes. A short write of a report is no error.
    unsafe { libc::write(fd, text.as_ptr().cast(), text.len()) };
}
