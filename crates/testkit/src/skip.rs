//! Skips with a message: a test that cannot run prints the reason, unless skipping is an error.
//!
//! The standard test runner has no "skipped" result, so a test prints `skipped: …` and returns. The environment
//! variable `TAMIS_REQUIRE`, a comma-separated list of [`Need`]s, turns a skip for that reason into a failure, so
//! that a machine with the resource detects a test that no longer finds it.

use std::env;
use std::fmt;
use std::fs;

use tamis_abi::{Action, Arch, SeccompData, host};
use tamis_bpf::{Insn, Op};
use tamis_kernel::differential::calls;

/// A resource that a test needs and that may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The corpus of real policies and programs, see [`corpus`](crate::corpus).
    Corpus,
    /// A kernel with the permission to install filters, and no other filter or restriction on this process that
    /// affects results: see [`is_unconfined`].
    Live,
    /// A program or library of the system, such as libseccomp or bubblewrap.
    Peers,
    /// A kernel whose system calls `perf` can trace.
    Tracing,
    /// A kernel that accepts programs at its tracepoints from this process, and has type information.
    Tracepoints,
    /// The compilers of all target languages of filters: `cc`, `c++`, `go`.
    Toolchains,
    /// gVisor's compiler, a Go module that `bench/gvisor` needs and no test downloads.
    Gvisor,
    /// systemd 252, and the rights to boot it in namespaces: see [`systemd`](crate::systemd).
    Systemd,
    /// nsjail, which has kafel's compiler: see [`nsjail`](crate::nsjail).
    Nsjail,
    /// The kernel's assembler as a module of Python: see [`bpf_asm`](crate::bpf_asm).
    BpfAsm,
    /// Debian's Python and its module `seccomp`.
    PythonSeccomp,
    /// man-db.
    Man,
    /// crun, runc and podman, and the rights to run containers.
    Runtimes,
    /// DuckDB as a module of Python.
    Duckdb,
}

impl Need {
    /// The name in `TAMIS_REQUIRE`.
    pub const fn name(self) -> &'static str {
        match self {
            Need::Corpus => "corpus",
            Need::Live => "live",
            Need::Peers => "peers",
            Need::Tracing => "tracing",
            Need::Tracepoints => "tracepoints",
            Need::Toolchains => "toolchains",
            Need::Gvisor => "gvisor",
            Need::Systemd => "systemd",
            Need::Nsjail => "nsjail",
            Need::BpfAsm => "bpf-asm",
            Need::PythonSeccomp => "python-seccomp",
            Need::Man => "man",
            Need::Runtimes => "runtimes",
            Need::Duckdb => "duckdb",
        }
    }

    /// Whether the environment requires it.
    pub fn is_required(self) -> bool {
        let required = env::var("TAMIS_REQUIRE").unwrap_or_default();
        names(&required).any(|name| name == self.name())
    }
}

/// The names of a `TAMIS_REQUIRE` list.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

/// Prints that the calling test is skipped because `need` is missing; the caller then returns.
///
/// ```no_run
/// use tamis_testkit::skip::{self, Need};
/// if !std::path::Path::new("/sys/module/no_such_module").exists() {
///     skip::because(Need::Live, "module no_such_module is not loaded");
///     return;
/// }
/// unreachable!("the test itself");
/// ```
///
/// # Panics
/// If `TAMIS_REQUIRE` lists the need.
#[track_caller]
pub fn because(need: Need, reason: impl fmt::Display) {
    assert!(
        !need.is_required(),
        "TAMIS_REQUIRE lists `{}`, but the test would skip: {reason}",
        need.name()
    );
    println!("skipped: {reason}");
}

/// Whether this process has no filter and has not set `no_new_privs`.
///
/// Tests of filters expect the actions of their own filters. A container's filter has its own actions for some calls,
/// and with `no_new_privs` an installation succeeds that should fail. If the kernel does not report the state, the
/// process counts as unconfined.
pub fn is_unconfined() -> bool {
    confinement(&own_status()).is_none()
}

fn own_status() -> String {
    fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// The confinement of a process, by its status.
fn confinement(status: &str) -> Option<&'static str> {
    let field = |name: &str| {
        let lines = status.lines();
        lines
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .any(|value| value.trim() != "0")
    };
    if field("Seccomp") {
        Some("this process is under a filter already, which would answer as well")
    } else if field("NoNewPrivs") {
        Some("this process has no_new_privs, which permits what the tests see refused")
    } else {
        None
    }
}

/// Whether filters can't be tested here: the kernel does not support them, this process may not install any, or it is
/// already confined. Prints the reason, and the calling test then returns.
///
/// # Panics
/// If `TAMIS_REQUIRE` lists `live`.
#[track_caller]
pub fn without_live() -> bool {
    let probe = tamis_kernel::probe();
    let reason = if !probe.filter_mode.is_present() {
        Some("this kernel has no seccomp filters")
    } else {
        // No privilege is needed: the tests' own processes give up gaining more by `no_new_privs`.
        confinement(&own_status())
    };
    if let Some(reason) = reason {
        because(Need::Live, reason);
    }
    reason.is_some()
}

/// Whether the kernel can't be used for tests of filters; prints the reason if so, and the calling test then returns.
///
/// # Panics
/// If `TAMIS_REQUIRE` lists `live`.
#[track_caller]
pub fn without_kernel() -> bool {
    if without_live() {
        return true;
    }
    let allow = Insn::from(Op::RetImm(Action::ALLOW.ret()));
    let call = SeccompData {
        arch: host::arch().map_or(0, Arch::audit),
        ..SeccompData::default()
    };
    match calls::answers(&[&[allow]], &[call]) {
        Ok(_) => false,
        Err(error) => {
            because(Need::Live, error);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_may_have_spaces_and_be_empty() {
        let listed: Vec<&str> = names("corpus, live").collect();
        assert_eq!(listed, ["corpus", "live"]);
        assert!(names("").all(str::is_empty));
    }

    #[test]
    fn only_a_filter_and_no_new_privs_confine() {
        let status = |no_new_privs: u8, seccomp: u8| {
            format!(
                "Name:\tx\nNoNewPrivs:\t{no_new_privs}\nSeccomp:\t{seccomp}\nSeccomp_filters:\t7\n"
            )
        };
        assert_eq!(confinement(&status(0, 0)), None);
        assert_eq!(confinement(""), None);
        assert!(confinement(&status(1, 0)).is_some_and(|said| said.contains("no_new_privs")));
        assert!(confinement(&status(1, 2)).is_some_and(|said| said.contains("filter")));
    }
}
