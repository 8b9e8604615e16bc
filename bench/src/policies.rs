//! The measured policies.

use tamis_abi::Arch;
use tamis_diag::Sources;
use tamis_policy::loader::NoIncludes;
use tamis_policy::{embedded, oci, tamis};
use tamis_rules::Ruleset;
use tamis_testkit::corpus::{self, gvisor, pol_json};
use tamis_testkit::generate::shape;

/// Docker's default profile in the corpus.
pub const DOCKER: &str = "docker/docker-default-x86_64.json";

/// A policy, and the source of its ruleset.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The name in `counts.tsv`.
    pub name: &'static str,
    kind: PolicySource,
}

#[derive(Clone, Copy, Debug)]
enum PolicySource {
    /// Embedded in tamis.
    Embedded,
    /// A text of the folder `policies` that stands for itself.
    Text(&'static str),
    /// A shape of testkit.
    Shape(fn() -> Ruleset),
    /// A file of the corpus: a Docker profile, used as Docker does on x86-64.
    Oci,
    /// A file of the corpus: gVisor's rule sets.
    Gvisor,
    /// A file of the corpus: a policy that other compilers were given.
    PolJson,
}

const fn policy(name: &'static str, kind: PolicySource) -> Policy {
    Policy { name, kind }
}

/// All of them, in the order of `counts.tsv`.
pub const ALL: [Policy; 18] = [
    policy("container-default", PolicySource::Embedded),
    policy("network-service", PolicySource::Embedded),
    policy("pure-compute", PolicySource::Embedded),
    policy(
        "hypercall-never",
        PolicySource::Text(include_str!(
            "../../crates/policy/policies/hypercall-never.tamis"
        )),
    ),
    policy(
        "hypercall-sentry",
        PolicySource::Text(include_str!(
            "../../crates/policy/policies/hypercall-sentry.tamis"
        )),
    ),
    policy("shape/names", PolicySource::Shape(shape::names)),
    policy("shape/requests", PolicySource::Shape(shape::requests)),
    policy("shape/halves", PolicySource::Shape(shape::halves)),
    policy("shape/gaps", PolicySource::Shape(shape::gaps)),
    policy(DOCKER, PolicySource::Oci),
    policy("peers/docker.pol.json", PolicySource::PolJson),
    policy("peers/fc-vmm.pol.json", PolicySource::PolJson),
    policy("peers/gappy302.pol.json", PolicySource::PolJson),
    policy("gvisor/gvisor-gofer-directfs.json", PolicySource::Gvisor),
    policy("gvisor/gvisor-sentry-nvproxy.json", PolicySource::Gvisor),
    policy("gvisor/gvisor-sentry-systrap.json", PolicySource::Gvisor),
    policy("gvisor/gvisor-systrap-stub.json", PolicySource::Gvisor),
    policy(
        "gvisor/gvisor-systrap-sysmsg-thread.json",
        PolicySource::Gvisor,
    ),
];

/// Programs of the corpus made by other compilers from [`DOCKER`].
pub const DOCKER_PEERS: [&str; 2] = [
    "docker/docker-libseccomp-opt1.bpf",
    "docker/docker-libseccomp-opt2.bpf",
];

impl Policy {
    /// Whether the corpus has it.
    pub const fn is_in_corpus(self) -> bool {
        matches!(
            self.kind,
            PolicySource::Oci | PolicySource::Gvisor | PolicySource::PolJson
        )
    }

    /// The ruleset of the policy.
    ///
    /// # Panics
    /// If the policy has errors.
    pub fn ruleset(self) -> Ruleset {
        match self.kind {
            PolicySource::Embedded => {
                let policy = embedded(self.name).expect("the policy comes with tamis");
                tamis_ruleset(self.name, policy.text)
            }
            PolicySource::Text(text) => tamis_ruleset(self.name, text),
            PolicySource::Shape(make) => make(),
            PolicySource::Oci => docker_ruleset(self.name, &corpus::text(self.name)),
            PolicySource::Gvisor => gvisor::ruleset(self.name),
            PolicySource::PolJson => pol_json::ruleset(self.name),
        }
    }
}

/// The ruleset of a Docker profile for x86-64, x86 and x32.
///
/// # Panics
/// If the profile has errors.
pub fn docker_ruleset(name: &str, text: &str) -> Ruleset {
    let mut sources = Sources::new();
    let source = sources.add(name, text);
    let profile = oci::parse(&sources, source, &oci::OciOptions::docker(Arch::X86_64));
    profile.parsed.ruleset.expect("the profile has no mistakes")
}

fn tamis_ruleset(name: &str, text: &str) -> Ruleset {
    let mut sources = Sources::new();
    let root = sources.add(name, text);
    let options = tamis::TamisOptions::new(vec![Arch::X86_64, Arch::X86, Arch::X32]);
    let parsed = tamis::parse(&mut sources, root, &mut NoIncludes, &options);
    parsed.ruleset.expect("the policy has no mistakes")
}
