//! `SeccompProfile` resources of the Kubernetes Security Profiles Operator, as YAML.
//!
//! The resource contains an OCI profile with restrictions: no errno of the default action, which is then `EPERM`,
//! and no supervisor for it; numbers up to 2^63 - 1, as in the API of Kubernetes; fewer architectures. An errno of
//! 0 is equivalent to a missing one.

use std::fmt::Write;

use tamis_abi::{Action, ActionKind, Arch};
use tamis_diag::Diagnostic;

use super::oci::{
    Flavour, MAX_ENTRIES, Profile, action_name, arch_name, nearest_action, profile, quoted,
    within_limits,
};
use super::{Export, ExportOptions, Exporter, Meaning};
use tamis_policy::spo;

/// The exporter in the registry.
pub(super) static EXPORTER: Exporter = Exporter {
    name: "spo",
    plural: "SeccompProfile resources",
    about: "A SeccompProfile of the Kubernetes Security Profiles Operator, as YAML",
    front_end: &spo::FRONT_END,
    writes_rules: false,
    takes_installation: true,
    states_arches: false,
    write,
};

const FLAVOUR: Flavour = Flavour {
    plural: "SeccompProfile resources",
    max_number: i64::MAX as u64,
    max_entries: Some(MAX_ENTRIES),
    nearest_action: |action| match nearest_action(action) {
        Action {
            kind: ActionKind::Errno | ActionKind::Trace,
            data: 0,
        } => Action::new(action.kind, 1),
        nearest => nearest,
    },
    default: |action| match action.kind {
        ActionKind::Errno | ActionKind::Trace => Action::new(action.kind, 1),
        ActionKind::Notify => Action::errno(1),
        _ => action,
    },
    has_arch: |arch| {
        let unknown = [Arch::Loongarch64, Arch::M68k, Arch::Sh, Arch::Sheb];
        arch_name(arch).is_some() && !unknown.contains(&arch)
    },
};

fn write(meaning: &Meaning, options: &ExportOptions<'_>) -> Result<Export, Box<Diagnostic>> {
    let mut losses = Vec::new();
    let profile = profile(meaning, options, FLAVOUR, &mut losses)?;
    Ok(Export {
        text: within_limits(yaml(&profile, options))?,
        machines: vec![profile.machine()],
        bad_arch: Action::KILL_THREAD,
        losses,
    })
}

fn yaml(profile: &Profile, options: &ExportOptions<'_>) -> String {
    let mut text = String::from(
        "apiVersion: security-profiles-operator.x-k8s.io/v1beta1\nkind: SeccompProfile\n",
    );
    let _ = write!(
        text,
        "metadata:\n  name: {}\nspec:\n",
        quoted(&resource_name(options.name))
    );
    let (action, _) = action_name(profile.default);
    let _ = writeln!(text, "  defaultAction: {action}");
    let arches = profile.arches.iter().copied().filter_map(arch_name);
    list(&mut text, "  architectures", arches);
    if !options.flags.is_empty() {
        list(
            &mut text,
            "  flags",
            options.flags.iter().map(String::as_str),
        );
    }
    if let Some(path) = options.listener_path {
        let _ = writeln!(text, "  listenerPath: {}", quoted(path));
    }
    if let Some(metadata) = options.listener_metadata {
        let _ = writeln!(text, "  listenerMetadata: {}", quoted(metadata));
    }
    if profile.entries.is_empty() {
        return text;
    }
    text.push_str("  syscalls:\n");
    for entry in &profile.entries {
        let (action, errno) = action_name(entry.action);
        let _ = writeln!(text, "  - action: {action}");
        if let Some(errno) = errno {
            let _ = writeln!(text, "    errnoRet: {errno}");
        }
        list(&mut text, "    names", entry.names.iter().copied());
        if entry.conditions.is_empty() {
            continue;
        }
        text.push_str("    args:\n");
        for condition in &entry.conditions {
            let _ = writeln!(text, "    - index: {}", condition.index);
            let _ = writeln!(text, "      op: {}", condition.op);
            let _ = writeln!(text, "      value: {}", condition.value);
            if let Some(two) = condition.value_two {
                let _ = writeln!(text, "      valueTwo: {two}");
            }
        }
    }
    text
}

fn list<'t>(text: &mut String, key: &str, items: impl Iterator<Item = &'t str>) {
    let indent = &key[..key.len() - key.trim_start().len()];
    let _ = writeln!(text, "{key}:");
    for item in items {
        let _ = writeln!(text, "{indent}- {item}");
    }
}

/// A valid name for Kubernetes: lower-case letters, digits and hyphens, no hyphens at the ends.
fn resource_name(name: &str) -> String {
    const MAX_LENGTH: usize = 63;
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches('-');
    let name = &name[..name.len().min(MAX_LENGTH)];
    match name.trim_end_matches('-') {
        "" => "policy".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::resource_name;

    #[test]
    fn names_are_those_of_resources() {
        assert_eq!(resource_name("My policy.v2"), "my-policy-v2");
        assert_eq!(resource_name("<stdin>"), "stdin");
        assert_eq!(resource_name("é"), "policy");
    }
}
