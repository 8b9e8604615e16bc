//! The embedded policies, by name.

/// An embedded policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// The name on the command line.
    pub name: &'static str,
    /// The text in the tamis language, without includes.
    pub text: &'static str,
}

/// All embedded policies, sorted by name.
pub const ALL: [Embedded; 6] = [
    Embedded {
        name: "agent",
        text: concat!(
            include_str!("../policies/agent.tamis"),
            include_str!("../policies/workload.tamis")
        ),
    },
    Embedded {
        name: "build",
        text: concat!(
            include_str!("../policies/build.tamis"),
            include_str!("../policies/workload.tamis")
        ),
    },
    Embedded {
        name: "container-default",
        text: include_str!("../policies/container-default.tamis"),
    },
    Embedded {
        name: "network-service",
        text: include_str!("../policies/network-service.tamis"),
    },
    Embedded {
        name: "pure-compute",
        text: include_str!("../policies/pure-compute.tamis"),
    },
    Embedded {
        name: "service",
        text: concat!(
            include_str!("../policies/service.tamis"),
            include_str!("../policies/workload.tamis")
        ),
    },
];

/// The policy with this name.
pub fn embedded(name: &str) -> Option<Embedded> {
    ALL.into_iter().find(|policy| policy.name == name)
}
