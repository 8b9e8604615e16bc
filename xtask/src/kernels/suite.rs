//! The suites: the tests that depend on the kernel, by the tested part of tamis.

use anyhow::{Context, Result};

use crate::arch::Arch;

/// Tests of one executable.
#[derive(Debug)]
pub(super) struct Suite {
    /// The name on the command line and in the table.
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// The package, and its test target.
    pub(super) test: Test,
    /// The executable is run once for each filter, with the tests whose names contain it.
    pub(super) filters: &'static [&'static str],
    /// The time limit of a run with one filter.
    pub(super) limit_s: u32,
    /// The reason why it can't run on AArch64; `None` if it can.
    pub(super) not_on_aarch64: Option<&'static str>,
}

impl Suite {
    /// Whether it can run on an architecture.
    pub(super) fn is_for(&self, arch: Arch) -> bool {
        arch != Arch::Aarch64 || self.not_on_aarch64.is_none()
    }
}

/// A test target of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) package: &'static str,
    pub(super) target: &'static str,
}

const KERNEL: Test = test("tamis-kernel", "live");
const COMMAND: Test = test("tamis", "it");

/// All of them.
pub(super) const SUITES: [Suite; 12] = [
    suite(
        "validator",
        "which programs the kernel accepts, and their results",
        test("tamis-testkit", "vs_kernel"),
        &[""],
    ),
    suite(
        "filters",
        "probing, installing, and the results of filters for real calls",
        KERNEL,
        &["probe::", "install::", "verdicts::", "limits::"],
    ),
    suite(
        "spawn",
        "commands under filters, and tracing them",
        KERNEL,
        &["run::", "spawn::", "tracee::"],
    ),
    suite(
        "notify",
        "listeners, and their supervisors' faults",
        KERNEL,
        &["listener::", "faults::"],
    ),
    suite(
        "record",
        "each back end and column of the recorder",
        COMMAND,
        &["recording::", "backends::", "unchanged::"],
    ),
    suite(
        "trace",
        "calls as text",
        COMMAND,
        &["trace::", "trace_threads::", "trace_structures::"],
    ),
    suite("run", "`tamis run`", COMMAND, &["live::", "stacks::"]),
    suite("exec", "`tamis-exec`", test("tamis-exec", "it"), &[""]),
    suite("audit", "`tamis audit`", COMMAND, &["audit::"]),
    suite("dump", "filters of processes", COMMAND, &["dump::"]),
    suite(
        "libseccomp",
        "the library in libseccomp's place, linked statically",
        test("tamis-libseccomp", "c_calls"),
        &[""],
    ),
    Suite {
        not_on_aarch64: Some("its guests are programs for x86-64"),
        ..suite(
            "platforms",
            "the conformance suite of the platforms",
            test("tamis-platform", "live"),
            &[""],
        )
    },
];

const fn test(package: &'static str, target: &'static str) -> Test {
    Test { package, target }
}

const fn suite(
    name: &'static str,
    summary: &'static str,
    test: Test,
    filters: &'static [&'static str],
) -> Suite {
    Suite {
        name,
        summary,
        test,
        filters,
        limit_s: 300,
        not_on_aarch64: None,
    }
}

/// The suite of that name.
///
/// # Errors
/// If there is none.
pub(super) fn by_name(name: &str) -> Result<&'static Suite> {
    let found = SUITES.iter().find(|suite| suite.name == name);
    found.with_context(|| {
        let names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
        format!("there is no suite `{name}`; suites: {}", names.join(", "))
    })
}
