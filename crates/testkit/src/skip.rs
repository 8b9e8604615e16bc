//! Skipping aloud: a test that cannot test says so, and may be told that it must not skip.
//!
//! The standard test runner has no "skipped" result, so a test prints `skipped: …` and returns. The
//! environment variable `TAMIS_REQUIRE`, a comma-separated list of [`Need`]s, turns a skip for that
//! reason into a failure: a machine that has the thing finds out when a test stops seeing it.

use std::env;
use std::fmt;
use std::fs;

use tamis_abi::{Action, Arch, SeccompData};
use tamis_bpf::{Insn, Op};
use tamis_kernel::differential::calls;

/// What a test needs and may not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The corpus of real policies and programs, see [`corpus`](crate::corpus).
    Corpus,
    /// A kernel, the rights to install filters in it, and nothing around this process that would answer or
    /// refuse in their place: see [`is_unconfined`].
    Live,
    /// A program or library of the system, such as libseccomp or bubblewrap.
    Peers,
    /// A kernel whose system calls `perf` can trace.
    Tracing,
    /// The compilers of all languages that filters are written in: `cc`, `c++`, `go`.
    Toolchains,
    /// gVisor's compiler, a Go module that `bench/gvisor` needs and nothing here downloads.
    Gvisor,
    /// systemd 252, and the rights to boot it in namespaces: see [`systemd`](crate::systemd).
    Systemd,
}

impl Need {
    /// The name in `TAMIS_REQUIRE`.
    pub const fn name(self) -> &'static str {
        match self {
            Need::Corpus => "corpus",
            Need::Live => "live",
            Need::Peers => "peers",
            Need::Tracing => "tracing",
            Need::Toolchains => "toolchains",
            Need::Gvisor => "gvisor",
            Need::Systemd => "systemd",
        }
    }

    /// Whether the environment says that it must be there.
    pub fn is_required(self) -> bool {
        let required = env::var("TAMIS_REQUIRE").unwrap_or_default();
        names(&required).any(|name| name == self.name())
    }
}

/// The names of a `TAMIS_REQUIRE` list.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

/// Says that the calling test does not test because `need` is missing; the caller then returns.
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

/// Whether no filter is on this process and it hasn't given up gaining privileges.
///
/// Tests of filters expect the answers of their own. Under a container's filter some calls have that one's
/// answers, and under `no_new_privs` an installation succeeds that should be refused. Where the kernel doesn't
/// say, nothing is known to be around.
pub fn is_unconfined() -> bool {
    confinement(&own_status()).is_none()
}

fn own_status() -> String {
    fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// What is around a process, as its status says.
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

/// Whether filters can't be tested here: the kernel has none, this process may not install any, or something
/// else is around it already. Says which, and the calling test then returns.
///
/// # Panics
/// If `TAMIS_REQUIRE` lists `live`.
#[track_caller]
pub fn without_live() -> bool {
    let probe = tamis_kernel::probe();
    let reason = if !probe.filter_mode.is_present() {
        Some("this kernel has no seccomp filters")
    } else if let Some(around) = confinement(&own_status()) {
        Some(around)
    } else if !probe.may_install() {
        Some("no filter may be installed here")
    } else {
        None
    };
    if let Some(reason) = reason {
        because(Need::Live, reason);
    }
    reason.is_some()
}

/// Whether the kernel can't be asked about filters; says why if so, and the calling test then returns.
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
        arch: Arch::X86_64.audit(),
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
