//! The flavours of profiles: of container engines, of runtimes, and of the Kubernetes operator.

use tamis_abi::Arch;
use tamis_diag::document::Object;
use tamis_diag::json::Reader;

use super::json;
use super::names::ARCHES;

/// The schema of one flavour.
#[derive(Debug)]
pub(crate) struct Flavour {
    /// The members of a profile.
    pub(super) profile_members: &'static [&'static str],
    /// The members of an entry.
    pub(super) entry_members: &'static [&'static str],
    /// The architectures by their names.
    pub(super) arches: &'static [(&'static str, Arch)],
    /// Whether `SCMP_ARCH_NATIVE` is among them.
    pub(super) names_native: bool,
    /// Whether the members that engines read exist: `archMap`, `includes`, `excludes`, and the older `name`.
    pub(super) selects: bool,
    /// Whether an entry without names is an error instead of being skipped.
    pub(super) needs_names: bool,
    /// Whether there is a `defaultErrnoRet`.
    pub(super) has_default_errno: bool,
    /// Whether zero is equivalent to a missing member: for `value` and `errnoRet`.
    pub(super) omits_zero: bool,
    /// The largest `value`.
    pub(super) max_value: u64,
    /// Whether some parsers match member names regardless of case.
    pub(super) folds_case: bool,
}

/// Profiles of engines; runtimes use a part of them.
pub(super) static RUNTIME: Flavour = Flavour {
    profile_members: &[
        "defaultAction",
        "defaultErrnoRet",
        "defaultErrno",
        "architectures",
        "archMap",
        "flags",
        "listenerPath",
        "listenerMetadata",
        "syscalls",
    ],
    entry_members: &[
        "names", "name", "action", "errnoRet", "errno", "args", "comment", "includes", "excludes",
    ],
    arches: &ARCHES,
    names_native: false,
    selects: true,
    needs_names: false,
    has_default_errno: true,
    omits_zero: false,
    max_value: u64::MAX,
    folds_case: true,
};

/// `linux.seccomp` of a container's configuration in the specification: runtimes ignore the members of engines.
pub(super) static CONFIGURATION: Flavour = Flavour {
    profile_members: &[
        "defaultAction",
        "defaultErrnoRet",
        "architectures",
        "flags",
        "listenerPath",
        "listenerMetadata",
        "syscalls",
    ],
    entry_members: &["names", "action", "errnoRet", "args"],
    arches: &ARCHES,
    names_native: false,
    selects: false,
    needs_names: false,
    has_default_errno: true,
    omits_zero: false,
    max_value: u64::MAX,
    folds_case: true,
};

/// `spec` of a `SeccompProfile` of the security-profiles-operator, version 1.0 of its interface.
pub(crate) static OPERATOR: Flavour = Flavour {
    profile_members: &[
        "disabled",
        "baseProfileName",
        "defaultAction",
        "architectures",
        "listenerPath",
        "listenerMetadata",
        "syscalls",
        "flags",
    ],
    entry_members: &["names", "action", "errnoRet", "args"],
    // The architectures of the specification at the time of the interface: up to riscv64.
    arches: ARCHES.split_at(19).0,
    names_native: true,
    selects: false,
    needs_names: true,
    has_default_errno: false,
    omits_zero: true,
    max_value: i64::MAX as u64,
    folds_case: false,
};

impl Flavour {
    /// Reports unknown members.
    pub(super) fn check_members(
        &self,
        reader: &mut Reader,
        object: Object<'_>,
        what: &str,
        known: &[&str],
    ) {
        if self.folds_case {
            return json::check_members(reader, object, what, known);
        }
        for prop in object.members() {
            if !known.contains(&prop.name) {
                reader.unknown_member(&prop, what, known);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_knows_architectures_up_to_riscv64() {
        let last = OPERATOR.arches.last().expect("there are some");
        assert_eq!(last.1, Arch::Riscv64);
    }
}
