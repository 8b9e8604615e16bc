//! The suites: the tests that depend on the kernel, by the tested part of tamis.

use anyhow::{Context, Result};

/// Tests of one executable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suite {
    /// The name on the command line and in the table.
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// The package, and its test target.
    pub(super) test: Test,
    /// The executable is run once for each of these: words of its command line, the first of which is a part of the
    /// names of the tests, or nothing for all.
    pub(super) filters: &'static [&'static str],
    /// The same for a short run; none if the suite isn't in it.
    smoke: &'static [&'static str],
}

impl Suite {
    const fn about(self, summary: &'static str) -> Suite {
        Suite { summary, ..self }
    }

    const fn smoke_of(self, smoke: &'static [&'static str]) -> Suite {
        Suite { smoke, ..self }
    }

    /// The suite with its short runs alone; `None` if it has none.
    pub(super) fn smoke(&self) -> Option<Suite> {
        let filters = self.smoke;
        (!filters.is_empty()).then_some(Suite { filters, ..*self })
    }
}

/// A test target of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) package: &'static str,
    pub(super) target: &'static str,
}

/// The time limit of a run with one filter, by the clock of the emulated machine. The longest one takes a third.
pub(super) const LIMIT_S: u32 = 300;

/// All of them.
pub(super) const SUITES: [Suite; 14] = [
    suite("validator", VS_KERNEL, &[""])
        .about("which programs the kernel accepts, and their results")
        .smoke_of(&["on_jumps", "the_strictest"]),
    suite(
        "filters",
        LIVE,
        &["probe::", "install::", "verdicts::", "limits::"],
    )
    .about("probing, installing, and the results of filters for real calls")
    .smoke_of(&["probe::", "install::"]),
    suite(
        "spawn",
        LIVE,
        &["run::", "spawn::", "tracee::", "ignored::"],
    )
    .about("commands under filters, and tracing them")
    .smoke_of(&["spawn::", "tracee::"]),
    suite("notify", LIVE, &["listener::", "faults::"])
        .about("listeners, and their supervisors' faults")
        .smoke_of(&["listener::"]),
    suite(
        "record",
        COMMAND,
        &["recording::", "backends::", "unchanged::"],
    )
    .about("each back end and column of the recorder")
    .smoke_of(&["recording::a_signal"]),
    suite(
        "trace",
        COMMAND,
        &[
            "trace:: --skip unchanged::",
            "trace_threads::",
            "trace_structures::",
        ],
    )
    .about("calls as text")
    .smoke_of(&["trace_threads::"]),
    suite("learn", COMMAND, &["learned::"])
        .about("a policy from a recording, and a run under it")
        .smoke_of(&["learned::"]),
    suite("catch", COMMAND, &["catching::"])
        .about("`tamis sandbox` and `tamis inject`")
        .smoke_of(&["catching::a_sandbox"]),
    suite("run", COMMAND, &["live::", "stacks::"])
        .about("`tamis run`")
        .smoke_of(&["stacks::"]),
    suite("exec", test("tamis-exec", "it"), &[""])
        .about("`tamis-exec`")
        .smoke_of(&[""]),
    suite("audit", COMMAND, &["audit::"]).about("`tamis audit`"),
    suite("dump", COMMAND, &["dump::"])
        .about("filters of processes")
        .smoke_of(&["dump::"]),
    suite("libseccomp", test("tamis-libseccomp", "c_calls"), &[""])
        .about("the library in libseccomp's place, linked statically")
        .smoke_of(&[""]),
    suite("platforms", test("tamis-platform", "live"), &[""])
        .about("the conformance suite of the platforms"),
];

const VS_KERNEL: Test = test("tamis-testkit", "vs_kernel");
const LIVE: Test = test("tamis-kernel", "live");
const COMMAND: Test = test("tamis", "it");

const fn test(package: &'static str, target: &'static str) -> Test {
    Test { package, target }
}

const fn suite(name: &'static str, test: Test, filters: &'static [&'static str]) -> Suite {
    Suite {
        name,
        summary: "",
        test,
        filters,
        smoke: &[],
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
