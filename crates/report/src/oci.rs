//! A policy in a container's configuration, and profiles with more calls: `tamis oci`.

use std::fmt;

use serde::Serialize;
use tamis_diag::words::joined;

use crate::entry::counted;

/// The result of the change.
#[derive(Serialize)]
pub struct OciReport {
    pub config: String,
    pub policy: String,
    /// The number of instructions of the program in the annotation; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_insns: Option<usize>,
    /// Whether `linux.seccomp` contains the policy.
    pub has_profile: bool,
    /// The properties that the profile can't express, with their replacements.
    pub losses: Vec<String>,
    /// The remaining parts of an earlier policy.
    pub notes: Vec<String>,
    /// Whether the profile may deny calls that programs need.
    #[serde(skip)]
    pub allows_losses: bool,
}

impl fmt::Display for OciReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = &self.policy;
        writeln!(f, "{}:", self.config)?;
        if let Some(length) = self.length_insns {
            let length = counted(length, "instruction");
            writeln!(
                f,
                "  annotation run.oci.seccomp_bpf_data: {length}, for crun"
            )?;
        }
        if self.has_profile {
            let losses = match self.losses.is_empty() {
                true => "proved equivalent",
                false => "with losses",
            };
            writeln!(f, "  linux.seccomp: {losses}, for runc and other runtimes")?;
        }
        for loss in &self.losses {
            writeln!(f, "    {loss}")?;
        }
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        writeln!(f, "by hand:")?;
        let losses = if self.allows_losses {
            " --allow-losses"
        } else {
            ""
        };
        writeln!(
            f,
            "  tamis convert {policy} --to oci{losses} -o profile.json"
        )?;
        writeln!(f, "  docker run --security-opt seccomp=profile.json")?;
        writeln!(f, "  podman run --security-opt seccomp=profile.json")?;
        writeln!(
            f,
            "  podman --runtime crun run --annotation \"$(tamis compile {policy} --emit annotation)\""
        )
    }
}

/// A profile that allows more calls.
#[derive(Serialize)]
pub struct OciAllowReport {
    pub profile: String,
    pub calls: Vec<String>,
    /// The number of readings - machines, capabilities and kernels - for which the change was proved.
    pub readings: usize,
    /// Other changes, and what the change doesn't reach.
    pub notes: Vec<String>,
    /// Whether calls became allowed that others are multiplexed in; the notes name them.
    #[serde(skip)]
    pub has_opened_more: bool,
}

impl fmt::Display for OciAllowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readings = counted(self.readings, "reading");
        let exactly = if self.has_opened_more { "" } else { "exactly " };
        let more = self
            .has_opened_more
            .then_some("the multiplexed calls below");
        let calls: Vec<&str> = self.calls.iter().map(String::as_str).chain(more).collect();
        let calls = joined(&calls, "and");
        writeln!(
            f,
            "{}: {exactly}{calls} became allowed, proved for {readings}",
            self.profile
        )?;
        let mut notes = self.notes.iter();
        notes.try_for_each(|note| writeln!(f, "  {note}"))
    }
}
