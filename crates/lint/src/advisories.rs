//! Known weaknesses, of which `tamis audit --advisories` examines the enforced filters.
//!
//! An advisory is a row of [`ALL`]: what is wrong, why it matters, where that was published, and the checks of lint
//! that decide it. So a policy or program gets the same findings from `tamis lint`, by the same codes. All decide by
//! the meaning of a filter, never by the pattern of its instructions. A bound that an older libseccomp has lost is not
//! proved by the meaning alone, so that advisory only says that a filter resembles such ones.

use tamis_abi::{Arch, KernelVersion};
use tamis_bpf::Stack;
use tamis_diag::Severity;
use tamis_prover::{LimitReached, Limits, Stop};

use crate::checks::{
    af_alg, compat_gap, evadable_restriction, foreign_arch, io_uring, merged_bounds, multiplexer,
    outdated_list, twins, unchecked_arch, x32_gap,
};
use crate::finding::Finding;
use crate::registry::Check;
use crate::subject::{LintInput, Meaning, Statements};

/// A known weakness of filters.
#[derive(Clone, Copy)]
pub struct Advisory {
    /// Its name, in kebab case.
    pub id: &'static str,
    /// What is wrong.
    pub title: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// Where it was published.
    pub sources: &'static [&'static str],
    /// Whether the findings prove the weakness; else a filter only resembles weak ones.
    pub is_proved: bool,
    checks: &'static [Check],
}

/// All advisories.
pub const ALL: &[Advisory] = &[
    Advisory {
        id: "af-alg",
        title: "sockets of AF_ALG can be made",
        why: "holes of the kernel's cryptography have been used to become root and to leave containers; any program may make \
              such a socket",
        sources: &[
            "CVE-2026-31431",
            "https://github.com/moby/moby/pull/52494",
            "https://github.com/containerd/containerd/pull/13327",
        ],
        is_proved: true,
        checks: &[af_alg::CHECK],
    },
    Advisory {
        id: "upper-bits",
        title: "a comparison of 64 bits restricts an argument of 32",
        why: "the kernel ignores the upper bits, so a caller that sets one makes the denied call",
        sources: &[
            "CVE-2019-7303",
            "CVE-2019-10063",
            "https://github.com/seccomp/libseccomp/issues/383",
        ],
        is_proved: true,
        checks: &[evadable_restriction::CHECK],
    },
    Advisory {
        id: "libseccomp-merge",
        title: "a filter of libseccomp before 2.6.1 that has lost a bound",
        why: "its merge of two 64-bit comparisons weakens filters; the rules decide whether it did",
        sources: &["GHSA-4q85-33p6-j5g6"],
        is_proved: false,
        checks: &[merged_bounds::CHECK],
    },
    Advisory {
        id: "unchecked-arch",
        title: "the architecture is not checked",
        why: "a number denotes another call on the second architecture of the same kernel",
        sources: &["https://docs.kernel.org/userspace-api/seccomp_filter.html#pitfalls"],
        is_proved: true,
        checks: &[unchecked_arch::CHECK],
    },
    Advisory {
        id: "x32-calls",
        title: "calls denied on x86_64 are allowed as x32",
        why: "a caller sets bit 30 of the number, and the kernel executes the denied call",
        sources: &[
            "https://docs.kernel.org/userspace-api/seccomp_filter.html#pitfalls",
            "https://github.com/netblue30/firejail/issues/87",
        ],
        is_proved: true,
        checks: &[x32_gap::CHECK],
    },
    Advisory {
        id: "compat-calls",
        title: "denied calls are allowed on the kernel's 32-bit architecture",
        why: "64-bit programs can make 32-bit calls",
        sources: &["https://docs.kernel.org/userspace-api/seccomp_filter.html#pitfalls"],
        is_proved: true,
        checks: &[foreign_arch::CHECK, compat_gap::CHECK],
    },
    Advisory {
        id: "multiplexer",
        title: "`socketcall` or `ipc` make a restricted call",
        why: "their arguments are in memory, which no filter reads",
        sources: &["https://github.com/systemd/systemd/issues/5215"],
        is_proved: true,
        checks: &[multiplexer::CHECK],
    },
    Advisory {
        id: "io-uring",
        title: "io_uring provides operations that the filter denies",
        why: "no filter of system calls sees the requests of a ring",
        sources: &["https://github.com/containerd/containerd/issues/9048"],
        is_proved: true,
        checks: &[io_uring::CHECK],
    },
    Advisory {
        id: "equivalent-call",
        title: "a restricted call has an equivalent one that is open",
        why: "a caller makes the other call",
        sources: &["CVE-2021-41133"],
        is_proved: true,
        checks: &[twins::CHECK],
    },
    Advisory {
        id: "outdated-deny-list",
        title: "a deny list is older than calls of the running kernel",
        why: "it allows later calls by its default, some of which do what it denies",
        sources: &["CVE-2021-41133"],
        is_proved: true,
        checks: &[outdated_list::CHECK],
    },
];

/// An advisory that concerns a filter.
#[derive(Clone)]
pub struct Raised {
    /// The advisory.
    pub advisory: &'static Advisory,
    /// What was found; never empty.
    pub findings: Vec<Finding>,
}

/// The advisories that concern filters, and what was not checked, with the reason.
#[derive(Clone, Default)]
pub struct Advice {
    /// In the order of [`ALL`].
    pub raised: Vec<Raised>,
    /// Parts that were not checked; empty for most filters.
    pub gaps: Vec<String>,
}

/// The advisories that concern the filters of a task. `arch` is the architecture of filters that test none, `kernel` the
/// running one.
///
/// # Errors
/// As [`run`](crate::run).
pub fn advise(
    filters: &Stack,
    arch: Arch,
    kernel: Option<KernelVersion>,
    limits: Limits,
    stop: Stop,
) -> Result<Advice, LimitReached> {
    let input = LintInput {
        meaning: Meaning::Filters(filters),
        statements: Statements::default(),
        known_until: None,
        assumed_arch: arch,
        runtime: None,
        kernel,
        targets: &[],
    };
    let checks: Vec<Check> = ALL.iter().flat_map(|row| row.checks).copied().collect();
    let found = crate::run_each(&input, &checks, limits, stop)?;
    let mut findings = found.findings.into_iter();
    let mut raised = Vec::new();
    for advisory in ALL {
        let own = findings.by_ref().take(advisory.checks.len()).flatten();
        // A note is no weakness on any machine that runs the filter, unless all that the check finds are notes.
        let is_relevant = |finding: &Finding| {
            let mut checks = advisory.checks.iter();
            let check = checks.find(|check| check.code == finding.code);
            let is_note = check.is_some_and(|check| check.severity == Severity::Note);
            is_note || finding.severity >= Severity::Warning
        };
        let own: Vec<Finding> = own.filter(is_relevant).collect();
        if !own.is_empty() {
            raised.push(Raised {
                advisory,
                findings: own,
            });
        }
    }
    Ok(Advice {
        raised,
        gaps: found.gaps,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_advisory_has_an_id_of_its_own_and_a_public_source() {
        let mut ids = BTreeSet::new();
        for row in ALL {
            assert!(ids.insert(row.id), "{}", row.id);
            let is_public = |source: &&str| {
                ["CVE-", "GHSA-", "https://"]
                    .iter()
                    .any(|p| source.starts_with(p))
            };
            assert!(
                !row.sources.is_empty() && row.sources.iter().all(is_public),
                "{}",
                row.id
            );
            assert!(!row.checks.is_empty(), "{}", row.id);
        }
    }
}
